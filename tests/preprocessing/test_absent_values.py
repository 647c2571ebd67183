"""Values that no row had: they get no column and no weight, and count as an average row."""

import math

import numpy as np
import pytest

from dpsparse import (
    Domain,
    DPCategoryEncoder,
    DPGradientClassifier,
    DPPipeline,
    DPSparseClassifier,
    DPTablePreparer,
    PublicEncoder,
    load,
    save,
)

# A column of codes is left out, with a warning.
pytestmark = pytest.mark.filterwarnings("ignore::dpsparse.exceptions.BudgetWarning")
RNG = np.random.default_rng(4)
N = 6000
SEX = RNG.choice(["f", "m"], N).astype(object)
SEX[:900] = None  # gaps are frequent here
PLAN = RNG.choice(["a", "b", "c"], N, p=[0.6, 0.3, 0.1]).astype(object)
CODE = np.array([f"code {k}" for k in RNG.integers(0, 3000, N)], object)
X = {"sex": SEX, "plan": PLAN, "code": CODE}
y = ((PLAN == "a") ^ (RNG.random(N) < 0.1)).astype(int)


def changed(column, value):
    return {**X, column: np.full(N, value, object)}


def pipe(preparer, model=DPSparseClassifier, **facts):
    steps = [("table", preparer), ("model", model(Domain(classes=[0, 1], **facts)))]
    return DPPipeline(steps, epsilon=3.0).fit(X, y)


@pytest.mark.parametrize("model", [DPSparseClassifier, DPGradientClassifier])
@pytest.mark.parametrize("facts", [{}, {"n_samples": N}])
def test_a_blank_or_new_value_is_an_average_row(model, facts):
    def least():
        fitted = pipe(DPTablePreparer(rest="auto"), model, **facts)
        return fitted, min(
            fitted.score(changed(column, value), y)
            for column in ("sex", "code")  # which tell nothing about y
            for value in (None, "a new value")
        )

    # A count of nothing stands out of its noise once in 700 times.
    fitted, score = max((least() for _ in range(2)), key=lambda found: found[1])
    assert fitted.score(X, y) > 0.8
    assert score > fitted.score(X, y) - 0.05
    for value in (None, "a new value"):  # of the column that tells all
        margins = fitted.decision_function(changed("plan", value))
        known = [fitted.decision_function(changed("plan", name)).mean() for name in "abc"]
        assert min(known) <= margins.mean() <= max(known)


def test_columns_exist_for_what_occurs():
    table = DPTablePreparer({"code": "category"}, rest="auto")
    names = set(pipe(table, n_samples=N).get_feature_names_out())
    assert {"sex = f", "sex = m", "sex is missing", "plan = a"} <= names
    absent = {n for n in names if n.startswith(("sex #", "plan #"))} | names & {
        "plan is missing",
        "code is missing",
    }
    assert len(absent) <= 2  # by chance once in 700 times each
    assert sum(name.startswith("code # ") for name in names) > 5  # a bucket for 250 rows


def test_declared_categories_stay_and_flags_are_counted():
    roles = {"sex": ["f", "m"], "plan": ["a", "b", "c", "nobody's"], "code": "drop"}
    names = list(pipe(DPTablePreparer(roles)).get_feature_names_out())
    declared = {"sex = f", "sex = m", "plan = a", "plan = b", "plan = c", "plan = nobody's"}
    assert declared | {"sex is missing"} <= set(names)
    assert len(names) <= 8
    free = DPTablePreparer(roles).fit(X)  # nobody pays for counts here
    assert "plan is other" in free.get_feature_names_out()


def test_rows_stay_bounded_and_alone():
    step = DPCategoryEncoder(epsilon=2.0).fit(X)
    new = {"sex": ["f", "x", None], "plan": ["a", "x", None], "code": ["code 1", "x", None]}
    rows = step.transform(new).toarray()
    assert np.all(np.linalg.norm(rows, axis=1) <= math.sqrt(3) * (1 + 1e-12))
    for i in range(3):
        alone = {name: cells[i : i + 1] for name, cells in new.items()}
        assert np.array_equal(step.transform(alone).toarray()[0], rows[i])
    place = list(step.get_feature_names_out()).index("plan = a")
    assert rows[2, place] == pytest.approx(0.6, abs=0.1)  # the released share


def test_saved_models_agree(tmp_path):
    table = {"sex": SEX, "plan": PLAN}
    model = DPGradientClassifier(Domain(classes=[0, 1]))
    fitted = DPPipeline([("names", DPCategoryEncoder()), ("model", model)], epsilon=3.0)
    fitted.fit(table, y)
    new = {"sex": ["f", "x", None], "plan": ["b", None, "x"]}
    again = load(save(fitted, tmp_path / "model.json"))
    assert np.array_equal(again.decision_function(new), fitted.decision_function(new))


def test_without_noise_what_occurs_once_has_a_column():
    step = DPCategoryEncoder(epsilon=math.inf).fit({"a": ["x"] * 5 + [None]})
    assert step.get_feature_names_out().tolist() == ["a = x", "a is missing"]
    declared = PublicEncoder(["x"]).fit({"a": ["x"]})
    assert declared.get_feature_names_out().tolist() == ["a = x", "a is other", "a is missing"]
