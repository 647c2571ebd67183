"""Fits on a local cluster of two processes: the same bits, one barrier, no draw on a worker, typed refusals."""

import dataclasses
import math
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

dask = pytest.importorskip("dask", reason="dask is not installed: pip install 'dpsparse[dask]'")
distributed = pytest.importorskip("distributed", reason="distributed is not installed")
pd = pytest.importorskip("pandas")

import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402
from sklearn.base import clone  # noqa: E402

from dpsparse import Domain, DPLassoClassifier, Ledger, Rows  # noqa: E402
from dpsparse.exceptions import (  # noqa: E402
    ClusterError,
    ParameterError,
    SchemaError,
    SourceChangedError,
)
from dpsparse.random import make_generator  # noqa: E402
from dpsparse.release import Releases, releases_made_by  # noqa: E402
from dpsparse.rows.dask import OnDask, _Settings  # noqa: E402
from dpsparse.rows.memory import _same  # noqa: E402
from dpsparse.rows.sources import meetings  # noqa: E402
from dpsparse.rows.tasks import names_of, together  # noqa: E402
from rows.test_engines import (  # noqa: E402
    OTHERS,
    Apart,
    LedgerOfSeededFits,
    assert_same,
    looking,
    model,
    table,
    weighted,
)

pytestmark = [
    pytest.mark.dask,
    pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:distributed"),
]

SECONDS = 120.0  # that a test waits for another process: a busy machine is slow, a lost process never comes


def refuse_draws():
    """On a worker: whatever makes or uses a generator of ours, or NumPy's, raises from now on."""
    import dpsparse.random

    def refuse(*arguments, **options):
        raise AssertionError("a draw on a worker")

    dpsparse.random.make_generator = dpsparse.random.spawn = refuse
    dpsparse.random.add_integers = dpsparse.random.integers = refuse
    np.random.default_rng = np.random.Generator = refuse


@contextmanager
def two_workers():
    """A cluster of two processes in which every draw raises."""
    settings = {
        "distributed.worker.memory.terminate": False,
        "distributed.scheduler.allowed-failures": 10,
        "distributed.comm.timeouts.connect": "10s",
    }
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.run(refuse_draws)
        yield client


@pytest.fixture(scope="module")
def client():
    with two_workers() as client:
        yield client


class MortalWorkers:
    """Workers that a test may kill. They are processes without a nanny: closing a cluster whose nannies restart
    workers can wait for ever on a busy machine."""

    def __init__(self, client):
        self.client, self.processes = client, []
        for _ in range(2):
            self.start()
        client.wait_for_workers(2, timeout=SECONDS)
        client.run(refuse_draws)

    def start(self):
        command = [sys.executable, "-m", "dask", "worker", self.client.scheduler.address]
        options = ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--death-timeout", "60"]
        path = os.pathsep.join(path for path in sys.path if path)
        quick = {"PYTHONPATH": path, "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "10s"}
        self.processes.append(
            subprocess.Popen(
                [*command, *options],
                env={**os.environ, **quick},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )

    def kill(self):
        """kill -9 the oldest worker, and start another."""
        oldest = self.processes.pop(0)
        self.start()
        oldest.kill()
        oldest.wait(SECONDS)

    def kill_after(self, seconds):
        timer = threading.Timer(seconds, self.kill)
        timer.start()
        return timer


@contextmanager
def mortal_workers():
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 10}),
        distributed.LocalCluster(
            n_workers=0, processes=False, protocol="tcp", dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        workers = MortalWorkers(client)
        try:
            yield workers
        finally:
            for process in workers.processes:
                process.kill()
                process.wait(SECONDS)


@pytest.fixture
def mortal():
    """A cluster for one test: the next one must not wait for workers that this one killed."""
    with mortal_workers() as workers:
        yield workers


def cut(X, y, n_parts, matrix=sp.csr_array, seed=0):
    """Delayed chunks at random places, empty ones among them."""
    cuts = np.sort(np.random.default_rng(seed).integers(0, X.shape[0], n_parts - 1)).tolist()
    edges = [0, *cuts, X.shape[0]]
    pairs = list(pairwise(edges))
    xs = [dask.delayed(matrix)(X[a:b]) for a, b in pairs]
    ys = [dask.delayed(np.asarray)(y[a:b]) for a, b in pairs]
    return xs, ys


def as_arrays(X, y, n_parts, matrix=sp.csr_array):
    """dask arrays whose chunks are CSR."""
    rows = -(-X.shape[0] // n_parts)
    chunks = [X[a : a + rows] for a in range(0, X.shape[0], rows)]
    parts = [
        da.from_delayed(
            dask.delayed(matrix)(c), shape=c.shape, dtype=float, meta=sp.csr_array((0, 0))
        )
        for c in chunks
    ]
    return da.concatenate(parts, axis=0), da.from_array(np.asarray(y), chunks=rows)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("shape", ["wide", "narrow"])
@pytest.mark.parametrize("kind", ["2", "5", "11", "regression"])
def test_workers_give_the_bits_of_one_table(client, kind, shape, adjacency):
    X, y = table(kind, shape)
    options = {"n_iter": 6}
    whole = model(kind, adjacency, **options).fit(X, y)
    n_parts = {"2": 7, "5": 2, "11": 16, "regression": 7}[kind]
    source = Rows.from_dask(*cut(X, y, n_parts))
    assert_same(whole, model(kind, adjacency, **options).fit(source))


@pytest.mark.slow
@pytest.mark.parametrize("n_parts", [1, 2, 7, 16])
@pytest.mark.parametrize("shape", ["wide", "narrow"])
@pytest.mark.parametrize("kind", ["2", "5", "11", "regression"])
def test_every_number_of_parts_and_the_default_schedule(client, kind, shape, n_parts):
    X, y = table(kind, shape)
    for options in ({}, {"adjacency": "replace-one"}, {"epsilon": math.inf, "n_iter": 20}):
        whole = model(kind, **options).fit(X, y)
        assert_same(whole, model(kind, **options).fit(Rows.from_dask(*cut(X, y, n_parts))))


def test_every_kind_of_collection(client):
    X, y = table("2", "narrow")
    whole = model("2", n_iter=4).fit(X, y)
    dense = da.from_array(X.toarray(), chunks=(300, 10)), da.from_array(y, chunks=450)
    names = [f"f{j}" for j in range(X.shape[1])]
    frame = pd.DataFrame(X.toarray(), columns=names)
    frames = dd.from_pandas(frame, npartitions=3), dd.from_pandas(pd.Series(y), npartitions=3)
    for dX, dy in (
        as_arrays(X, y, 3), as_arrays(X, y, 2, sp.csr_matrix), dense, frames, cut(X, y, 2),
    ):  # fmt: skip
        assert_same(whole, model("2", n_iter=4).fit(dX, dy))
    fitted = model("2", n_iter=4).fit(*frames)
    assert list(fitted.feature_names_in_) == names


def test_predictions_are_lazy_and_equal(client):
    for kind in ("2", "5", "regression"):
        X, y = table(kind, "narrow")
        fitted = model(kind, n_iter=4).fit(X, y)
        dX, _ = as_arrays(X, y, 3)
        frame = dd.from_pandas(pd.DataFrame(X.toarray()), npartitions=2)
        for name in ("predict", "predict_proba", "decision_function"):
            if hasattr(fitted, name):
                for lazy in (dX, frame):
                    answer = getattr(fitted, name)(lazy)
                    assert isinstance(answer, da.Array)
                    expected = getattr(fitted, name)(X)
                    # Dense and sparse products add in another order: margins near 0 keep an absolute error.
                    np.testing.assert_allclose(answer.compute(), expected, rtol=1e-12, atol=1e-14)
                assert getattr(fitted, name)(dX).shape == expected.shape


@pytest.mark.parametrize(
    ("name", "memory"),
    [
        *((n, 10**9) for n in ("threshold", "two-stage", "admm", "lasso", "screened")),
        ("screened", 100_000),  # bytes: less than the rows need twice
    ],
)
def test_other_families(client, name, memory, monkeypatch):
    """The same bits; and no part comes to the client as it is, except where docs/scaling.md says so."""
    X, y = table("2", "narrow")
    brought = []
    collect = OnDask.collect

    def listening(self, f):
        answers = list(collect(self, f))
        brought.extend((f, answer) for answer in answers)
        return answers

    monkeypatch.setattr(OnDask, "collect", listening)
    kind, options = OTHERS[name]
    domain = Domain(classes=[0, 1], n_samples=900, row_norm=2.0)
    made = [kind(domain, random_state=3, epsilon=4.0, **options) for _ in range(2)]
    together = memory >= 10**9
    made[0].fit(*((X, y) if together else (Apart(X, y, 1),)))
    source = Rows.from_dask(*cut(X, y, 4))
    source._memory = memory
    made[1].fit(source)
    assert_same(*made)
    wide = [answer for _, answer in brought if getattr(answer, "n_features", 0) == X.shape[1]]
    assert bool(wide) == (name in ("lasso", "screened") and together)


def test_workers_turn_their_rows(client):
    X, y = table("regression", "narrow")
    assert_same(looking().fit(X, y), looking().fit(Rows.from_dask(*cut(X, y, 3))))


# ---- the rules -----------------------------------------------------------------------------------


def test_nothing_is_spent_before_every_part_was_validated(client, tmp_path):
    X, y = table("2", "narrow")
    ledger = Ledger(tmp_path / "ledger.db", epsilon=100.0, delta=1e-3)
    xs, ys = cut(X, y, 5)
    holes = X[-20:].copy()
    holes.data[-1] = np.nan
    undeclared = y[-20:].copy()
    undeclared[-1] = 918273645
    for bad_x, bad_y in ((holes, y[-20:]), (X[-20:], undeclared), (X[-20:], y[-19:])):
        source = Rows.from_dask(
            [*xs, dask.delayed(sp.csr_array)(bad_x)], [*ys, dask.delayed(np.asarray)(bad_y)]
        )
        with pytest.raises(SchemaError) as caught:
            model("2", ledger=ledger).fit(source)
        assert "918273645" not in str(caught.value)
    assert ledger.history() == []
    logs = "".join(str(line) for lines in client.get_worker_logs().values() for line in lines)
    assert "918273645" not in logs  # a task that raises would have its arguments logged


def test_behind_a_refusal_stands_no_error_of_a_worker(client):
    """What reads a source is not ours, and its complaint quotes a cell."""
    X, y = table("2", "narrow")
    xs, ys = cut(X, y, 2)
    broken = dask.delayed(float)("918273645 kg")
    with pytest.raises(ClusterError, match="ValueError") as caught:
        model("2").fit(Rows.from_dask([xs[0], broken], ys))
    assert caught.value.__context__ is caught.value.__cause__ is None


def test_a_source_that_reloads_differently_is_refused(mortal, tmp_path):
    X, y = table("2", "narrow")
    path = tmp_path / "half.npy"
    np.save(path, X[450:].toarray())
    xs = [dask.delayed(sp.csr_array)(X[:450]), dask.delayed(np.load)(str(path))]
    ys = [dask.delayed(np.asarray)(part) for part in (y[:450], y[450:])]
    rows = Rows.from_dask(xs, ys).clipped(model("2").domain, np.array([0, 1]))
    before = rows.class_counts(2).whole(0.5)
    other = X[450:].toarray()
    other[0, 0] += 0.5
    np.save(path, other)
    assert np.array_equal(before, rows.class_counts(2).whole(0.5))  # still held by its worker
    for _ in range(2):
        mortal.kill()
    with pytest.raises(SourceChangedError):
        rows.class_counts(2).whole(0.5)
    np.save(path, X[450:].toarray())


def fit_inside(X, y):
    try:
        model("2", n_iter=3).fit(X, y)
    except ParameterError as error:
        return str(error)
    return "fitted"


def test_a_fit_inside_a_task_is_refused_unless_it_is_allowed(client):
    X, y = table("2", "narrow")
    assert "DPSPARSE_FIT_IN_TASK" in client.submit(fit_inside, X, y).result(SECONDS)
    assert model("2", n_iter=3).fit(X, y).n_iter_ == 3  # beside a client, not in a task


def test_no_scatter(client, monkeypatch):
    X, y = table("2", "wide")

    def refuse(*arguments, **options):
        raise AssertionError("scatter has no lineage")

    monkeypatch.setattr(type(client), "scatter", refuse)
    model("2", n_iter=3).fit(Rows.from_dask(*cut(X, y, 3)))


def test_a_killed_worker_changes_nothing(mortal, tmp_path):
    X, y = table("2", "wide")
    whole = model("2", n_iter=20).fit(X, y)
    timer = mortal.kill_after(0.3)
    fitted = model(
        "2",
        n_iter=20,
        ledger=LedgerOfSeededFits(tmp_path / "l2.db", epsilon=100.0, delta=1e-3),
    )
    fitted.fit(Rows.from_dask(*cut(X, y, 4), step_timeout=SECONDS))
    timer.join(SECONDS)
    assert_same(whole, fitted)
    assert len(fitted.ledger.history()) == 1


def test_without_workers_there_is_a_typed_error():
    X, y = table("2", "narrow")
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=None, processes=False) as cluster,
        distributed.Client(cluster, set_as_default=False) as idle,
        pytest.raises(ClusterError, match="step_timeout"),
    ):
        Rows.from_dask(*cut(X, y, 2), client=idle, step_timeout=1.0)


@contextmanager
def stopped(pid):
    """A process that stands still: its connections stay open and nothing answers."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_worker_that_stands_still_after_its_task_is_a_typed_error(mortal):
    """The task is done, so waiting for it ends at once; its result never comes."""
    run = _Settings(mortal.client, 2.0, 0)
    done = run.submit(_same, np.arange(3))
    distributed.wait([done], timeout=SECONDS)
    pids = mortal.client.run(os.getpid)
    (where,) = mortal.client.who_has([done])[done.key]
    with stopped(pids[where]), pytest.raises(ClusterError, match="step_timeout"):
        run.gathered([done])


LONE_SCHEDULER = """
import distributed, sys
with distributed.LocalCluster(n_workers=1, processes=False, protocol="tcp", dashboard_address=None) as cluster:
    print(cluster.scheduler_address, flush=True)
    sys.stdin.read()
"""


def test_a_scheduler_that_stands_still_is_a_typed_error():
    child = subprocess.Popen(
        [sys.executable, "-c", LONE_SCHEDULER],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        with distributed.Client(child.stdout.readline().strip(), set_as_default=False) as client:
            run = _Settings(client, SECONDS, 0)
            held = run.submit(_same, 1)
            assert run.gathered([held]) == [1]
            hasty = dataclasses.replace(run, step_timeout=2.0)
            with stopped(child.pid), pytest.raises(ClusterError, match="step_timeout"):
                hasty.by_worker([held])  # asks which worker has what
    finally:
        child.kill()
        child.communicate(timeout=SECONDS)


def test_without_a_client_the_remedy_is_named():
    X, y = table("2", "narrow")
    if distributed.client._get_global_client() is None:
        with pytest.raises(ParameterError, match="client"):
            Rows.from_dask(*cut(X, y, 2))
    with pytest.raises(ParameterError, match="step_timeout"):
        Rows.from_dask(*cut(X, y, 2), step_timeout=0.0)


def test_import_dpsparse_imports_no_dask():
    code = "import dpsparse, dpsparse.methods, dpsparse.rows, sys; assert 'dask' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=SECONDS)


def test_lasso_on_shards(mortal):
    X, y = table("2", "narrow")
    options = {"radius": 5.0, "n_iter": 12, "random_state": 4}
    domain = Domain(classes=[0, 1])
    whole, spread = (DPLassoClassifier(domain, **options) for _ in range(2))
    whole.fit(Apart(X, y, 1))
    source = Rows.from_dask(*cut(X, y, 5), step_timeout=SECONDS)
    source._memory = 100_000  # less than the rows need twice
    timer = mortal.kill_after(0.2)
    spread.fit(source)
    timer.join(SECONDS)
    assert_same(whole, spread)


# ---- persons --------------------------------------------------------------------------------------


def of_persons(kind, most=None, **options):
    made = model(kind, n_iter=10, **options)
    made.domain = dataclasses.replace(made.domain, unit="person", rows_per_unit=most)
    return made


def cut_names(names, X, n_parts, as_chunk=np.asarray):
    """Delayed names with the cuts of `cut`, which depend on the number of rows only."""
    return [dask.delayed(as_chunk)(part.compute()) for part in cut(X, names, n_parts)[1]]


@pytest.mark.parametrize(("kind", "most"), [("2", None), ("2", 3), ("5", 3), ("regression", None)])
def test_rows_of_a_person_meet_wherever_they_stand_in_the_parts(client, kind, most):
    """The bits of the table in memory; one person has rows in all parts, and a cap draws among them."""
    X, y = table(kind, "narrow")
    names = np.random.default_rng(1).integers(0, 300, len(y))
    names[::3] = 77
    whole = of_persons(kind, most).fit(X, y, groups=names)
    source = Rows.from_dask(*cut(X, y, 7))
    assert_same(whole, of_persons(kind, most).fit(source, groups=names))
    assert_same(whole, of_persons(kind, most).fit(source, groups=cut_names(names, X, 7)))
    arrays = as_arrays(X, y, 3)
    assert_same(whole, of_persons(kind, most).fit(*arrays, groups=da.from_array(names, 100)))


def test_names_of_different_types_are_compared_exactly_across_parts(client):
    """7 in one part is 7.0 in another; 2^53 and 2^53 + 1 are two persons although float64 has one number for them."""
    X, y = table("2", "narrow")
    names = np.arange(len(y)) % 90
    edges = [len(part.compute()) for part in cut(X, y, 2)[1]]
    floats = [np.asarray, lambda own: np.asarray(own, float)]
    mixed = [
        dask.delayed(f)(part.compute()) for f, part in zip(floats, cut(X, names, 2)[1], strict=True)
    ]
    whole = of_persons("2").fit(X, y, groups=names)
    source = Rows.from_dask(*cut(X, y, 2))
    assert_same(whole, of_persons("2").fit(source, groups=mixed))
    far = [np.full(edges[0], 2**53 + 1), np.full(edges[1], 2.0**53)]
    rows = source.clipped(of_persons("2").domain, np.array([0, 1]), list(map(dask.delayed, far)))
    assert len(rows) == 2


def test_one_person_in_all_parts_moves_a_sum_by_one_bound(client):
    """Sixty rows of one direction, cut into five parts: without a meeting they would move it five times as far."""
    X, y = table("2", "narrow")
    rng = np.random.default_rng(4)
    names = np.arange(len(y)) + 1
    theirs = rng.permutation(len(y))[:60]
    names[theirs] = 0
    X = sp.lil_array(X)
    X[theirs] = 0.0
    X[theirs, 0] = 1.0
    X = X.tocsr()
    domain, labels = of_persons("2").domain, np.array([0, 1])
    y[theirs] = 1
    sums = []
    for kept in (np.arange(len(y)), np.flatnonzero(names)):
        source = Rows.from_dask(*cut(X[kept], y[kept], 5))
        units = source.clipped(domain, labels, names[kept]).unit(np.ones(X.shape[1]))
        at = np.zeros((X.shape[1], 1))
        query = units.gradient("logistic", at, np.zeros(1), clip=1.0)
        sums.append(query.whole(2.0**-20))
    moved = float(np.linalg.norm((sums[0] - sums[1]).astype(float))) * 2.0**-20
    assert 0.99 <= moved <= query.sensitivity("add-remove").value


def test_names_that_do_not_fit_are_refused_and_nothing_is_spent(client, tmp_path):
    X, y = table("2", "narrow")
    ledger = Ledger(tmp_path / "ledger.db", epsilon=100.0, delta=1e-3)
    source = Rows.from_dask(*cut(X, y, 4))
    secret = np.arange(len(y), dtype=float) + 918273645.0
    holes = secret.copy()
    holes[-1] = np.nan
    texts = [dask.delayed(np.asarray)(["918273645"] * n) for n in (1, 2, 3, 4)]
    for names in (
        secret[:-1], holes, cut_names(secret, X, 3), cut_names(holes, X, 4), texts,
        cut_names(secret[::-1][:-1], X[:-1], 4),
    ):  # fmt: skip
        with pytest.raises(SchemaError) as caught:
            of_persons("2", ledger=ledger).fit(source, groups=names)
        assert "918273645" not in str(caught.value)
    assert ledger.history() == []


def test_a_missing_name_of_an_arrow_dictionary_is_missing():
    """NumPy gets the last name of the dictionary for it, and that person would own the row."""
    pa = pytest.importorskip("pyarrow")
    column = pa.chunked_array([pa.array(["a", None, "last"]).dictionary_encode()])
    assert names_of(column).tolist() == ["a", None, "last"]
    with pytest.raises(SchemaError, match="missing"):
        meetings(together([names_of(column)]), [3])


def test_a_killed_worker_brings_persons_together_again(mortal):
    X, y = table("2", "wide")
    names = np.random.default_rng(2).integers(0, 200, len(y))
    whole = of_persons("2").fit(X, y, groups=names)
    source = Rows.from_dask(*cut(X, y, 4), step_timeout=SECONDS)
    timer = mortal.kill_after(0.5)
    fitted = of_persons("2").fit(source, groups=names)
    timer.join(SECONDS)
    assert_same(whole, fitted)


def test_a_table_sorted_by_person_stays_where_it_is():
    found = meetings([1, 1, 2, 3, 3, 3, 4, 5], [3, 3, 2])
    assert [[list(rows) for rows in one.taken] for one in found] == [
        [[0, 1, 2], [], []], [[], [0, 1, 2], []], [[], [], [0, 1]],
    ]  # fmt: skip
    assert [list(one.starts) for one in found] == [[0, 2, 3], [0, 3], [0, 1, 2]]


def test_names_of_parts_keep_gaps_and_units():
    """What is masked is no name; times of two units are told apart by no number."""
    for other in (np.ma.array([1.0, 2.0], mask=[0, 1]), np.array([1.0, np.nan])):
        with pytest.raises(SchemaError, match="names are missing"):
            meetings(together([names_of(np.array([1, 2])), names_of(other)]), [2, 2])
    times = [np.array(["2020-01-01"], f"M8[{unit}]") for unit in ("ns", "ps")]
    with pytest.raises(SchemaError, match="by numbers or by text"):
        meetings(together([names_of(own) for own in times]), [1, 1])
    one, other = np.array([2**53 + 1]), np.array([2.0**53])
    assert len(meetings(together([names_of(one), names_of(other)]), [1, 1])) == 2
    short, long = np.array([b"a", b"b"]), np.array([b"b", b"longer"])  # one name decides the type
    found = meetings(together([names_of(short), names_of(long)]), [2, 2])
    assert [np.diff(one.starts).tolist() for one in found] == [[1, 2], [1]]


# ---- weights --------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["row", "person"])
def test_weights_are_clipped_on_their_workers(client, unit):
    X, y = table("2", "narrow")
    made, weights = weighted("2", unit)
    groups = None if unit == "row" else np.random.default_rng(1).integers(0, 300, len(y))
    whole = clone(made).fit(X, y, weights, groups=groups)
    source = Rows.from_dask(*cut(X, y, 7))
    own = cut_names(weights, X, 7)
    assert_same(whole, clone(made).fit(source, sample_weight=own, groups=groups))
    arrays = as_arrays(X, y, 3)
    own = da.from_array(weights, 100)
    assert_same(whole, clone(made).fit(*arrays, sample_weight=own, groups=groups))
    frames = [
        dd.from_pandas(one, npartitions=3) for one in (pd.DataFrame(X.toarray()), pd.Series(y))
    ]
    own = dd.from_pandas(pd.Series(weights), npartitions=3)
    assert_same(whole, clone(made).fit(*frames, sample_weight=own, groups=groups))


def test_weights_that_do_not_fit_their_parts_are_refused_and_nothing_is_spent(client, tmp_path):
    X, y = table("2", "narrow")
    ledger = Ledger(tmp_path / "ledger.db", epsilon=100.0, delta=1e-3)
    made, weights = weighted("2", ledger=ledger)
    source = Rows.from_dask(*cut(X, y, 4))
    hole = np.r_[weights[:-1], np.nan]
    texts = [dask.delayed(np.asarray)(["564738291 kg"] * n) for n in (1, 2, 3, 4)]
    for wrong in (weights, cut_names(weights, X, 3), cut_names(hole, X, 4), texts):
        with pytest.raises(SchemaError, match="sample_weight") as caught:
            clone(made).fit(source, sample_weight=wrong)
        assert "564738291" not in str(caught.value)
    assert ledger.history() == []
    logs = "".join(str(line) for lines in client.get_worker_logs().values() for line in lines)
    assert "564738291" not in logs


def test_weights_that_reload_differently_are_a_changed_source(mortal, tmp_path):
    X, y = table("2", "narrow")
    path = tmp_path / "weights.npy"
    made, weights = weighted("2")
    np.save(path, weights)
    source = Rows.from_dask(*cut(X, y, 1))
    own = [dask.delayed(np.load)(str(path))]
    rows = source.clipped(made.domain, np.array([0, 1]), weights=own)
    rows.class_counts(2).whole(0.5)
    np.save(path, weights[::-1])
    for _ in range(2):
        mortal.kill()
    with pytest.raises(SourceChangedError):
        rows.class_counts(2).whole(0.5)


# ---- kill -9, many times -------------------------------------------------------------------------

PHASES = ("prior", "masses", "length", "gradients", "intercept")
KILLS = [
    (phase, moment, 1 + (i + j) % 3, (125, 20_000, 400_000, 6_000_000)[(i + 2 * j) % 4])
    for i, phase in enumerate(PHASES)
    for j, moment in enumerate(("before", "during", "before", "during"))
]


@pytest.mark.slow
@pytest.mark.parametrize(("phase", "moment", "n_kills", "width"), KILLS)
def test_kill_9_before_and_during_every_kind_of_release(tmp_path, phase, moment, n_kills, width):
    """Weights from 1 KB to 50 MB; what is lost is made again, the noise is drawn once, one entry is committed.

    The first worker dies at the release named, others at the releases that follow. Every case has a cluster of its own.
    """
    rng = np.random.default_rng(0)
    n = 3000
    X = sp.random_array((n, width), density=min(0.3, 30 / width), rng=rng, format="csr")
    y = np.arange(n) % 2
    whole = model("2", n_iter=4).fit(X, y)
    fitted = model("2", n_iter=4)
    fitted.ledger = LedgerOfSeededFits(tmp_path / "l.db", epsilon=100.0, delta=1e-3)
    reached, left, timers = [], [n_kills], []

    with mortal_workers() as workers:

        def watched(plan):
            releases = Releases(plan, make_generator(fitted.random_state))
            answer = releases._release

            def watching(name, *arguments):
                reached.append(name)
                if phase in reached and left[0] > 0:
                    left[0] -= 1
                    if moment == "before":
                        workers.kill()
                    else:
                        timers.append(workers.kill_after(0.02))
                return answer(name, *arguments)

            releases._release = watching
            return releases

        source = Rows.from_dask(*cut(X, y, 4), client=workers.client, step_timeout=SECONDS)
        with releases_made_by(watched):
            fitted.fit(source)
        for timer in timers:
            timer.join(SECONDS)
    assert phase in reached
    assert_same(whole, fitted)
    assert [entry.committed for entry in fitted.ledger.history()] == [True]
