"""A mechanism is one class: the door pays it out and the audit tries it, without being told of it.

The toy below is what a contributor would write (docs/architecture.md, "to add something, touch"): counts of classes
with two-sided geometric noise. It needs no method of `Releases`, no hook of the audit and no new event.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse as sp

from dpsparse import Domain, PrivateCount
from dpsparse.accounting import (
    Exponential,
    Geometric,
    NonPrivate,
    Phase,
    Plan,
    Repeated,
    RoundedGaussian,
    epsilon,
)
from dpsparse.audit import law
from dpsparse.audit.noise import noise_p_value
from dpsparse.audit.recorded import RecordedReleases, Run, Tape
from dpsparse.audit.replay import compare_by_phase
from dpsparse.exceptions import CalibrationError
from dpsparse.mechanisms import MECHANISMS, Answer, CommonNames, Picks, Release
from dpsparse.mechanisms.top_k import ROUNDING_RANGE
from dpsparse.random import make_generator, two_sided_geometric
from dpsparse.release import Releases
from dpsparse.rows import Query, Rows
from dpsparse.sensitivity import class_counts, vertex_score, vertex_score_range


@dataclass(frozen=True)
class NoisyCounts(Answer):
    """Counts in whole numbers, each with its own two-sided geometric noise."""

    kind: ClassVar[str] = "toy counts"
    events: ClassVar[Any] = (Geometric,)
    proof: ClassVar[str] = "docs/proofs/accounting.md"
    lemmas: ClassVar[tuple[str, ...]] = ("class_counts",)
    added: ClassVar[bool] = True

    query: Query
    scale: float

    @classmethod
    def paid_by(cls, query):
        def made(event, adjacency):
            if isinstance(event, NonPrivate):
                return cls(query, 0.0)
            # One row moves the counts by the square of its L2 norm in L1, as every move is by one.
            moved = round(class_counts(adjacency).value ** 2)
            return cls(query, moved / (event.sensitivity / event.scale))

        return made

    @property
    def step(self):
        return 1.0 / self.scale if self.scale > 0.0 else math.inf

    def question(self):
        # A contribution of one is rounded down to a whole number of units: of a unit of 3/4, one.
        return self.query.whole(0.75).reshape(-1)

    def draw(self, question, rng):
        if self.scale == 0.0:
            return question
        noise = [two_sided_geometric(rng, self.scale) for _ in question]
        return question + np.array(noise, np.int64)

    def bound(self, adjacency):
        return Fraction(round(class_counts(adjacency).value ** 2)), "L1"

    @classmethod
    def size(cls, change):
        return float(np.abs(change).sum())

    @classmethod
    def price(cls, event):
        return float(event.sensitivity / event.scale)

    @classmethod
    def loss(cls, a, b):
        return float((np.abs(a.answer - b.query) - np.abs(a.answer - a.query)).sum()) * a.step

    @classmethod
    def places(cls, release, rng):
        """Where each noise lies in its law; ties are broken at random."""
        ratio, k = math.exp(-release.step), release.noise.astype(float)
        mass = (1.0 - ratio) / (1.0 + ratio) * ratio ** np.abs(k)
        below = np.where(k > 0, 1.0 - ratio**k / (1.0 + ratio), ratio ** (1.0 - k) / (1.0 + ratio))
        return below + rng.random(k.size) * mass


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    """The registry as if the toy were the only mechanism that geometric noise pays for."""
    monkeypatch.setitem(MECHANISMS, NoisyCounts.kind, NoisyCounts)
    monkeypatch.delitem(MECHANISMS, "geometric")
    yield
    MECHANISMS.pop(NoisyCounts.kind, None)


MECHANISMS.pop(NoisyCounts.kind)  # defining it entered it; other tests shall not see it


def plan(adjacency, count=1):
    event = Repeated(Geometric(2.0), count)
    total = epsilon(event, 1e-6)
    return Plan("toy", (Phase("counts", event),), total, 1e-6, adjacency)


def rows(y):
    domain = Domain(classes=[0, 1, 2])
    X = sp.csr_array(np.ones((len(y), 1)))
    return Rows.clip(X, np.asarray(y), domain, labels=np.array([0, 1, 2]))


def recorded(y, adjacency, script=None, count=1, seed=0):
    followed = plan(adjacency, count)
    past = None if script is None else Tape(runs=[Run("", followed, script)])
    releases = RecordedReleases(followed, make_generator(seed), Tape(script=past))
    for _ in range(count):
        releases.release("counts", NoisyCounts.paid_by(rows(y).class_counts(3)))
    return releases.entries


PAIRS = {"add-remove": ([0, 1, 1, 2], [0, 1, 1]), "replace-one": ([0, 1, 1, 2], [0, 1, 1, 0])}


@pytest.mark.parametrize("adjacency", PAIRS)
def test_a_toy_is_recorded_replayed_and_compared_with_its_price(adjacency):
    one, two = PAIRS[adjacency]
    first = recorded(one, adjacency)
    second = recorded(two, adjacency, script=first)
    complaints, tightness = compare_by_phase(plan(adjacency).phases, first, second)
    assert not complaints
    assert tightness == {"counts": pytest.approx(1.0)}
    assert first[0].reach(second[0]) == (1.0, True)
    assert abs(law.loss(first[0], second[0])) <= 0.5 + 1e-12


@pytest.mark.parametrize("adjacency", PAIRS)
def test_a_toy_that_takes_too_little_noise_is_refuted(adjacency, monkeypatch):
    right = NoisyCounts.paid_by

    def too_little(query):
        return lambda event, adjacency: replace(right(query)(event, adjacency), scale=1.0)

    monkeypatch.setattr(NoisyCounts, "paid_by", too_little)
    one, two = PAIRS[adjacency]
    first = recorded(one, adjacency)
    complaints, _ = compare_by_phase(
        plan(adjacency).phases, first, recorded(two, adjacency, script=first)
    )
    assert "times what it declared" in complaints[0]


def test_the_law_of_a_toy_is_tested_without_a_line_in_the_audit(monkeypatch):
    entries = recorded([0, 1, 1, 2], "add-remove", count=700)
    assert noise_p_value(entries, NoisyCounts.kind) > 1e-3
    halved = NoisyCounts.draw
    monkeypatch.setattr(
        NoisyCounts, "draw", lambda self, q, rng: q + (halved(self, 0 * q, rng) * 0.7).astype(int)
    )
    entries = recorded([0, 1, 1, 2], "add-remove", count=700)
    assert noise_p_value(entries, NoisyCounts.kind) < 1e-6


def test_a_phase_pays_only_for_its_own_mechanism():
    event = RoundedGaussian(1.0)
    other = Plan("toy", (Phase("counts", event),), epsilon(event, 1e-6), 1e-6, "add-remove")
    releases = RecordedReleases(other, make_generator(0))
    query = rows([0, 1]).class_counts(3)
    with pytest.raises(CalibrationError, match="does not pay"):
        releases.release("counts", NoisyCounts.paid_by(query))
    paid = RecordedReleases(plan("add-remove"), make_generator(0))
    paid.release("counts", NoisyCounts.paid_by(query))
    with pytest.raises(CalibrationError, match="more than it pays"):
        paid.release("counts", NoisyCounts.paid_by(query))


class Steps:
    """Stands for the steps of Frank-Wolfe."""

    def draw(self, rng, n_steps, tell):
        return n_steps


def ask_for(way, releases, share):
    """A release that takes `share`, a quarter or all, of the phase that pays for four picks or one sum."""
    query = rows([0, 1, 1]).class_counts(4)
    if way == "gaussian":
        return releases.gaussian("p", query, share)
    if way == "top_k":
        return releases.top_k("p", query, round(4 * share), unit=0.5)
    if way == "vertices":
        return releases.vertices("p", Steps(), round(4 * share))
    return releases.geometric("p", rows([0, 1, 1]).unit(np.ones(2, np.float32)).count_shorter(9.0))


@pytest.mark.parametrize("way", ["gaussian", "top_k", "vertices", "geometric"])
def test_a_phase_that_is_used_up_releases_nothing_more(way):
    """In parts or at once: what would leave beyond them nobody has paid for. The replay sees it as well."""
    event = {
        "gaussian": RoundedGaussian(2.0, 1.0, 4),
        "geometric": Geometric(scale=9.0, sensitivity=1),
    }.get(way, Repeated(Exponential(0.1), 4))
    paid = Plan("toy", (Phase("p", event),), epsilon(event, 1e-6), 1e-6, "add-remove")
    for shares in ([1.0], [0.25] * 4, [0.5, 0.25, 0.25]):
        if way == "geometric" and len(shares) > 1:
            continue
        releases = Releases(paid, make_generator(0))
        for share in shares:
            ask_for(way, releases, share)
        with pytest.raises(CalibrationError, match="more than it pays"):
            ask_for(way, releases, 0.25)


@pytest.mark.parametrize("share", [-0.5, -1e-12, math.nan, 1.1])
def test_a_share_that_is_none_is_refused(share):
    """What is below zero, or no number, would unlock a phase for ever."""
    event = RoundedGaussian(2.0, 1.0, 4)
    paid = Plan("toy", (Phase("p", event),), epsilon(event, 1e-6), 1e-6, "add-remove")
    with pytest.raises(CalibrationError, match="impossible share"):
        Releases(paid, make_generator(0)).gaussian("p", rows([0, 1]).class_counts(4), share)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_picks_leave_room_for_the_rounding_of_their_sampler(adjacency):
    """The range of the law that is drawn, 2 kappa D, and what rounding adds to it are what the phase pays for."""
    event = Exponential(1e-3)
    for moved in (vertex_score(1.0, 1.0, adjacency), vertex_score_range(1.0, 2.0, 0.5, adjacency)):
        reach = moved.value if moved.norm == "range" else 2.0 * moved.value
        spent = Picks.kappa_for(moved, event) * reach + ROUNDING_RANGE
        assert ROUNDING_RANGE > 1e-12
        assert event.eta * (1.0 - 1e-12) <= spent <= event.eta * (1.0 + 1e-15)


def test_a_count_has_the_noise_that_its_phase_pays():
    rule, cheaper = PrivateCount(1, 9, 0.5), PrivateCount(1, 9, 0.1)
    paid = Plan("toy", (Phase("count", rule.event),), 0.5, 1e-6, "add-remove")
    assert 0 <= Releases(paid, make_generator(0)).count("count", rule, lambda _: 3, 20) <= 9
    cheap = Plan("toy", (Phase("count", cheaper.event),), 0.1, 1e-6, "add-remove")
    with pytest.raises(CalibrationError, match="another count"):
        Releases(cheap, make_generator(0)).count("count", rule, lambda _: 3, 20)


def test_without_noise_a_phase_pays_for_any_number_of_exact_answers():
    exact = Plan("toy", (Phase("counts", NonPrivate()),), math.inf, 1e-6, "add-remove")
    releases = RecordedReleases(exact, make_generator(0))
    for _ in range(3):
        made = NoisyCounts.paid_by(rows([0, 1, 1]).class_counts(3))
        assert releases.release("counts", made).tolist() == [1, 2, 0]


def test_names_told_have_the_law_of_truncated_gaussians():
    """Loss of told names against the densities written out; a name of one table alone is told apart for certain."""
    told = np.array([("a", 9)], dtype=[("name", object), ("weight", np.int64)])
    here = Release("p", "names", np.array([5, 1]), told, 0.5, names=("a", "b"), limit=4)
    there = Release("p", "names", np.array([4]), told, 0.5, names=("a",), limit=4)
    from scipy.stats import norm

    expected = norm.logpdf(9, 5, 2) + norm.logcdf(4, 1, 2) - norm.logpdf(9, 4, 2)
    assert CommonNames.loss(here, there) == pytest.approx(expected)
    alone = Release("p", "names", np.array([5]), told, 0.5, names=("b",), limit=4)
    assert CommonNames.loss(here, alone) == math.inf
