"""The filter by Gaussian budget: cheap in every order, and never beaten by who chooses after looking."""

import json
import math
import sqlite3

import mpmath as mp
import numpy as np
import pytest
from scipy.stats import norm

from dpsparse.exceptions import BudgetError, LedgerError
from dpsparse.privacy import (
    ZCDP,
    Exponential,
    Gaussian,
    Geometric,
    Laplace,
    Ledger,
    ObjectivePerturbation,
    Phase,
    Plan,
    Pure,
    Repeated,
    RoundedGaussian,
    Sequence,
    ThresholdedGaussian,
    composition,
    epsilon,
    gaussian_parameter,
    ledger_filter,
)
from dpsparse.privacy.composition import withdrawal
from dpsparse.privacy.dominance import step_square
from dpsparse.privacy.events import to_dict
from dpsparse.privacy.gaussian import profile as gaussian_profile
from dpsparse.privacy.ledger_book import digest_of, read_terms
from dpsparse.privacy.ledger_filter import GAUSSIAN, RENYI, RESERVE, Price, Terms, price_of

DELTA = 1e-6
TERMS = Terms(1.0, DELTA, "add-remove")


def plan(*events):
    price = epsilon(Sequence(events), DELTA)
    phases = tuple(Phase(f"step {i}", event) for i, event in enumerate(events))
    return Plan("test", phases, price, DELTA, "add-remove")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.db"


# ---- what it costs ------------------------------------------------------------------------------

SHARE = 0.0056  # a tenth of the Gaussian budget at (1, 1e-6)


def steps(count, share=1.0):
    return Repeated(Exponential(2.0 * math.sqrt(SHARE * share / count)), count)


TEN = [
    Repeated(RoundedGaussian(math.sqrt(30 / SHARE), 1.0, 1000), 30),
    steps(1000),
    steps(30),
    steps(10),
    Sequence((steps(20, 0.4), RoundedGaussian(math.sqrt(1 / (0.6 * SHARE)), 1.0, 50))),
    Geometric(1 / 0.03, 1),
    Exponential(0.05),
    Laplace(1 / 0.03),
    Gaussian(math.sqrt(1 / SHARE)),
    steps(4000),
]


def passes(events, ceiling):
    ledger = Ledger(epsilon=ceiling, delta=DELTA)
    for event in events:
        if not ledger.would_allow(plan(event)):
            return False
        ledger.reserve(plan(event))
    return True


@pytest.mark.parametrize("order", range(14))
def test_ten_mixed_fits_cost_at_most_two_per_cent_more_in_every_order(order):
    """Each of them first once, and four random orders; the optimum is for prices fixed in advance."""
    optimum = epsilon(Sequence(tuple(TEN)), DELTA)
    if order < 10:
        events = TEN[order:] + TEN[:order]
    else:
        events = [TEN[i] for i in np.random.default_rng(order).permutation(10)]
    assert passes(events, 1.015 * optimum)
    assert not passes(events, 0.998 * optimum)


def tilt(share, flatness):
    """Logistic objective perturbation as a two-stage fit has it."""
    scale = 1.0 / math.sqrt(SHARE * share)
    return ObjectivePerturbation(scale, 1.0, flatness, 1.0, "logistic")


TILTS = [tilt(0.6, 0.08), tilt(0.6, 0.06), tilt(0.6, 0.03)]


@pytest.mark.parametrize("turn", [0, 3, 8])
def test_two_stage_fits_share_the_currency(turn):
    """Against a limit that no accountant can pass: the noise of the perturbations without their curvature."""
    two_stage = [Sequence((steps(20, 0.4), event)) for event in TILTS]
    events = [*TEN[:3], *two_stage, *TEN[5:7], *TEN[8:]]
    noise = [Gaussian(event.scale) for event in TILTS]
    limit = epsilon(Sequence((*TEN[:3], *[steps(20, 0.4)] * 3, *noise, *TEN[5:7], *TEN[8:])), DELTA)
    assert passes(events[turn:] + events[:turn], 1.025 * limit)
    assert not passes(events[turn:] + events[:turn], 0.998 * limit)


def test_a_fit_pays_less_beside_a_larger_budget_and_never_less_than_its_variance():
    for event, variance in ((Exponential(0.05), 0.05**2 / 4), (Pure(0.02), 0.02**2)):
        alone = gaussian_parameter(event)[0] ** 2
        prices = [withdrawal(event, b)[0] for b in (0.0, 1e-3, 3e-3, 1e-2, 0.05, 1.0)]
        assert prices == sorted(prices, reverse=True)
        assert prices[0] == pytest.approx(alone)
        assert variance < prices[-1] < 1.003 * variance
    noise = Gaussian(7.0)
    for budget in (0.0, 0.01, 1.0, 1e4):
        assert withdrawal(noise, budget)[0] == pytest.approx(1 / 49, rel=1e-12)


def test_the_parameter_of_a_mixture_is_below_the_sum_of_its_parts():
    parts = (Gaussian(20.0), Exponential(0.01), Pure(0.005))
    apart = math.sqrt(sum(gaussian_parameter(p)[0] ** 2 for p in parts))
    assert 1 / 20 < gaussian_parameter(Sequence(parts))[0] < 0.995 * apart


# ---- an adversary with an exact law -------------------------------------------------------------


GRID = 5000


def adversary(price, ranges, cells=8):
    """The exact delta of who takes, in every state, the best affordable step on a lattice.

    State: what is left of the budget, and y = epsilon minus the loss so far. A step of range eta has losses t and
    t - eta, t on the lattice and chosen in every state; `price(eta, left)` is what it takes. Or all that is left goes
    into one Gaussian. No noise is sampled; what is left is rounded down to 1/GRID of the budget.
    """
    h, unit = min(ranges) / cells, TERMS.budget / GRID
    start = round(1.3 / h)
    y = TERMS.epsilon - TERMS.shift + h * np.arange(-start, start)
    known = {}

    def value(left):
        if left not in known:
            best = gaussian_profile(math.sqrt(left * unit), y)
            for eta in ranges:
                after = math.floor(left - price(eta, left * unit) / unit)
                if after >= 0:
                    rest, m = value(after), round(eta / h)
                    for j in range(m + 1):
                        t = j * h
                        p = math.expm1(t - eta) / math.expm1(-eta)
                        up = np.concatenate([np.full(j, -math.expm1(y[0])), rest])[: len(y)]
                        down = np.concatenate([rest, np.zeros(m)])[m - j :][: len(y)]
                        np.maximum(best, p * up + (1.0 - p) * down, out=best)
            known[left] = best
        return known[left]

    return float(value(GRID)[start])


def taken(eta, left):
    return withdrawal(Exponential(eta), left)[0]


@pytest.mark.parametrize("ranges", [(0.06,), (0.03, 0.12)])
def test_no_adaptive_choice_of_prices_passes_the_share_of_the_gaussian_class(ranges):
    """Steps of two ranges and Gaussian noise, chosen after each outcome: within delta, and close to it."""
    reached = adversary(taken, ranges, cells=8 if len(ranges) == 1 else 4)
    assert 0.999 * TERMS.gaussian_delta < reached <= TERMS.gaussian_delta


@pytest.mark.parametrize(
    "mutant",
    [
        lambda eta, left: 0.95 * taken(eta, left),  # a little too cheap
        lambda eta, left: 0.98 * eta * eta / 4.0,  # below the variance
        lambda eta, left: taken(0.97 * eta, left),  # eta read too small
    ],
)
def test_the_adversary_notices_prices_that_are_too_low(mutant):
    assert adversary(mutant, (0.06,)) > TERMS.gaussian_delta


# ---- the reserve --------------------------------------------------------------------------------

ROOM = DELTA * RESERVE / 2.0


def words(share):
    return ThresholdedGaussian(60.0, 1.0, 1, share * ROOM)


def sampled(share):
    """Gaussian noise on so many values that its sampler costs this share of the room at epsilon 3."""
    return RoundedGaussian(60.0, 1.0, round(share * ROOM * 2.0**90 / (1.0 + math.exp(3.0))))


@pytest.mark.parametrize("last", [Gaussian(80.0), Exponential(0.01), ZCDP(1e-4), steps(100, 0.1)])
@pytest.mark.parametrize("both", [(words(0.6), sampled(0.6)), (sampled(0.6), words(0.6))])
def test_tails_slacks_and_leaks_share_one_reserve(both, last):
    """Each fits alone, and both do not, whichever class the path would end in."""
    for first in both:
        ledger = Ledger(epsilon=3.0, delta=DELTA)
        ledger.reserve(plan(first))
        assert ledger.would_allow(plan(last))
    ledger = Ledger(epsilon=3.0, delta=DELTA)
    ledger.reserve(plan(both[0]))
    assert not ledger.would_allow(plan(both[1]))
    ledger.reserve(plan(last))
    assert not ledger.would_allow(plan(both[1]))


def test_slack_of_the_gaussian_is_charged_to_the_same_reserve(monkeypatch):
    honest = composition.leaf_parameter

    def slack(leaf, count):
        mu, leak = honest(leaf, count)
        return mu, 0.7 * ROOM if isinstance(leaf, Laplace) else leak

    monkeypatch.setattr(composition, "leaf_parameter", slack)
    ledger = Ledger(epsilon=3.0, delta=DELTA)
    ledger.reserve(plan(Gaussian(50.0)))
    ledger.reserve(plan(Laplace(100.0)))
    assert not ledger.would_allow(plan(sampled(0.6)))  # class 3 and class 4 alike
    assert not ledger.would_allow(plan(Sequence((sampled(0.6), ZCDP(1e-5)))))
    assert ledger.would_allow(plan(sampled(0.2)))
    assert ledger.would_allow(plan(Sequence((sampled(0.2), ZCDP(1e-5)))))


def test_an_unused_reserve_must_not_be_lent_to_the_gaussian_class():
    """Why it is fixed: who may choose, after one fit, between the rest of mu^2 and a leak has 1.4 delta."""
    low, high = 0.1, 0.3
    for _ in range(60):
        mu = (low + high) / 2
        half = gaussian_profile(mu, np.array(1.0)) < DELTA / 2
        low, high = (mu, high) if half else (low, mu)
    whole = math.sqrt(TERMS.budget)
    rest = math.sqrt(whole**2 - low**2)
    z = np.linspace(-8.0, 12.0, 20001)
    left = 1.0 - (low * z + low**2 / 2)
    gaussian = gaussian_profile(rest, left)
    leak = DELTA / 2 + (1 - DELTA / 2) * np.maximum(0.0, -np.expm1(left))
    weight = norm.pdf(z) * (z[1] - z[0])
    assert float(weight @ np.maximum(gaussian, leak)) > 1.4 * DELTA
    ledger = Ledger(epsilon=1.0, delta=DELTA)
    ledger.reserve(plan(Gaussian(1 / low)))
    assert ledger.would_allow(plan(Gaussian(1 / (0.999 * rest))))
    assert not ledger.would_allow(plan(ThresholdedGaussian(1e4, 1.0, 1, DELTA / 2)))


# ---- fixed when reserved, whatever is learnt later ----------------------------------------------


def body(path, seq):
    connection = sqlite3.connect(path)
    [(text,)] = connection.execute("SELECT body FROM dpsparse_entry WHERE seq = ?", (seq,))
    connection.close()
    return json.loads(text)


def test_the_kind_of_an_account_stands_in_its_entries(path):
    whole = Ledger(path, epsilon=1.0, delta=DELTA)
    Ledger(path, partition="p").reserve(plan(Pure(0.2)))
    whole.reserve(plan(steps(100)))
    assert [body(path, seq)["price"]["kind"] for seq in (1, 2)] == [RENYI, GAUSSIAN]
    book = Ledger(path)
    with book._store.transaction(write=False) as session:
        views = book._read(session)._views(None)
    assert sorted(view.kind for view in views) == [GAUSSIAN, RENYI]  # of "p", and of all others


def test_a_better_table_later_changes_no_entry(path, monkeypatch):
    """Neither kind nor price: an account that began by Renyi curves does not become a Gaussian one."""
    ledger = Ledger(path, epsilon=1.0, delta=DELTA)
    ledger.reserve(plan(Pure(0.2)))
    ledger.reserve(plan(steps(100)))
    before = ledger.remaining()
    monkeypatch.setattr(composition, "step_square", lambda eta, behind: eta * eta / 8.0)
    monkeypatch.setattr(ledger_filter, "_opens_gaussian", lambda event, terms: True)
    fresh = Ledger(path)
    assert fresh.remaining() == before
    with fresh._store.transaction(write=False) as session:
        [view] = fresh._read(session)._views(None)
    assert view.kind == RENYI
    assert view.left is None
    gaussian = Ledger(epsilon=1.0, delta=DELTA)
    gaussian.reserve(plan(steps(100)))
    gaussian.reserve(plan(steps(30)))
    left = gaussian.remaining()
    spent = gaussian._book._views(None)[0].square
    monkeypatch.undo()
    assert gaussian.remaining() == left
    assert gaussian._book._views(None)[0].square == spent  # as it was written, cheap as it may be


def test_orders_and_reserve_are_part_of_the_terms(path, monkeypatch):
    ledger = Ledger(path, epsilon=1.0, delta=DELTA)
    monkeypatch.setattr(ledger_filter, "filter_order", lambda terms, share: 2.0)
    monkeypatch.setattr(ledger_filter, "RESERVE", 0.25)
    assert Ledger(path).terms == ledger.terms
    assert ledger.terms.orders[0] != 2.0
    connection = sqlite3.connect(path)
    [(text,)] = connection.execute("SELECT terms FROM dpsparse_account")
    connection.close()
    record = json.loads(text)
    assert (record["format"], record["reserve"]) == (3, RESERVE)
    with pytest.raises(LedgerError, match="rules"):
        read_terms(json.dumps(record | {"mixed_share": 0.5}))


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"square": 1e-9}, "not one that this dpsparse can read"),  # below that of its noise
        ({"square": -1.0}, "not one that this dpsparse can read"),
        ({"square": "nan"}, "not one that this dpsparse can read"),
        ({"kind": "free"}, "not one that this dpsparse can read"),
        ({"renyi": [0.0]}, "not one that this dpsparse can read"),
        ({"square": 1.01 * (0.0025 + 0.01**2 / 4)}, "below that of its fit"),
        ({"kind": RENYI}, "below that of its fit"),
        ({"slack": 0.0}, "below that of its fit"),
        ({"renyi": [0.0, 0.0]}, "below that of its fit"),
    ],
)
def test_a_price_that_was_edited_is_found(path, change, found):
    """Consistently rewritten books are beyond a chain of hashes; a wrong price in one is not."""
    ledger = Ledger(path, epsilon=1.0, delta=DELTA)
    ledger.reserve(plan(Gaussian(20.0), steps(100)))
    entry = body(path, 1)
    text = json.dumps(entry | {"price": entry["price"] | change}, sort_keys=True)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("DROP TRIGGER dpsparse_no_update")
    [(terms,)] = connection.execute("SELECT terms FROM dpsparse_account")
    digest = digest_of(digest_of("", terms), text)
    connection.execute("UPDATE dpsparse_entry SET body = ?, hash = ?", (text, digest))
    connection.execute("UPDATE dpsparse_account SET head = ?", (digest,))
    connection.close()
    with pytest.raises(LedgerError, match=found):
        Ledger(path).verify()


def test_a_price_is_read_as_it_was_written():
    for event in (*TEN, ZCDP(0.01), Pure(0.3), words(0.5)):
        price = price_of(event, TERMS, 0.03)
        again = Price.from_dict(json.loads(json.dumps(price.to_dict(), allow_nan=False)))
        assert again == price


# ---- books of earlier versions ------------------------------------------------------------------


def early(path, *events, parts=None):
    """A book as versions without prices in their entries wrote it (format 1)."""
    Ledger(path, epsilon=1.0, delta=DELTA)
    connection = sqlite3.connect(path, isolation_level=None)
    terms = {"format": 1, "dataset": "default", "epsilon": 1.0, "delta": DELTA}
    text = json.dumps(terms | {"adjacency": "add-remove", "unit": "one row", "nonce": "1"})
    head = digest_of("", text)
    connection.execute("UPDATE dpsparse_account SET terms = ?, head = ?", (text, head))
    for seq, event in enumerate(events, 1):
        ours = plan(event)
        entry = {
            "kind": "reserve",
            "partition": parts[seq - 1] if parts else None,
            "method": "early",
            "event": to_dict(ours.event),
            "epsilon": ours.epsilon,
            "delta": DELTA,
            "proven": True,
            "total": 1.0,
            "version": "0.1",
            "time": "2026",
        }
        text = json.dumps(entry, sort_keys=True)
        head = digest_of(head, text)
        connection.execute(
            "INSERT INTO dpsparse_entry VALUES ('default', ?, ?, ?)", (seq, text, head)
        )
        connection.execute("UPDATE dpsparse_account SET n_entries = ?, head = ?", (seq, head))
    connection.close()
    return Ledger(path)


def kinds(ledger):
    with ledger._store.transaction(write=False) as session:
        return [view.kind for view in ledger._read(session)._views(ledger.partition)]


def test_an_early_book_that_began_with_noise_gets_the_better_bound(path):
    """Gaussian first, then Frank-Wolfe fits: before, the Renyi class with its small share."""
    ledger = early(path, Gaussian(12.0), steps(100))
    assert kinds(ledger) == [GAUSSIAN]
    renyi = Terms(1.0, DELTA, "add-remove", early=True)
    for event in (steps(100), steps(1000), steps(30), steps(400), steps(100)):
        ledger.reserve(plan(event))
    assert ledger.verify() == 7
    with ledger._store.transaction(write=False) as session:
        [view] = ledger._read(session)._views(None)
    order, share = np.array(renyi.order(GAUSSIAN)), renyi.renyi_delta(GAUSSIAN)
    assert view.renyi[0] + float(ledger_filter.conversion(order, share)) > 1.0


@pytest.mark.parametrize("first", [steps(100), Pure(0.1), ZCDP(0.001), Exponential(1e-6)])
def test_an_early_book_that_began_otherwise_stays_a_renyi_account(path, first):
    ledger = early(path, first)
    ledger.reserve(plan(Gaussian(30.0)))
    assert kinds(ledger) == [RENYI]


@pytest.mark.parametrize("first", [steps(1000), steps(10), Exponential(1e-6)])
def test_in_an_early_account_new_entries_follow_its_rule(path, first):
    """An earlier version may come back to it, and would call the account a Renyi one."""
    ledger = early(path)
    ledger.reserve(plan(first))
    assert kinds(ledger) == [RENYI]
    assert body(path, 1)["price"]["kind"] == RENYI
    part = Ledger(path, partition="q")
    part.reserve(plan(Gaussian(50.0)))
    assert kinds(part) == [RENYI]  # the row of q has seen `first` first


def test_entries_without_price_are_valued_alike_by_all_versions(path):
    """At one slack, so that two versions differ in mu alone; a fit that needs more slack has no mu."""
    event = Sequence((Gaussian(12.0), steps(100)))
    price = ledger_filter.early_price(event, Terms(1.0, DELTA, "add-remove", early=True))
    assert price.slack == ledger_filter.EARLY_SLACK
    assert price.kind == RENYI
    assert ledger_filter.early_price(Gaussian(3.0), TERMS).slack == 0.0


# ---- who chooses parts, kinds and prices after looking ------------------------------------------


def test_zero_prices_decide_nothing_that_matters(path):
    ledger = Ledger(path, epsilon=1.0, delta=DELTA)
    for _ in range(3):
        ledger.reserve(plan(Sequence(())))
    ledger.reserve(plan(Exponential(1e-200)))  # whose mu^2 is 0 in float64
    ledger.reserve(plan(Gaussian(1e9)))
    assert ledger.remaining() > 0.999
    ledger.reserve(plan(steps(100)))
    assert not ledger.would_allow(plan(Gaussian(1 / math.sqrt(TERMS.budget))))
    assert ledger.verify() == 6


@pytest.mark.parametrize("ceiling", [1e-3, 1.0, 30.0, 600.0, 1e4])
def test_many_steps_fill_a_ceiling_of_any_size(ceiling):
    budget = Terms(ceiling, DELTA, "add-remove").budget
    eta = 2.0 * math.sqrt(budget / 1000.0) if budget < 1e3 else 1.0
    ledger = Ledger(epsilon=ceiling, delta=DELTA)
    share = Repeated(Exponential(eta), 230 if budget < 1e3 else int(0.9 * budget))
    for _ in range(4):
        ledger.reserve(plan(share))
    assert not ledger.would_allow(plan(share))
    ledger.verify()


def test_the_poorest_part_decides_the_price_of_a_fit_on_all_rows(path):
    """A step is dear for a row whose budget is nearly used up, and is charged so to every row."""
    whole = Ledger(path, epsilon=1.0, delta=DELTA)
    left = 2.2 * 0.06**2 / 4
    noise = Gaussian(1.0 / math.sqrt(TERMS.budget - left))
    choice = plan(Exponential(0.06))
    rich = withdrawal(Exponential(0.06), TERMS.budget)[0]
    Ledger(path, partition="rich").reserve(choice)
    Ledger(path, partition="poor").reserve(plan(noise))
    whole.reserve(choice)
    charged = [body(path, seq)["price"]["square"] for seq in (1, 3)]
    assert charged[0] == rich
    assert charged[1] == pytest.approx(gaussian_parameter(Exponential(0.06))[0] ** 2)
    assert charged[1] > 1.2 * charged[0]


def test_a_crash_after_the_reservation_leaves_the_price(path):
    first = Ledger(path, epsilon=1.0, delta=DELTA)
    first.reserve(plan(steps(100, 8.0)))  # never committed
    del first
    with pytest.raises(BudgetError):
        Ledger(path).reserve(plan(steps(100, 3.0)))


def test_certificates_of_steps_hold_in_fifty_digits():
    """A step beside a Gaussian, at random y and t: the product is below the larger Gaussian."""

    def exact(square, y):
        phi = lambda z: mp.erfc(-z / mp.sqrt(2)) / 2  # noqa: E731
        mu = mp.sqrt(square)
        return phi(mu / 2 - y / mu) - mp.exp(y) * phi(-mu / 2 - y / mu)

    rng = np.random.default_rng(0)
    with mp.workdps(50):
        for eta in (1e-3, 0.05, 0.7):
            for worth in (1.6, 3.0, 20.0, 200.0):
                behind = worth * eta**2 / 4
                added = step_square(eta, behind)
                assert added < 1.1 * eta**2 / 4
                for y, t in rng.uniform(0.0, 1.0, (12, 2)) * (6 * math.sqrt(behind), eta):
                    p = mp.expm1(t - mp.mpf(eta)) / mp.expm1(-mp.mpf(eta))
                    up, down = (exact(mp.mpf(behind), mp.mpf(v)) for v in (y - t, y - t + eta))
                    assert p * up + (1 - p) * down <= exact(behind + mp.mpf(added), mp.mpf(y))
