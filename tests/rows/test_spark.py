"""Fits on a local Spark master: the same bits, one barrier, typed refusals, no row in a log."""

import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest

pyspark = pytest.importorskip(
    "pyspark", reason="pyspark is not installed: pip install 'dpsparse[spark]'"
)
pd = pytest.importorskip("pandas")
if shutil.which("java") is None:
    pytest.skip("Spark needs Java, which is not installed", allow_module_level=True)

from sklearn.base import clone  # noqa: E402

import dpsparse  # noqa: E402
from dpsparse import Domain, Ledger, Rows  # noqa: E402
from dpsparse.exceptions import (  # noqa: E402
    ClusterError,
    ParameterError,
    SchemaError,
    SourceChangedError,
)
from dpsparse.rows.spark import _Settings  # noqa: E402
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
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:pyspark"),
]

SECRET = 918273645
PERSON = "person-778899"


@contextmanager
def output_in(path):
    """What this process and its children write to stderr goes to a file; a JVM keeps the one it started with."""
    kept = os.dup(2)
    with open(path, "ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where Spark writes its log."""
    return tmp_path_factory.mktemp("spark")


def started(folder, master):
    from pyspark.sql import SparkSession

    options = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # starts sooner
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.python.daemon.module": "rows.spark_daemon",  # workers start sooner
    }
    builder = SparkSession.builder.master(master)
    for name, value in options.items():
        builder = builder.config(name, value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
        return builder.getOrCreate()


@pytest.fixture(scope="module")
def session(folder):
    """Two cores, and a task that fails is tried four times."""
    with output_in(folder / "log"):
        session = started(folder, "local[2,4]")
    yield session
    session.stop()


def as_frame(session, X, y, **more):
    """Four partitions, in the order of the table; the names of columns need quotes."""
    columns = {f"f.`{j}": column for j, column in enumerate(X.toarray().T)} | {"y": y} | more
    frame = pd.DataFrame(columns)
    some = len(y) // 3
    return session.createDataFrame(frame[:some]).union(session.createDataFrame(frame[some:]))


def source(session, X, y):
    return Rows.from_spark(as_frame(session, X, y), target="y")


@pytest.mark.parametrize("kind", ["2", "regression"])
def test_executors_give_the_bits_of_one_table(session, kind):
    X, y = table(kind, "narrow")
    whole = model(kind, n_iter=3).fit(X, y)
    fitted = model(kind, n_iter=3).fit(source(session, X, y))
    assert_same(whole, fitted)
    assert list(fitted.feature_names_in_) == [f"f.`{j}" for j in range(X.shape[1])]


@pytest.mark.parametrize(("name", "memory"), [("two-stage", 10**9), ("lasso", 10**9), ("lasso", 1)])
def test_other_families(session, name, memory):
    X, y = table("2", "narrow")
    kind, options = OTHERS[name]
    domain = Domain(classes=[0, 1], n_samples=900, row_norm=2.0)
    options = options if name == "two-stage" else {**options, "n_iter": 3}
    whole, spread = (kind(domain, random_state=3, epsilon=4.0, **options) for _ in range(2))
    whole.fit(*((X, y) if memory > 1 else (Apart(X, y, 1),)))
    rows = source(session, X, y)
    rows._memory = memory
    assert_same(whole, spread.fit(rows))


def test_executors_turn_their_rows_for_ridge(session):
    X, y = table("regression", "narrow")
    assert_same(looking().fit(X, y), looking().fit(source(session, X, y)))


@pytest.mark.parametrize("most", [None, 3])
def test_rows_of_a_person_meet_wherever_they_stand(session, most):
    """The bits of the table in memory; one person has rows in all partitions, and a cap draws among them."""
    X, y = table("2", "narrow")
    ids = np.random.default_rng(1).integers(0, 300, len(y))
    ids[::3] = 77
    names = np.array([f"{PERSON}-{own}" for own in ids])
    domain = dataclasses.replace(model("2").domain, unit="person", rows_per_unit=most)
    whole, spread = (model("2", n_iter=3).set_params(domain=domain) for _ in range(2))
    whole.fit(X, y, groups=names)
    frame = as_frame(session, X, y, who=names)
    rows = Rows.from_spark(frame, target="y", drop=["who"])
    assert_same(whole, spread.fit(rows, groups="who"))
    with pytest.raises(SchemaError, match="name of a column"):
        spread.fit(rows, groups=names)


def test_weights_are_clipped_on_the_executors(session):
    X, y = table("2", "narrow")
    made, weights = weighted("2")
    made.n_iter = 3
    frame = as_frame(session, X, y, w=weights)
    rows = Rows.from_spark(frame, target="y", drop=["w"])
    assert_same(clone(made).fit(X, y, weights), clone(made).fit(rows, sample_weight="w"))
    with pytest.raises(SchemaError, match="name of a column"):
        made.fit(rows, sample_weight=weights)
    with pytest.raises(SchemaError, match="list it in drop"):
        made.fit(Rows.from_spark(frame, target="y"), sample_weight="w")


def test_a_killed_task_and_lost_rows_change_nothing(session, monkeypatch, tmp_path):
    X, y = table("2", "narrow")
    whole = model("2", n_iter=3).fit(X, y)
    step, answers, once = [0], _Settings.answers, str(tmp_path / "killed")

    def dies_once(elements):
        if not os.path.exists(once):
            os.close(os.open(once, os.O_CREAT))
            os.kill(os.getpid(), signal.SIGKILL)
        return elements

    def with_a_death(self, rdd):
        step[0] += 1
        if step[0] == 3:  # all that executors keep, as if they were gone
            for kept in self.context._jsc.getPersistentRDDs().values():
                kept.unpersist(True)
        return answers(self, rdd.mapPartitions(dies_once) if step[0] == 4 else rdd)

    monkeypatch.setattr(_Settings, "answers", with_a_death)
    ledger = LedgerOfSeededFits(tmp_path / "l.db", epsilon=100.0, delta=1e-3)
    fitted = model("2", n_iter=3, ledger=ledger).fit(source(session, X, y))
    assert step[0] > 4
    assert os.path.exists(once)
    assert_same(whole, fitted)
    assert len(ledger.history()) == 1


def test_a_source_that_reloads_differently_is_refused(session, tmp_path):
    path = str(tmp_path / "rows.npy")
    np.save(path, np.arange(12.0).reshape(6, 2) / 12.0)

    def read(batches):
        import pyarrow as pa

        for _ in batches:
            a, b = np.load(path).T
            yield pa.record_batch({"a": a, "b": b, "y": np.array([0, 1] * 3)})

    frame = session.range(1, numPartitions=1).mapInArrow(read, "a double, b double, y long")
    rows = Rows.from_spark(frame, target="y").clipped(model("2").domain, np.array([0, 1]))
    count = rows.class_counts(2)
    before = count.whole(0.5)
    np.save(path, np.arange(12.0).reshape(6, 2) / 13.0)
    assert np.array_equal(before, rows.class_counts(2).whole(0.5))  # still held by an executor
    rows._parts._rdd.unpersist(blocking=True)
    with pytest.raises(SourceChangedError):
        rows.class_counts(2).whole(0.5)


def test_nothing_is_spent_before_every_row_was_validated(session, tmp_path):
    X, y = table("2", "narrow")
    ledger = Ledger(tmp_path / "ledger.db", epsilon=100.0, delta=1e-3)
    undeclared, holes = y.copy(), X.copy()
    undeclared[-1] = SECRET
    holes.data[-1] = np.nan
    texts = np.array(["1.5"] * (len(y) - 1) + [str(SECRET) + "x"])
    for frame in (
        as_frame(session, X, undeclared),
        as_frame(session, holes, y),
        as_frame(session, X, y, text=texts),
    ):
        with pytest.raises(SchemaError) as caught:
            model("2", ledger=ledger).fit(Rows.from_spark(frame, target="y"))
        assert str(SECRET) not in str(caught.value)
    assert ledger.history() == []


def test_what_takes_too_long_is_cancelled_with_a_typed_error(session):
    def sleep(batches):
        time.sleep(60)
        yield from batches

    frame = (
        session.range(4)
        .withColumn("y", pyspark.sql.functions.lit(1))
        .mapInArrow(sleep, "id long, y int")
    )
    with pytest.raises(ClusterError, match="step_timeout"):
        model("2").fit(Rows.from_spark(frame, target="y", step_timeout=2.0))
    deadline = time.monotonic() + 300.0
    while session.sparkContext.statusTracker().getActiveJobsIds():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_remedies_are_named(session):
    frame = session.range(4)
    with pytest.raises(ParameterError, match="step_timeout"):
        Rows.from_spark(frame, target="id", step_timeout=0.0)
    with pytest.raises(SchemaError, match="no column"):
        Rows.from_spark(frame, target="y")
    with pytest.raises(SchemaError, match="no rows"):
        model("2").fit(Rows.from_spark(session.range(0).selectExpr("id", "id as y"), target="y"))
    with pytest.raises(ParameterError, match=r"Rows\.from_spark"):
        model("2").fit(frame, np.zeros(4))

    def fit_inside(_):
        try:
            dpsparse.DPGradientClassifier(Domain(classes=[0, 1])).fit(np.eye(4), [0, 1, 0, 1])
        except ParameterError as error:
            yield str(error)

    (said,) = session.sparkContext.parallelize([0], 1).mapPartitions(fit_inside).collect()
    assert "inside a Spark task" in said


def test_no_row_is_in_a_log(session, folder):
    """After all of the above; the task that was killed is in it."""
    text = (folder / "log").read_bytes()
    assert b"Lost task" in text
    assert str(SECRET).encode() not in text
    assert PERSON.encode() not in text


KILLED = """
import os, signal, sys
sys.path[:0] = {path!r}
from pathlib import Path
from rows import test_spark as t
session = t.started(Path({folder!r}), "local-cluster[2,1,1024]")
def above(_):
    with open(f"/proc/{{os.getppid()}}/stat") as file:
        yield int(file.read().rsplit(")", 1)[1].split()[1])
X, y = t.table("2", "narrow")
answers, step = t._Settings.answers, [0]
def with_a_death(self, rdd):
    step[0] += 1
    if step[0] == 3:
        executors = set(session.sparkContext.parallelize(range(8), 8).mapPartitions(above).collect())
        os.kill(min(executors), signal.SIGKILL)
    return answers(self, rdd)
t._Settings.answers = with_a_death
fitted = t.model("2", n_iter=3).fit(t.source(session, X, y))
assert step[0] > 3
t.assert_same(t.model("2", n_iter=3).fit(X, y), fitted)
print("the same")
session.stop()
"""


@pytest.mark.slow
def test_a_killed_executor_changes_nothing(tmp_path):
    """Two processes beside the driver hold the rows; one is killed between two steps."""
    code = KILLED.format(path=[path for path in sys.path if path], folder=str(tmp_path))
    quiet = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=quiet, capture_output=True, text=True, timeout=550
    )
    assert "the same" in done.stdout, done.stderr[-3000:]
