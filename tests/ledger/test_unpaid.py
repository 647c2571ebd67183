"""Fits without a ledger are counted in the process, whoever calls them."""

import importlib
import sys
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from complaints import check
from dpsparse import (
    Domain,
    DPFeatureTest,
    DPGradientClassifier,
    DPPipeline,
    DPSearchCV,
    DPStandardizer,
    Ledger,
    dp_evaluate,
    dp_inference,
)
from dpsparse.accounting import Exponential, Phase, Repeated, Sequence, epsilon
from dpsparse.accounting.adaptive import Profile
from dpsparse.exceptions import BudgetWarning, ParameterError, UnpaidFitsWarning

release = importlib.import_module("dpsparse.release")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4)) / 4.0
Y = (X[:, 0] > 0).astype(int)
DOMAIN = Domain(classes=[0, 1], row_norm=1.0)


@pytest.fixture(autouse=True)
def fresh_process(monkeypatch):
    monkeypatch.setattr(release, "_unpaid", {})


def model(**parameters):
    return DPGradientClassifier(DOMAIN, n_iter=3, **parameters)


def warnings_of(fit):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        fit()
    return [str(w.message) for w in seen if issubclass(w.category, UnpaidFitsWarning)]


def test_it_warns_at_powers_of_two_and_states_the_sum():
    assert not warnings_of(lambda: model().fit(X, Y))
    texts = warnings_of(lambda: [model().fit(X, Y) for _ in range(16)])
    assert [text.split()[4] for text in texts] == ["2", "4", "8", "16"]
    stated = float(texts[-1].split("epsilon ")[1].split()[0])
    exact = epsilon(Repeated(model().plan(4).event, 16), 1e-6)
    assert exact * 0.995 <= stated <= exact * 1.2


def test_many_kinds_of_fits_are_priced_without_the_product_of_their_profiles(monkeypatch):
    """A product of sixteen kinds takes ten seconds. That of eight is computed here once; it is a little lower."""
    plans = [
        replace(model().plan(4), phases=(Phase("picks", Repeated(Exponential(0.01 * i), 5)),))
        for i in range(1, 9)
    ]
    together = Sequence(tuple(plan.event for plan in plans))
    with monkeypatch.context() as patched:
        patched.setattr(Profile, "times", None)
        patched.setattr(release, "event_epsilon", lambda event, delta: 0.0)
        texts = warnings_of(lambda: [release._count_unpaid_fit(plan) for plan in plans])
    assert [text.split()[4] for text in texts] == ["2", "4", "8"]
    stated = float(texts[-1].split("epsilon ")[1].split()[0])
    assert epsilon(together, 1e-6) * 0.995 <= stated <= epsilon(together, 1e-6) * 1.05


def test_audits_do_not_count():
    """Their rows are made up."""
    texts = warnings_of(lambda: check(model(), n_pairs=2, n_climbs=0, every=1000))
    assert texts == []
    assert not release._unpaid


def test_where_warnings_are_errors_nothing_is_released():
    model().fit(X, Y)
    second = model()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(BudgetWarning, match=r"ledger=Ledger\(path"):
            second.fit(X, Y)
    assert not hasattr(second, "coef_")


@pytest.mark.parametrize(
    "wrapper",
    [
        CalibratedClassifierCV(model(), cv=2, ensemble=True),
        OneVsRestClassifier(model()),
        GridSearchCV(model(), {"n_nonzero": [1, 2]}, cv=2),
        make_pipeline(StandardScaler(), CalibratedClassifierCV(model(), cv=2)),
    ],
    ids=lambda wrapper: type(wrapper).__name__,
)
def test_wrappers_that_fit_several_times_are_not_silent(wrapper):
    y = np.repeat([0, 1, 2, 0], 50) if isinstance(wrapper, OneVsRestClassifier) else Y
    assert warnings_of(lambda: wrapper.fit(X, y))


RUNS = {
    "pipeline": lambda: DPPipeline([("scale", DPStandardizer()), ("model", model())]).fit(X, Y),
    "search": lambda: DPSearchCV(model(), {"n_nonzero": [1, 2]}).fit(X, Y),
    "step": lambda: DPStandardizer(epsilon=1.0).fit(X),
    "feature test": lambda: DPFeatureTest(DOMAIN).fit(X, Y),
    "inference": lambda: dp_inference(X, Y, [0], DOMAIN),
}
EVALUATION = {"evaluation": lambda: dp_evaluate(LogisticRegression().fit(X, Y), X, Y, epsilon=1.0)}


@pytest.mark.parametrize("run", {**RUNS, **EVALUATION}.values(), ids={**RUNS, **EVALUATION})
def test_no_private_run_starts_inside_a_task_of_a_cluster(run, monkeypatch):
    """Dask may carry out a task twice; fits alone were refused there."""
    dask = SimpleNamespace(get_worker=lambda: "a worker")
    monkeypatch.setitem(sys.modules, "distributed", dask)
    with pytest.raises(ParameterError, match="inside a Dask task"):
        run()


@pytest.mark.parametrize("second", RUNS.values(), ids=RUNS)
def test_every_kind_of_fit_counts(second):
    model().fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert len(warnings_of(second)) == 1


def test_paid_seeded_and_noiseless_fits_do_not_count():
    ledger = Ledger(epsilon=50.0, delta=1e-6)
    given = ({"ledger": ledger}, {"random_state": 0}, {"epsilon": np.inf})
    assert not warnings_of(lambda: [model(**p).fit(X, Y) for p in given * 4])
    assert not release._unpaid


def test_fits_for_rows_and_for_persons_are_counted_apart():
    persons = DPGradientClassifier(
        Domain(classes=[0, 1], row_norm=1.0, unit="person", rows_per_unit=1), n_iter=3
    )
    model().fit(X, Y)
    assert not warnings_of(lambda: persons.fit(X, Y, groups=np.arange(200)))
    assert not warnings_of(lambda: model(adjacency="replace-one").fit(X, Y))


# ---- what a guarantee is about --------------------------------------------------------------------


def test_headlines_say_which_table_they_are_about():
    fitted = make_pipeline(StandardScaler(), model()).fit(X, Y)[-1]
    assert "of the table given to fit, add/remove one row" in fitted.privacy_.headline
    assert "learnt from the rows before" in str(fitted.privacy_)
    pipe = DPPipeline([("scale", DPStandardizer()), ("model", model())], epsilon=40.0).fit(X, Y)
    assert "of the raw table" in pipe.privacy_.headline
    assert "of the prepared table" in pipe.model_.privacy_.headline
    search = DPSearchCV(pipe, {"n_nonzero": [1, 2]})
    assert "of the raw table" in search.plan(4).guarantee.headline
    alone = DPSearchCV(model(), {"n_nonzero": [1, 2]})
    assert "of the table given to fit" in alone.plan(4).guarantee.headline
