"""Runs on files larger than memory and on a cluster are rebuilt as runs in memory are."""

from itertools import count

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file

from audit.runs import estimator_runs, fit, shown
from dpsparse import Domain, DPGradientClassifier, Rows
from dpsparse.audit import rebuild
from dpsparse.audit.neighbours import row_weights
from dpsparse.audit.tables import Schema
from dpsparse.rows import sources

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:distributed"),
]
QUICK = ("DPGradientClassifier", "DPLassoClassifier", "DPRidgeRegressor", "DPTwoStageRegressor")
RUNS = [run for run in estimator_runs() if run.quick]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Tables of tests are smaller than the smallest part that pays; several parts of them are wanted."""
    monkeypatch.setattr(
        sources,
        "bytes_of_a_part",
        lambda memory: min(max(memory // 24, 2**10), sources.LARGEST_PART),
    )
    monkeypatch.setattr(sources, "read_size", lambda size: 24 * 2**10)


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed", reason="dask is not installed")
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address=None, processes=False
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def as_csr(folder, X, y):
    return Rows.from_csr(sp.csr_array(X), y, memory="1MB")


def as_svmlight(folder, X, y):
    dump_svmlight_file(X, y, str(folder / "rows.svm"), zero_based=False)
    return Rows.from_svmlight(folder / "rows.svm", n_features=X.shape[1])


def as_csv(folder, X, y):
    names = [f"x{j}" for j in range(X.shape[1])]
    lines = [",".join(["y", *names])]
    lines += [
        ",".join([repr(t), *map(repr, row)]) for t, row in zip(y.tolist(), X.tolist(), strict=True)
    ]
    (folder / "rows.csv").write_text("\n".join(lines))
    return Rows.from_csv(folder / "rows.csv", target="y")


def as_parquet(folder, X, y):
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    table = arrow.table({"y": y, **{f"x{j}": X[:, j] for j in range(X.shape[1])}})
    parquet.write_table(table, folder / "rows.parquet", row_group_size=20)
    return Rows.from_parquet(folder / "rows.parquet", target="y")


def as_dask(folder, X, y):
    array = pytest.importorskip("dask.array")
    return Rows.from_dask(array.from_array(X, chunks=(25, -1)), array.from_array(y, chunks=25))


@pytest.mark.parametrize("source", [as_csr, as_svmlight, as_csv, as_parquet, as_dask])
@pytest.mark.parametrize(
    "run",
    [
        pytest.param(run, id=run.name, marks=[] if run.name.startswith(QUICK) else pytest.mark.slow)
        for run in RUNS
    ],
)
def test_a_run_on_files_or_a_cluster_is_rebuilt(run, source, tmp_path, request):
    if source is as_dask:
        request.getfixturevalue("client")
    estimator, folders = run.build().args[0], count()

    def action(X, y, groups=None):
        folder = tmp_path / str(next(folders))
        folder.mkdir()
        return fit(estimator, source(folder, X, y), None, groups)

    found = rebuild(action, *run.tables())
    assert found.differences == ()
    assert found.n_answers > 0


@pytest.mark.parametrize("source", [as_csr, as_parquet])
@pytest.mark.parametrize("unit", ["row", "person"])
def test_a_run_with_weights_on_files_is_rebuilt(unit, source, tmp_path):
    """Also from strangers, whose rows have other weights."""
    domain = Domain(classes=(0, 1), weight_bound=3.0, unit=unit)
    estimator, folders = DPGradientClassifier(domain, n_iter=3, verbose=-1), count()

    def action(X, y, groups=None):
        folder = tmp_path / str(next(folders))
        folder.mkdir()
        more = row_weights(estimator, X) | ({} if groups is None else {"groups": groups})
        return shown(clone(estimator).fit(source(folder, X, y), **more))

    found = rebuild(action, *Schema(domain, "add-remove", 7).tables())
    assert found.differences == ()
    assert found.n_answers > 0


def test_several_parts_were_read():
    """Otherwise the runs above were runs in memory."""
    [run] = [run for run in RUNS if run.name.startswith("DPGradientClassifier-0-add")]
    source = as_csr(None, *run.tables()[0])
    rows = source.clipped(run.build().args[0].domain, np.array([0, 1]))
    assert len(rows._parts.collect(len)) > 1
