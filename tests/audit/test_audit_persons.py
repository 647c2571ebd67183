"""Whole persons added, removed and exchanged: the audit finds nothing, and finds what is put in.

Persons of one row, of m equal, opposite, contrary and nearly cancelling rows, of m + 1 and of ten thousand, for every
way through the code of every estimator, with as many rows of a person as there is a proof for.
"""

import numpy as np
import pytest

from audit_cases import ROWS_OF_A_PERSON, build, cases, for_persons
from complaints import check
from dpsparse import (
    Domain,
    DPGradientClassifier,
    DPLassoClassifier,
)
from dpsparse.audit.neighbours import MANY, SHAPES, add_row, of_persons, pairs, replace_row
from dpsparse.audit.replay import boundary_findings, worst_of
from dpsparse.audit.subject import Subject
from dpsparse.audit.verdict import audit
from dpsparse.random import make_generator
from dpsparse.release import Releases
from dpsparse.rows.persons import Persons

ADJACENCIES = ("add-remove", "replace-one")
ALL = [
    pytest.param(estimator, id=name)
    for adjacency in ADJACENCIES
    for name, estimator in cases(adjacency, "person")
]
FIRST = [case for case in ALL if "-0-" in case.id]


def test_the_neighbours_are_those_of_the_proof():
    """Every shape occurs, with the number of rows it is named for; all others are in both tables, untouched."""
    domain = Domain(classes=(0, 1), unit="person", rows_per_unit=3)
    for adjacency in ADJACENCIES:
        source = pairs(domain, adjacency, 12, 5, make_generator(0))
        found = [next(source) for _ in range(len(SHAPES))]
        for pair, shape in zip(found, SHAPES, strict=True):
            last = max(pair.groups.max(), pair.groups2.max())
            sizes = [int(np.sum(groups == last)) for groups in (pair.groups, pair.groups2)]
            assert {"one": 1, "one more": 4, "many": MANY}.get(shape, 3) in sizes
            assert min(sizes) == (0 if adjacency == "add-remove" else min(sizes))
            np.testing.assert_array_equal(pair.X[pair.groups < last], pair.X2[pair.groups2 < last])
            assert pair.swapped().swapped().groups is pair.groups


def test_unequal_numbers_of_rows_under_replace_one():
    domain = Domain(classes=(0, 1), unit="person")
    pair = replace_row(np.eye(4), np.ones(4, int), 1, np.ones(4), 0, "a row")
    for number in range(len(SHAPES) ** 2):
        person = of_persons(pair, domain, number)
        assert len(np.unique(person.groups)) == len(np.unique(person.groups2)) == 3
    added = of_persons(add_row(np.eye(4), np.ones(4, int), np.ones(4), 0, "a row"), domain)
    assert set(added.groups2) - set(added.groups) == {2}


def test_every_estimator_is_audited_with_as_many_rows_as_it_has_a_proof_for():
    rows = {case.id.rsplit("-", 3)[0]: case.values[0].domain.rows_per_unit for case in ALL}
    assert rows["DPGradientClassifier-0"] is None
    assert rows["DPLassoClassifier-0"] == 3
    assert rows["DPScreenedLassoRegressor-0"] == rows["DPScreenedLassoClassifier-1"] == 3
    assert set(rows.values()) == set(ROWS_OF_A_PERSON)


def take_turns(case):
    """Estimators take turns with the adjacency; the other half of the combinations runs with the heavier tests."""
    number = [one.id for one in FIRST if case.id.endswith(one.id.split("-0-")[1])].index(case.id)
    quick = number % 2 == ("replace-one" in case.id)
    return pytest.param(*case.values, id=case.id, marks=() if quick else pytest.mark.heavy)


@pytest.mark.parametrize("estimator", [take_turns(case) for case in FIRST])
def test_replay_of_persons_finds_nothing_quickly(estimator):
    finding = check(estimator, n_pairs=len(SHAPES), n_climbs=0, every=1000)
    assert finding.complaints == ()
    assert finding.height > 0.2


@pytest.mark.parametrize("estimator", [case for case in FIRST if "add-remove" in case.id])
def test_boundary_floats_of_persons_contribute_at_most_their_bound(estimator):
    found = worst_of(boundary_findings(Subject(estimator, 7), every=37))
    assert found.first_complaint == ""
    assert found.reached


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ALL)
def test_replay_and_contributions_of_persons_find_nothing(estimator):
    assert check(estimator, n_pairs=len(SHAPES) ** 2, n_climbs=20, seed=1).complaints == ()
    assert worst_of(boundary_findings(Subject(estimator, 7), every=3)).complaints == ()


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_attack_refutes_the_guarantee_of_persons(adjacency):
    """All attacks, the black box too; the false alarm rate is 0.001 for each estimator."""
    for name in ("DPGradientClassifier", "DPHardThresholdRegressor", "DPLassoClassifier"):
        estimator = for_persons(build(name, adjacency, delta=1e-2)[0])
        verdict = audit(estimator, 4, n_runs=400, confidence=0.999)
        assert verdict.holds, str(verdict)


# ---- what is put in is found ---------------------------------------------------------------------


def found(estimator):
    finding = check(estimator, n_pairs=2 * len(SHAPES), n_climbs=0, every=1000)
    return " ".join(finding.complaints)


GRADIENT = DPGradientClassifier(Domain(classes=(0, 1), unit="person"), n_iter=3)


def test_sums_that_are_not_cut_are_found(monkeypatch):
    sums = Persons.sums

    def uncut(self, indptr, z, constant, slopes, lengths, *rest):
        step, longest, largest = lengths
        sums(self, indptr, z, constant, slopes, (step, 2.0 * longest, largest), *rest)

    monkeypatch.setattr(Persons, "sums", uncut)
    assert "too far" in found(GRADIENT)


def test_rows_beyond_the_cap_are_found(monkeypatch):
    """Frank-Wolfe pays for m rows of a person; whoever keeps more moves the scores further."""
    monkeypatch.setattr(Releases, "capped", lambda self, rows: rows)
    domain = Domain(classes=(0, 1), unit="person", rows_per_unit=3, n_samples=12)
    assert found(DPLassoClassifier(domain, radius=2.0, n_iter=4)) != ""
