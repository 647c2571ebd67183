"""Quick audits of estimators: what replay or the law of the noise say against one."""

from dpsparse.audit.noise import find_wrong_noise
from dpsparse.audit.replay import check_subject
from dpsparse.audit.subject import Subject


def check(estimator, n_features=7, **how):
    """`check_subject` of an estimator, a search or a feature test on tables of numbers."""
    return check_subject(Subject(estimator, n_features), **how)


def first_complaint(estimator, n_features=7, *, n_runs=30, seed=0):
    """What is wrong with an estimator, empty if nothing; no epsilon is estimated. Wrong with probability below 1e-5."""
    subject = Subject(estimator, n_features)
    return (
        check_subject(subject, n_climbs=0, seed=seed).first_complaint
        or find_wrong_noise(subject, n_runs, seed)[0]
        or check_subject(subject, seed=seed).first_complaint  # last what takes longest
    )
