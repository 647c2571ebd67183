"""Is the noise drawn from its law? Three places are looked at.

runs       answers of fits on a loud pair, and picks among many features that nobody has
releases   queries that no table would give: thousands of candidates that are unlikely one by one and likely
           together, and vectors long enough for threads
keys       two secure fits draw from different streams, and so do the threads of one release
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy import stats
from scipy.special import logsumexp

from dpsparse.accounting.events import Event, Exponential, Repeated, RoundedGaussian
from dpsparse.accounting.guarantee import Phase, Plan
from dpsparse.audit.recorded import RecordedReleases
from dpsparse.audit.replay import declared_costs, loudest, reused
from dpsparse.audit.subject import Subject
from dpsparse.exceptions import ParameterError
from dpsparse.mechanisms import MECHANISMS, Release
from dpsparse.mechanisms.picks import keys
from dpsparse.random import make_generator, streams
from dpsparse.release import Releases, make_releases
from dpsparse.rows import Query
from dpsparse.sensitivity import signed_sum


def find_wrong_noise(subject: Subject, n_runs: int, seed: int) -> tuple[str, float]:
    """What the noise of a fit does wrong, empty if nothing, and the smallest p-value of its runs. Wrong with
    probability below 1e-5."""
    pair = loudest(subject, seed)
    # On both tables of the pair: on one alone a fault may hide (a sign read off a score near 0). One after
    # the other: what is too likely on one table and too unlikely on the other would cancel. Together for power.
    here, there = (
        [e for run in range(n_runs) for e in subject.record(side, seed + run).entries]
        for side in (pair, pair.swapped())
    )
    kinds = declared_costs(subject.plan.event)
    choir = _picks_of_a_choir(subject, n_runs, seed) if kinds["picks"] else []
    kind, p_value = _worst_p_value(here, there, here + there, choir)
    complaint = ""
    level = 1e-6  # of each of the tests
    if p_value <= level:
        complaint = f"{kind} noise does not follow its law (p = {p_value:.1g})"
    elif _shares_a_stream(subject.plan):
        complaint = "two secure fits draw from the same stream of noise"
    elif kinds["gaussian"] and reused(_long_noise(seed)):
        complaint = "threads of one release draw the same noise"
    elif kinds["gaussian"] and noise_p_value(_long_noise(seed), "gaussian") <= level:
        complaint = "the noise of long vectors does not follow its law"
    elif kinds["picks"] and _choir_p_value(seed) <= level:
        complaint = "unlikely candidates are picked more rarely than they should be, or never"
    return complaint, p_value


def _picks_of_a_choir(subject: Subject, n_runs: int, seed: int) -> list[Release]:
    """Picks on a crowd with many features that nobody has: unlikely one by one, likely together."""
    wide = Subject(subject.estimator, 64 * subject.schema.n_features)
    crowd = next(p for p in wide.worst_pairs() if p.name.startswith("against the crowd"))
    try:
        runs = [wide.record(crowd, seed + run).entries for run in range(n_runs)]
    except ParameterError:  # its public rows have the columns of the table: no table can be wider
        return []
    return [e for entries in runs for e in entries if e.kind == "picks"]


def _worst_p_value(*samples: list[Release]) -> tuple[str, float]:
    """The smallest p-value, times the number of samples, and what it is about."""
    tests = []
    for entries in samples:
        tests += [(noise_p_value(entries, kind), kind) for kind in {e.kind for e in entries}]
        tests.append((selection_p_value(entries), "selection"))
        tests.append((rare_p_value(entries), "rare picks"))
    p_value, kind = min(tests)
    return kind, min(1.0, len(samples) * p_value)


# ---- answers against their law -------------------------------------------------------------------


def noise_p_value(entries: list[Release], kind: str) -> float:
    """Smallest p-value, times the number of tests, that answer - query has its declared law.

    Kolmogorov-Smirnov sees the shape; the chi-square on Gaussian squares sees a wrong scale. Any other
    mechanism says where its answers lie in their law.
    """
    if kind in MECHANISMS and kind != "gaussian":
        rng = make_generator(0)
        places = [MECHANISMS[kind].places(e, rng) for e in entries if e.kind == kind]
        found = np.concatenate([np.empty(0), *places])
        return float(stats.kstest(found, "uniform").pvalue) if found.size else 1.0
    used = [e for e in entries if e.kind == kind and e.noise.size]
    if not used:
        return 1.0
    z = np.concatenate([e.noise * e.step for e in used])
    squares = stats.chi2(len(z)).cdf(float(z @ z))
    tests = [stats.kstest(z, "norm").pvalue, 2.0 * min(squares, 1.0 - squares)]
    return float(min(1.0, len(tests) * min(tests)))


def selection_p_value(entries: list[Release]) -> float:
    """p-value that picks follow their softmax, by two tests.

    log p(pick) + entropy is a martingale difference; a kappa that is too large picks likelier
    candidates than it should. Normal approximation, for a hundred picks and more. And the place of a
    pick in the distribution over candidates in their order is uniform: a sign that is not drawn shows.
    """
    total = variance = 0.0
    places, rng = [], make_generator(0)
    for log_p, pick in _first_picks(entries):
        p = np.exp(log_p)
        mean = float(p @ log_p)
        total += float(log_p[pick]) - mean
        variance += float(p @ (log_p - mean) ** 2)
        places.append(float(p[:pick].sum() + rng.random() * p[pick]))
    tests = [stats.kstest(places, "uniform").pvalue] if places else []
    if variance > 1e-12 * len(places):  # equal candidates: what is left is rounding
        tests.append(2.0 * stats.norm.sf(abs(total) / math.sqrt(variance)))
    return float(min([1.0, *(len(tests) * test for test in tests)]))


def rare_p_value(entries: list[Release], rare: float = 2.0**-6) -> float:
    """p-value of how often a candidate far less likely than the likeliest one was picked.

    A sampler that makes them impossible looks right otherwise, and tells a row apart for certain.
    """
    expected, seen = 0.0, 0
    for log_p, pick in _first_picks(entries):
        few = log_p < log_p.max() + math.log(rare)
        expected += float(np.exp(log_p[few]).sum())
        seen += bool(few[pick])
    # A sum of independent indicators has lighter tails than the Poisson variable of the same mean.
    tails = stats.poisson.cdf(seen, expected), stats.poisson.sf(seen - 1, expected)
    return float(min(1.0, 2.0 * min(tails)))


def _first_picks(entries: list[Release]) -> Iterator[tuple[np.ndarray, int]]:
    """(log-probabilities, pick); of a ranking the first pick: how many follow depends on it."""
    for entry in entries:
        if entry.kind == "picks":
            log_p = keys(entry) - logsumexp(keys(entry))
            yield log_p, int(entry.answer[0])


# ---- queries that no table would give ------------------------------------------------------------


def _shares_a_stream(plan: Plan) -> bool:
    generators = [make_releases(plan).rng for _ in range(2)]
    # Twice, since the streams of threads are kept: the second look must find where the first one ended.
    drawn = [rng.bytes(16) for rng in generators for _ in range(2)]
    for rng in (*generators, *generators):
        with streams(rng, 2) as parts:
            drawn += [part.bytes(16) for part in parts]
    return len(set(drawn)) < len(drawn)


def _long_noise(seed: int) -> list[Release]:
    """Two releases of a long vector of zeros."""
    length = 2**16  # longer than what one thread draws
    query = _query(np.zeros(length, np.int64))
    plan = _plan(Repeated(RoundedGaussian(1.0, 1.0, length), 2))
    releases = RecordedReleases(plan, make_generator(seed))
    for _ in range(2):
        releases.gaussian("probe", query, 0.5)
    return releases.entries


def _choir_p_value(seed: int) -> float:
    """p-value of how often one of the choir is picked instead of the soloist."""
    bits = 22  # by which one of the choir is less likely than the soloist
    choir, draws = 2**14, 6000  # 6000 * 2^(14 - 22) = 23 expected picks; none has probability 7e-11
    releases = Releases(_plan(Repeated(Exponential(1.0), draws)), make_generator(seed))
    unit = 2.0**-20
    gap = math.ceil(bits * math.log(2.0) * 2.0 / unit)  # one row moves scores by 1: kappa is 1/2
    query = _query(np.append(np.int64(gap), np.zeros(choir, np.int64)))
    seen = sum(int(releases.top_k("probe", query, 1, unit)[0]) > 0 for _ in range(draws))
    weight = choir * 2.0**-bits
    return float(stats.binomtest(seen, draws, weight / (1.0 + weight)).pvalue)


def _query(whole: np.ndarray) -> Query:
    return Query(whole.shape, lambda adjacency: signed_sum(1.0, adjacency), lambda _: whole.copy())


def _plan(event: Event) -> Plan:
    return Plan("probe", (Phase("probe", event),), 1.0, 1e-6, "add-remove", proven=False)
