"""Tests of `Releases` itself, with queries that no table would give.

A release does not know who asks. So it gets queries that bring out what a fit hides: thousands
of candidates that are unlikely one by one and likely together, and vectors long enough for threads.

    keys     two secure fits draw from different streams, and so do the threads of one release
    picks    a candidate however unlikely stays possible
    noise    long vectors follow the law and repeat nothing
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import stats

from dpsparse.accounting.events import Event, Exponential, Repeated, RoundedGaussian
from dpsparse.accounting.guarantee import Phase, Plan
from dpsparse.audit import law
from dpsparse.audit.recorded import RecordedReleases
from dpsparse.audit.replay import declared_costs, reused
from dpsparse.mechanisms import Release
from dpsparse.private_run import make_releases
from dpsparse.random import make_generator, streams
from dpsparse.release import Releases
from dpsparse.rows import Query
from dpsparse.sensitivity import signed_sum


def first_failure(estimator: Any, plan: Plan, seed: int = 0) -> str:
    """What the releases of an estimator do wrong; empty if nothing. Wrong with probability below 1e-5."""
    secure = _secure(estimator)
    keys = [make_releases(plan, estimator.random_state).rng for _ in range(2)] if secure else []
    # Twice, since the streams of threads are kept: the second look must find where the first one ended.
    drawn = [rng.bytes(16) for rng in keys for _ in range(2)]
    for rng in (*keys, *keys):
        with streams(rng, 2) as parts:
            drawn += [part.bytes(16) for part in parts]
    if len(set(drawn)) < len(drawn):
        return "two secure fits draw from the same stream of noise"
    kinds = declared_costs(plan.event)
    if kinds["gaussian"]:
        entries = long_noise(seed)
        if reused(entries):
            return "threads of one release draw the same noise"
        if law.noise_p_value(entries, "gaussian") <= law.NOISE_LEVEL:
            return "the noise of long vectors does not follow its law"
    if kinds["picks"] and rare_p_value(seed) <= law.NOISE_LEVEL:
        return "unlikely candidates are picked more rarely than they should be, or never"
    return ""


def long_noise(seed: int) -> list[Release]:
    """Two releases of a long vector of zeros."""
    length = 2**16  # longer than what one thread draws
    query = _query(np.zeros(length, np.int64))
    plan = _plan(Repeated(RoundedGaussian(1.0, 1.0, length), 2))
    releases = RecordedReleases(plan, make_generator(seed))
    for _ in range(2):
        releases.gaussian("probe", query, 0.5)
    return releases.entries


def rare_p_value(seed: int) -> float:
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


def _secure(estimator: Any) -> bool:
    return getattr(estimator, "random_state", None) is None


def _query(whole: np.ndarray) -> Query:
    return Query(whole.shape, lambda adjacency: signed_sum(1.0, adjacency), lambda _: whole.copy())


def _plan(event: Event) -> Plan:
    return Plan("probe", (Phase("probe", event),), 1.0, 1e-6, "add-remove", proven=False)
