"""Generators and noise primitives.

Every statistical check runs on a fixed seed; ALARM is the probability that a correct sampler under
an ideal stream would have failed one check, so a failure is a fault and not bad luck. Each check is
also shown noise with a 5 % wrong scale and must reject it.
"""

from __future__ import annotations

import copy
import gc
import math
import os
import pickle
from fractions import Fraction

import numba
import numpy as np
import pytest
from randomgen import AESCounter
from scipy import stats

from dpsparse import random as noise
from dpsparse.exceptions import ParameterError

ALARM = 1e-6
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")


@pytest.fixture(autouse=True)
def the_same_noise_every_time():
    """Keys come from the operating system here."""


def ks_pvalue(sample: np.ndarray, cdf) -> float:
    return float(stats.kstest(sample, cdf).pvalue)


def chi2_pvalue(draws: np.ndarray, probabilities: dict[int, float]) -> float:
    """Chi-square of integer draws; everything outside the listed values is one more cell."""
    observed = [int(np.sum(draws == k)) for k in probabilities]
    expected = [len(draws) * p for p in probabilities.values()]
    rest = len(draws) - sum(expected)
    if rest > 1e-9 * len(draws):
        observed.append(len(draws) - sum(observed))
        expected.append(rest)
    else:
        assert sum(observed) == len(draws)
    assert min(expected) > 5
    statistic = sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))
    return float(stats.chi2.sf(statistic, len(observed) - 1))


def two_sided_geometric_law(scale: float, largest: int) -> dict[int, float]:
    q = math.exp(-1 / scale)
    return {k: (1 - q) / (1 + q) * q ** abs(k) for k in range(-largest, largest + 1)}


# ---- the stream -------------------------------------------------------------------------------


def test_stream_is_aes_128_golden():
    # AES-128 of the zero block under the key 000102..0f, the first block in counter mode, and of
    # block number 1 (the counter is little-endian); both from an independent implementation.
    key = int.from_bytes(bytes(range(16)), "little")
    raw = noise.make_generator(key).bit_generator.random_raw(4).astype("<u8").tobytes()
    assert raw.hex() == GOLDEN


GOLDEN = "c6a13b37878f5b826f4f8162a1c8d879e37cd363dd7c87a09aff0e3e60e09c82"


def test_stream_is_aes_128_counter_mode():
    ciphers = pytest.importorskip(
        "cryptography.hazmat.primitives.ciphers",
        reason="the comparison with another AES needs the package cryptography",
    )
    key = os.urandom(16)
    blocks = b"".join(i.to_bytes(16, "little") for i in range(1000))
    encryptor = ciphers.Cipher(ciphers.algorithms.AES(key), ciphers.modes.ECB()).encryptor()
    bits = AESCounter(key=int.from_bytes(key, "little"))
    assert bits.random_raw(2000).astype("<u8").tobytes() == encryptor.update(blocks)


def test_secure_key_comes_from_the_operating_system(monkeypatch):
    monkeypatch.setattr(os, "urandom", lambda n: bytes(range(n)))
    rng = noise.make_generator(None)
    monkeypatch.undo()
    key = int.from_bytes(bytes(range(16)), "little")
    np.testing.assert_array_equal(rng.random(5), noise.make_generator(key).random(5))


def test_secure_streams_differ():
    assert noise.make_generator(None).bytes(16) != noise.make_generator(None).bytes(16)


@pytest.mark.parametrize("seed", [0, 7, np.int64(7), 2**128 - 1])
def test_seeded_stream_repeats(seed):
    first, second = noise.make_generator(seed), noise.make_generator(int(seed))
    np.testing.assert_array_equal(first.random(5), second.random(5))
    assert noise.is_seeded(seed)
    other = noise.make_generator((int(seed) + 1) % 2**128)
    assert other.bytes(16) != noise.make_generator(seed).bytes(16)


def test_none_is_not_seeded():
    assert not noise.is_seeded(None)


@pytest.mark.parametrize("bad", [-1, 2**128, 1.5, "7", True, np.random.RandomState(0), [1]])
def test_bad_random_state_names_the_remedy(bad):
    with pytest.raises(ParameterError, match=r"random_state must be None .* or a whole number"):
        noise.make_generator(bad)


def test_seeded_stream_may_be_copied():
    rng = noise.make_generator(1)
    assert copy.deepcopy(rng).bytes(16) == pickle.loads(pickle.dumps(rng)).bytes(16)


@pytest.mark.parametrize("of", [lambda rng: rng, lambda rng: rng.bit_generator])
@pytest.mark.parametrize("act", [pickle.dumps, copy.deepcopy])
def test_secure_stream_refuses_copies(of, act):
    with pytest.raises(TypeError, match=r"cannot be copied or pickled.*make_generator\(None\)"):
        act(of(noise.make_generator(None)))


def test_shallow_copies_share_or_refuse():
    rng = noise.make_generator(None)
    assert copy.copy(rng).bit_generator is rng.bit_generator
    with pytest.raises(TypeError, match="cannot be copied"):
        copy.copy(rng.bit_generator)
    for method in (rng.bit_generator.jumped, lambda: rng.spawn(2)):
        with pytest.raises(TypeError):
            method()


def in_child(work) -> bytes:
    """What `work()` returns in a forked child; empty if the child stopped."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write, work())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(pid, 0)
    return answer


@needs_fork
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_forked_children_have_their_own_streams():
    rng = noise.make_generator(None)
    rng.random()
    rng.integers(2**32, dtype=np.uint32)  # leaves half a word in the buffer
    children = [in_child(lambda: rng.bytes(64)) for _ in range(2)]
    parent = rng.bytes(64)
    words = [stream[i : i + 4] for stream in (parent, *children) for i in range(0, 64, 4)]
    # 48 random words of 32 bits: some two agree with probability 48 * 47 / 2^33 = 2.6e-7
    assert len(set(words)) == len(words)


@needs_fork
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_seeded_stream_survives_fork():
    rng = noise.make_generator(3)
    assert in_child(lambda: rng.bytes(64)) == rng.bytes(64)


@needs_fork
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_child_stops_without_a_new_key(monkeypatch, capfd):
    def broken(n):
        raise OSError("no entropy")

    rng = noise.make_generator(None)
    monkeypatch.setattr(os, "urandom", broken)
    assert in_child(lambda: rng.bytes(64)) == b""
    assert "the child stops" in capfd.readouterr().err


def test_dead_streams_are_not_kept_alive():
    gc.collect()
    before = len(noise._live)
    rng = noise.make_generator(None)
    assert len(noise._live) == before + 1
    del rng
    gc.collect()
    assert len(noise._live) == before


def test_spawn_seeded_is_deterministic_and_distinct():
    first, second = (noise.spawn(noise.make_generator(5), 3) for _ in range(2))
    streams = [rng.bytes(16) for rng in first]
    assert streams == [rng.bytes(16) for rng in second]
    assert len(set(streams)) == 3


def test_spawn_secure_is_secure():
    rng = noise.make_generator(None)
    children = noise.spawn(rng, 3)
    assert len({child.bytes(16) for child in children}) == 3
    for child in children:
        with pytest.raises(TypeError, match="cannot be copied"):
            pickle.dumps(child)


def taken(rng, k):
    """Streams after a draw that ended well."""
    with noise.streams(rng, k) as parts:
        return parts


def test_kept_streams_go_on_where_they_ended():
    rng = noise.make_generator(None)
    first, again = taken(rng, 3), taken(rng, 5)
    assert set(map(id, first)) < set(map(id, again))
    told = [stream.bytes(16) for stream in (*first, *again, rng)]
    assert len(set(told)) == 9
    others = taken(noise.make_generator(None), 3)
    assert not set(map(id, others)) & set(map(id, again))


def test_nobody_else_gets_streams_that_are_in_use():
    """By another thread, or by one that is still at a draw which the caller broke off."""
    rng = noise.make_generator(None)
    kept = taken(rng, 3)
    with noise.streams(rng, 3) as mine:
        assert set(map(id, mine)) == set(map(id, kept))
        theirs = taken(rng, 2)
        assert not set(map(id, mine)) & set(map(id, theirs))
    with pytest.raises(KeyboardInterrupt), noise.streams(rng, 5) as broken_off:
        raise KeyboardInterrupt
    assert not set(map(id, broken_off)) & set(map(id, taken(rng, 9)))


@needs_fork
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_kept_streams_get_new_keys_in_a_child():
    rng = noise.make_generator(None)
    kept = taken(rng, 3)
    kept[0].random()
    children = [in_child(lambda: kept[0].bytes(64)) for _ in range(2)]
    told = {kept[0].bytes(64), *children}
    assert len(told) == 3


def test_streams_of_a_seed_are_drawn_anew():
    rng, twin = noise.make_generator(5), noise.make_generator(5)
    first, again = taken(rng, 2), taken(rng, 2)
    assert [s.bytes(16) for s in noise.spawn(twin, 2)] == [s.bytes(16) for s in first]
    assert [s.bytes(16) for s in noise.spawn(twin, 2)] == [s.bytes(16) for s in again]


# ---- inside Numba kernels ---------------------------------------------------------------------


@numba.njit
def kernel(rng, n, bound):
    uniform = np.empty(n)
    normal = np.empty(n)
    below = np.empty(n, dtype=np.int64)
    words = np.empty(n, dtype=np.uint64)
    for i in range(n):
        uniform[i] = rng.random()
        normal[i] = rng.standard_normal()
        below[i] = rng.integers(0, bound)
        words[i] = rng.integers(0, 18446744073709551615, dtype=np.uint64, endpoint=True)
    return uniform, normal, below, words


@pytest.mark.heavy
def test_kernel_draws_follow_their_laws():
    uniform, normal, below, words = kernel(noise.make_generator(11), 20_000, 7)
    assert ks_pvalue(uniform, stats.uniform.cdf) > ALARM
    assert ks_pvalue(normal, stats.norm.cdf) > ALARM
    assert chi2_pvalue(below, dict.fromkeys(range(7), 1 / 7)) > ALARM
    bits = np.unpackbits(words.view(np.uint8)).reshape(len(words), 64).sum(axis=0)
    # 64 fair coins of 20000 tosses each, two sides: a union bound over 128 binomial tails
    worst = np.abs(bits.astype(np.int64) - 10_000).max()
    assert 128 * stats.binom.sf(10_000 + worst - 1, 20_000, 0.5) > ALARM
    assert words.max() > 2**63  # all 64 bits


def test_kernel_takes_secure_generators():
    rng = noise.make_generator(None)
    first, second = kernel(rng, 8, 2**62), kernel(rng, 8, 2**62)
    for a, b in zip(first, second, strict=True):  # the kernel advances the caller's stream
        assert len(np.unique(np.concatenate([a, b]))) == 16
    assert 0 <= first[0].min() <= first[0].max() < 1


def test_kernel_and_numpy_share_one_stream():
    inside = kernel(noise.make_generator(2), 1, 7)[0]
    assert inside[0] == noise.make_generator(2).random()


def test_no_noise():
    rng = noise.make_generator(1)
    assert noise.two_sided_geometric(rng, 0) == 0


# ---- exact integers ---------------------------------------------------------------------------


@pytest.mark.parametrize("bound", [2, 3, 7, 256, 257])
def test_integer_below_law(bound):
    rng = noise.make_generator(bound)
    draws = np.array([noise.integer_below(rng, bound) for _ in range(20_000)])
    assert chi2_pvalue(draws, dict.fromkeys(range(bound), 1 / bound)) > ALARM


def test_integer_below_one():
    assert noise.integer_below(noise.make_generator(1), 1) == 0


def test_integer_below_reads_the_first_bits_of_the_stream():
    rng, twin = noise.make_generator(4), noise.make_generator(4)
    for bits in range(130):
        n_bytes = -(-bits // 8)
        first = int.from_bytes(twin.bytes(n_bytes), "little") >> (8 * n_bytes - bits)
        assert noise.integer_below(rng, 2**bits) == first


def test_the_uniform_check_rejects_a_modulo():
    law = dict.fromkeys(range(7), 1 / 7)
    assert chi2_pvalue(noise.make_generator(1).integers(16, size=20_000) % 7, law) < ALARM


def test_integer_below_long_bound():
    bound = 3 * 2**198 + 1
    rng = noise.make_generator(0)
    draws = [noise.integer_below(rng, bound) for _ in range(20_000)]
    assert 0 <= min(draws) <= max(draws) < bound
    fractions = np.array([float(Fraction(d, bound)) for d in draws])
    assert ks_pvalue(fractions, stats.uniform.cdf) > ALARM
    parity = np.array([d & 1 for d in draws])
    assert chi2_pvalue(parity, {0: 0.5, 1: 0.5}) > ALARM


@pytest.mark.parametrize(("p", "q"), [(0, 1), (1, 1), (1, 2), (2, 3), (7, 1000)])
def test_bernoulli_exp_law(p, q):
    rng = noise.make_generator(1000 * p + q)
    hits = np.array([noise._bernoulli_exp(rng, p, q) for _ in range(20_000)]).astype(int)
    if p == 0:
        assert hits.all()
        return
    chance = math.exp(-p / q)
    assert chi2_pvalue(hits, {1: chance, 0: 1 - chance}) > ALARM


@pytest.mark.heavy
@pytest.mark.parametrize("scale", [1, Fraction(7, 3), 2.7])
def test_two_sided_geometric_law(scale):
    rng = noise.make_generator(1)
    draws = np.array([noise.two_sided_geometric(rng, scale) for _ in range(40_000)])
    largest = max(2, int(3 * scale))
    assert chi2_pvalue(draws, two_sided_geometric_law(float(scale), largest)) > ALARM
    for wrong in (0.95, 1.05):
        law = two_sided_geometric_law(float(scale) * wrong, largest)
        assert chi2_pvalue(draws, law) < ALARM


def test_two_sided_geometric_law_below_one():
    rng = noise.make_generator(2)
    draws = np.array([noise.two_sided_geometric(rng, 0.4) for _ in range(5_000)])
    assert chi2_pvalue(draws, two_sided_geometric_law(0.4, 1)) > ALARM
    assert chi2_pvalue(draws, two_sided_geometric_law(0.5, 1)) < ALARM


def test_two_sided_geometric_extreme_scales():
    rng = noise.make_generator(1)
    assert all(noise.two_sided_geometric(rng, 1e-300) == 0 for _ in range(50))
    draws = [abs(noise.two_sided_geometric(rng, 1e300)) / 1e300 for _ in range(2000)]
    assert ks_pvalue(np.array(draws), stats.expon.cdf) > ALARM


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf, "1", None])
def test_bad_scale_is_named(bad):
    rng = noise.make_generator(1)
    with pytest.raises(ParameterError, match="scale must be"):
        noise.two_sided_geometric(rng, bad)
