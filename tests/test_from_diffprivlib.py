"""The tests of diffprivlib 0.6.6 (MIT licence) for its linear models, its scaler and its accountant, with our classes.

A test stands for one or several of theirs, which `of` names. Where they warn and go on, we refuse: a missing bound, a
parameter that does not exist, weights. `ELSEWHERE` says why the others have no counterpart.
"""

import dataclasses

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.multioutput import MultiOutputRegressor

from dpsparse import Domain, DPSparseClassifier, DPSparseRegressor, Ledger
from dpsparse.accounting import Pure, Repeated
from dpsparse.accounting import epsilon as price
from dpsparse.exceptions import BudgetError, LedgerError
from dpsparse.preprocessing import DPStandardizer

pytestmark = pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")

N_TESTS = {
    "LinearRegression": 12,
    "LogisticRegression": 17,
    "StandardScaler": 12,
    "BudgetAccountant": 44,
    "Budget": 5,
}
NO_DEFAULT = "An account belongs to a data set and is passed to an estimator; a default could pay for other tables."
ELSEWHERE = {
    "StandardScaler refit": "There is no partial_fit: every pass over the rows spends.",
    "BudgetAccountant init": "An account without a ceiling allows everything; ours needs one.",
    "BudgetAccountant set_default": NO_DEFAULT,
    "BudgetAccountant pop_default": NO_DEFAULT,
    "BudgetAccountant default": NO_DEFAULT,
    "BudgetAccountant with_statement": NO_DEFAULT,
    "BudgetAccountant with_statement_errors": NO_DEFAULT,
    "Budget tuple": "A guarantee is more than a pair: it also has the neighbours, the unit and the proof.",
    "Budget comparisons": "Guarantees about different neighbours are not ordered.",
}
ADAPTED = []


def of(group, *names):
    """Of which tests of theirs a test has the task."""
    ADAPTED.extend(f"{group} {name}" for name in names)
    return lambda test: test


def test_every_test_is_adapted_or_explained():
    found = [*ADAPTED, *ELSEWHERE]
    assert len(set(found)) == len(found) == sum(N_TESTS.values()) == 90
    for group, n in N_TESTS.items():
        assert sum(name.split()[0] == group for name in found) == n
    assert len(ADAPTED) >= 80


HOURS = np.array(
    [
        0.5,
        0.75,
        1,
        1.25,
        1.5,
        1.75,
        1.75,
        2,
        2.25,
        2.5,
        2.75,
        3,
        3.25,
        3.5,
        4,
        4.25,
        4.5,
        4.75,
        5,
        5.5,
    ]
)[:, None]
PASSED = np.array([0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 1, 1, 1, 1, 1])
LINE = np.linspace(-1, 1, 1000)[:, None]


def regressor(**options):
    domain = options.pop("domain", Domain(target_range=(-1, 1), n_samples=1000, feature_bound=1.0))
    return DPSparseRegressor(domain, **{"epsilon": 2.0} | options)


def classifier(classes=(0, 1), **options):
    return DPSparseClassifier(
        Domain(classes=list(classes), row_norm=1.0), **{"epsilon": 2.0} | options
    )


@of("LinearRegression", "not_none", "no_params", "no_bounds_y")
@of("LogisticRegression", "not_none", "no_params")
def test_what_is_not_declared_is_refused():
    for model in (
        DPSparseRegressor(),
        DPSparseRegressor(Domain(feature_bound=5.0)),
        DPSparseClassifier(),
    ):
        with pytest.raises(ValueError, match="Domain"):
            model.fit(HOURS, PASSED)


@of("LinearRegression", "sample_weight_warning")
@of("LogisticRegression", "sample_weight_warning")
@of("StandardScaler", "sample_weights")
def test_weights_of_rows_are_refused():
    for model in (regressor(), classifier(), DPStandardizer(epsilon=1.0)):
        with pytest.raises((TypeError, ValueError), match="sample_weight"):
            model.fit(HOURS, PASSED, sample_weight=np.ones_like(PASSED))


@of("LinearRegression", "large_data", "copy")
@of("LogisticRegression", "smaller_norm_than_data")
def test_rows_beyond_the_bounds_are_clipped_and_the_table_stays_as_it_was():
    X = HOURS.copy()
    for model in (regressor(domain=Domain(target_range=(0, 1), feature_bound=3.0)), classifier()):
        model.fit(X, PASSED)
    assert np.array_equal(X, HOURS)


@of("LinearRegression", "different_results", "random_state")
@of("LogisticRegression", "different_results", "random_state")
def test_noise_follows_the_seed():
    X, y = np.tile(HOURS - 3.0, (3, 1)) / 2.5, np.tile(PASSED, 3)
    for make in (regressor, classifier):
        seeded = [make(random_state=seed).fit(X, y).coef_ for seed in (0, 1, 0)]
        assert np.array_equal(seeded[0], seeded[2])
        free = [make().fit(X, y).coef_ for _ in range(2)]
        for one, other in ((seeded[0], seeded[1]), free):
            assert not np.array_equal(one, other)


@of("LinearRegression", "same_results")
@of("LogisticRegression", "same_results")
def test_without_noise_predictions_are_near_those_of_sklearn():
    """Theirs are equal, because another algorithm runs then; ours is the same algorithm without noise."""
    X, y = load_iris(return_X_y=True)
    X = X - X.mean(axis=0)
    domain = Domain(target_range=(0, 2), n_samples=150, row_norm=4.5)
    ours = regressor(domain=domain, epsilon=np.inf).fit(X, y)
    assert ours.score(X, y) > LinearRegression().fit(X, y).score(X, y) - 0.02
    ours = DPSparseClassifier(Domain(classes=[0, 1, 2], row_norm=4.5), epsilon=np.inf).fit(X, y)
    assert ours.score(X, y) > LogisticRegression(max_iter=1000).fit(X, y).score(X, y) - 0.1


@of("LinearRegression", "simple")
def test_a_line_is_found():
    found = regressor(random_state=0).fit(LINE, LINE[:, 0]).predict([[0.5]])
    assert found[0] == pytest.approx(0.5, abs=0.05)


@of("LogisticRegression", "simple")
def test_two_classes_are_told_apart():
    """With twenty times their rows: noise drowns the slope of 60."""
    X, y = np.tile(HOURS - 3.0, (60, 1)) / 2.5, np.tile(PASSED, 60)
    model = classifier(random_state=1).fit(X, y)
    assert model.predict((np.array([[0.5], [5.5]]) - 3.0) / 2.5).tolist() == [0, 1]


@of("LinearRegression", "multiple_targets")
def test_several_targets_are_several_models():
    """The budget of each is its own; a ledger adds them up."""
    y = np.tile(LINE, 4)
    with pytest.raises(ValueError, match="y"):
        regressor().fit(LINE, y)
    many = MultiOutputRegressor(regressor()).fit(LINE, y)
    assert many.predict([[0.5]]).shape == (1, 4)


@of("LinearRegression", "accountant")
@of("LogisticRegression", "accountant")
@of("StandardScaler", "accountant")
def test_an_account_pays_once_and_not_twice():
    for make in (regressor, classifier, DPStandardizer):
        ledger = Ledger(epsilon=2.5, delta=1e-5)
        model = make(epsilon=2.0, delta=1e-6, ledger=ledger)
        model.fit(LINE, LINE[:, 0] if make is regressor else np.arange(1000) % 2)
        assert 0.0 < ledger.spent() <= 2.0
        with pytest.raises(BudgetError):
            model.fit(LINE, LINE[:, 0] if make is regressor else np.arange(1000) % 2)
        assert len(ledger.history()) == 1


@of("LogisticRegression", "bad_params", "one_class", "multi_dim_y")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_bad_parameters_and_tables_are_refused():
    for options in ({"epsilon": -1.0}, {"epsilon": "1"}, {"delta": 2.0}, {"n_nonzero": -1}):
        with pytest.raises(ValueError, match=next(iter(options))):
            classifier(**options).fit(HOURS, PASSED)
    with pytest.raises(ValueError, match="class"):
        classifier([0]).fit([[1.0]], [0])
    with pytest.raises(ValueError, match="y"):
        classifier(range(8)).fit(np.ones((4, 1)), [[0, 1, 2, 3], [4, 5, 6, 7]])


@of("LogisticRegression", "warm_start", "solver_warning", "multi_class_warning")
@of("StandardScaler", "do_nothing")
@of("BudgetAccountant", "init_large_slack", "change_large_slack", "total_large_slack")
def test_parameters_that_do_not_exist_are_refused_by_name():
    for make, name in (
        (classifier, "warm_start"), (classifier, "solver"), (classifier, "multi_class"),
        (DPStandardizer, "with_mean"), (Ledger, "slack"),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=name):
            make(**{name: 0.1})


@of("LogisticRegression", "trinomial", "quadnomial")
def test_three_and_four_classes():
    for k in (3, 4):
        X = np.linspace(0.25, 1.0, k)[:, None]
        assert classifier(range(k)).fit(X, np.arange(k)).predict(X).shape == (k,)


@of("StandardScaler", "class", "not_none", "no_range", "functionality")
def test_a_standardizer_needs_no_range():
    X = np.random.default_rng(0).random((5_000, 5))
    step = DPStandardizer(epsilon=1.0)
    assert isinstance(step, BaseEstimator)
    assert step.fit(X).transform(X).shape[0] == step.fit_transform(X).shape[0] == 5_000


@of("StandardScaler", "inf_epsilon", "similar_results", "different_results", "random_state")
def test_centre_and_scale_are_near_the_truth_and_follow_the_seed():
    X = np.random.default_rng(0).random((20_000, 5))
    exact, *noisy, again = (
        DPStandardizer(epsilon=epsilon, random_state=seed).fit(X)
        for epsilon, seed in ((np.inf, 0), (1.0, 0), (1.0, 1), (1.0, 0))
    )
    for step in (exact, *noisy):
        np.testing.assert_allclose(step.center_, np.median(X, axis=0), atol=0.1)
        np.testing.assert_allclose(step.scale_, 0.45, atol=0.15)
    for name in ("center_", "scale_"):
        first, second, third = (getattr(step, name) for step in (*noisy, again))
        assert np.array_equal(first, third)
        assert not np.array_equal(first, second)


# ---- the account -----------------------------------------------------------------------------------


def plan(epsilon):
    """Of a fit that costs about this much."""
    return classifier(epsilon=epsilon, delta=1e-6).plan(n_features=3)


def account(*spent, epsilon=1.0, delta=1e-5):
    ledger = Ledger(epsilon=epsilon, delta=delta)
    for each in spent:
        ledger.reserve(plan(each)).commit()
    return ledger


@of(
    "BudgetAccountant",
    "init_neg_eps",
    "init_neg_del",
    "init_large_del",
    "init_zero_budget",
    "init_delta",
)
def test_ceilings_that_mean_nothing_are_refused():
    for epsilon, delta in ((-1, 0.1), (1, -0.5), (1, 1.5), (0, 0), (0, 0.5)):
        with pytest.raises(LedgerError):
            Ledger(epsilon=epsilon, delta=delta)


@of("BudgetAccountant", "init_epsilon", "get_budget", "change_budget", "repr")
@of("Budget", "correct_vals", "repr")
def test_a_ceiling_can_be_read_and_not_changed():
    ledger = account()
    assert (ledger.terms.epsilon, ledger.terms.delta) == (1.0, 1e-5)
    with pytest.raises(dataclasses.FrozenInstanceError):
        ledger.terms.epsilon = 2.0
    for text in (repr(ledger), repr(plan(0.1).guarantee)):
        assert "epsilon=" in text
        assert "delta=" in text


@of(
    "BudgetAccountant",
    "init_scalar_spent",
    "init_non_list_spent",
    "init_small_tuple_spent",
    "init_large_tuple_spent",
)
@of("BudgetAccountant", "load_wrong_type")
def test_only_a_plan_is_paid_for_and_only_by_an_account():
    ledger = account()
    for wrong in (2, (1, 0), [(1,)], [(1, 0, 2)]):
        with pytest.raises((TypeError, AttributeError)):
            ledger.reserve(wrong)
    for wrong in (0, [1, 2, 3], "BudgetAccountant"):
        with pytest.raises((TypeError, ValueError, AttributeError)):
            classifier(ledger=wrong).fit(HOURS, PASSED)
    assert ledger.history() == []


@of("BudgetAccountant", "init_exceed_budget", "spend_exceed", "spent_budget")
def test_what_exceeds_the_ceiling_is_refused_and_not_spent():
    ledger = account(0.9)
    before = ledger.spent()
    with pytest.raises(BudgetError):
        ledger.reserve(plan(0.9))
    assert ledger.spent() == before


@of("BudgetAccountant", "get_spent_budget", "change_spent_budget", "len", "spend", "budget_output")
def test_what_was_spent_can_be_read_and_not_changed():
    ledger = account()
    assert (ledger.history(), ledger.spent()) == ([], 0.0)
    ledger = account(0.2, 0.3)
    entries = ledger.history()
    assert [round(entry.epsilon, 9) for entry in entries] == [0.2, 0.3]
    assert 0.0 < ledger.spent() <= 0.5
    entries.append(entries[0])
    assert len(ledger.history()) == 2
    assert isinstance(ledger.spent(), float)
    assert isinstance(ledger.remaining(), float)


@of("BudgetAccountant", "spend_errors", "small_epsilon")
@of("Budget", "bad_vals")
def test_prices_that_mean_nothing_are_refused():
    for epsilon, delta in (
        (0, 1e-9),
        (-1, 1e-9),
        (1, -1),
        (1, 2),
        (1e-16, 1e-9),
        ("0", 1e-9),
        (1j, 1e-9),
    ):
        with pytest.raises((TypeError, ValueError)):
            classifier(epsilon=epsilon, delta=delta).plan(n_features=3)


@of(
    "BudgetAccountant",
    "remaining_budget_epsilon",
    "remaining_budget_positive_vals",
    "remaining_budget_k",
)
@of("BudgetAccountant", "remaining_budget_zero_delta")
def test_what_remains_can_be_spent_at_once():
    ledger = account()
    assert ledger.remaining() == pytest.approx(1.0, rel=0.01)
    ledger = account(0.3, 0.3)
    left = ledger.remaining()
    assert 0.0 < left < 1.0
    assert ledger.would_allow(plan(0.95 * left))
    assert not ledger.would_allow(plan(1.5 * left))
    with pytest.raises(TypeError):
        ledger.remaining(0)


@of("BudgetAccountant", "remaining_budget_epsilon_slack", "remaining_budget_delta")
@of("BudgetAccountant", "remaining_budget_implementation", "remaining_budget_implementation2")
def test_many_fits_get_more_than_the_ceiling_divided():
    """Of 50 fits each may cost more than a fiftieth, and the account is not exceeded."""
    ledger, one = account(), plan(0.05)
    while ledger.would_allow(one):
        ledger.reserve(one).commit()
    assert len(ledger.history()) > 25
    assert 0.5 < ledger.spent() <= 1.0


@of("BudgetAccountant", "remaining_budget_inf", "inf_spend")
def test_an_infinite_price_is_refused():
    with pytest.raises(BudgetError):
        account().reserve(plan(np.inf))


@of("BudgetAccountant", "correct_composition")
def test_seven_hundred_small_prices_compose_as_theirs_do():
    assert price(Repeated(Pure(2.0**-9), 700), 2.0**-25) <= 0.278322807
