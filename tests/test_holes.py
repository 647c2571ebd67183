"""Holes that were found and closed, each by the input that opened it.

The tests here need nothing but `fit`. Tests of the ledger, of messages, of files and of the audit stand beside their
subjects. `TESTS_OF` lists all of them by what they are about.
"""

import ast
import math
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from audit_cases import build
from dpsparse import Domain, DPGradientClassifier, DPGradientRegressor
from dpsparse import methods as all_estimators
from dpsparse.exceptions import DomainError, NotPrivateWarning, SchemaError
from parts import clip_table

# subject -> file: its tests, or the faults that the audit must find
TESTS_OF = {
    "subnormal entries": {
        "test_holes.py": "test_one_tiny_entry_does_not_decide_the_model "
        "test_many_tiny_entries_with_unequal_scales",
        "rows/test_whole_numbers.py": "test_no_boundary_row_exceeds_its_bound "
        "test_no_boundary_row_exceeds_its_entrywise_bound test_targets_at_the_boundary",
        "audit/test_audit_faults.py": "a_length_in_float64_of_values_in_float32 "
        "not_a_number_becomes_an_integer lengths_in_float32",
    },
    "numbers that overflow": {
        "test_holes.py": "test_what_cannot_be_represented_is_refused_before_anything_is_spent "
        "test_large_and_small_parameters_give_finite_models",
        "rows/test_whole_numbers.py": "test_weights_that_are_not_numbers_move_nothing_beyond_the_bound "
        "test_bounds_that_cannot_be_worked_with_are_refused",
        "audit/test_audit_faults.py": "targets_are_not_clipped",
    },
    "malformed or stale CSR": {
        "test_holes.py": "test_indices_out_of_range_are_refused test_a_stale_flag_does_not_let_a_long_row_pass",
        "rows/test_whole_numbers.py": "test_out_of_range_indices_are_refused "
        "test_falling_row_pointers_are_refused test_a_stale_flag_does_not_hide_duplicates",
        "audit/test_audit_faults.py": "a_stale_flag_is_believed",
    },
    "plain float64 noise": {
        "methods/test_support_plans.py": "test_the_lowest_bit_of_a_weight_tells_nothing "
        "test_no_plan_assumes_ideal_arithmetic",
        "methods/test_screened_lasso.py": "test_no_proven_plan_assumes_ideal_arithmetic",
        "audit/test_audit_faults.py": "plain_float64_noise a_tilt_of_plain_float64_noise",
    },
    "partitions of an account": {
        "ledger/test_ledger_partitions.py": "test_a_partitioned_account_is_one_account_for_each_kind_of_row",
    },
    "a ceiling that locks itself": {
        "ledger/test_ledger.py": "test_a_large_ceiling_does_not_lock_itself"
    },
    "two names, one file": {
        "ledger/test_ledger_attacks.py": "test_two_names_of_one_file_are_refused "
        "test_the_lock_follows_the_file_and_not_its_name test_a_single_mounted_file_is_refused "
        "test_a_book_in_wal_mode_is_refused",
    },
    "rollback under a live object": {
        "ledger/test_ledger_attacks.py": "test_rollback_under_a_live_object_raises",
    },
    "account names, empty plans, passwords, totals": {
        "ledger/test_ledger_partitions.py": "test_names_are_plain_ascii "
        "test_names_are_compared_without_their_case test_two_empty_plans_cost_nothing_and_decide_nothing "
        "test_verify_compares_totals",
        "ledger/test_ledger_postgres.py": "test_a_password_in_a_url_is_never_shown",
    },
    "private cells in messages": {
        "fuzz/test_no_marker_is_printed.py": "test_no_command_prints_a_marker test_no_fit_shows_a_marker "
        "test_no_prediction_shows_a_marker test_the_domain_shows_no_marker test_no_reader_shows_a_marker",
    },
    "edited guarantees, rounding": {
        "accounting/test_guarantee.py": "test_a_guarantee_recomputes_its_events test_the_printed_factor_is_rounded_up",
        "models/test_models.py": "test_an_edited_promise_is_refused "
        "test_an_unproven_model_cannot_be_edited_into_a_proven_one",
        "report/test_card.py": "test_promised_numbers_are_rounded_up",
    },
    "seeded plans, ideal arithmetic, small integers": {
        "methods/test_base.py": "test_the_plan_of_a_seeded_estimator_is_not_private "
        "test_no_plan_of_frank_wolfe_assumes_ideal_arithmetic",
        "test_nonzeros.py": "test_small_numpy_integers_do_not_overflow",
    },
    "overwriting, full disk": {
        "cli/test_cli.py": "test_an_input_is_never_overwritten test_a_full_disk_after_a_paid_fit_keeps_the_model",
    },
    "boundary floats": {
        "audit/test_audit_estimators.py": "test_there_are_many_boundary_rows "
        "test_boundary_floats_contribute_at_most_their_bound test_every_boundary_float_contributes_at_most_its_bound",
    },
    "noise that is used twice": {
        "audit/test_audit_faults.py": "test_reused_noise_is_caught_for_every_seed",
    },
    "one-sided noise of a count": {
        "audit/test_audit_faults.py": "one_sided_noise_of_the_count",
        "audit/test_audit_law.py": "test_noise_test_of_counts_sees_the_sign",
    },
    "noise with a fixed key": {
        "audit/test_audit_faults.py": "a_generator_with_a_fixed_key threads_with_the_same_key",
        "methods/test_base.py": "test_secure_fits_differ",
    },
    "exact number kept by fit": {
        "audit/test_audit_faults.py": "fit_keeps_the_number_of_rows fit_keeps_a_private_number_privately "
        "the_plan_holds_the_number_of_rows the_guarantee_names_the_number_of_rows a_warning_counts_rows",
        "audit/test_audit_estimators.py": "test_replay_compares_everything_that_a_fit_leaves",
    },
    "unlikely vertices impossible": {
        "audit/test_audit_faults.py": "unlikely_vertices_are_impossible unlikely_picks_are_impossible",
        "audit/test_audit_law.py": "test_rare_picks_must_occur",
    },
    "hot/cold law, dense and rare columns": {
        "mechanisms/test_selection_law.py": "test_high_skew_returns_and_is_right",
    },
    "stale copy of the scores, broken envelopes": {
        "methods/test_lasso_attacks.py": "test_one_row_does_not_move_half_of_the_picks",
        "methods/test_fast_frank_wolfe.py": "test_a_score_further_off_than_its_slack_ends_the_run",
        "methods/test_whole_run_laws.py": "test_every_pick_of_a_fit_has_its_law "
        "test_scores_of_an_earlier_step_are_seen",
    },
    "types of targets follow declarations": {
        "schema/test_declared_targets.py": "test_one_more_declared_label_changes_nothing "
        "test_evaluation_takes_every_declared_label test_python_takes_every_form_of_declared_labels",
    },
    "declared labels that are words for missing values": {
        "schema/test_declared_targets.py": "test_one_more_declared_label_changes_nothing",
        "schema/test_missing_values.py": "test_the_same_rows_are_the_same_in_every_form test_what_is_missing",
    },
    "--param sets hyper-parameters alone": {
        "cli/test_param_option.py": "test_what_is_no_hyper_parameter_is_refused_by_name "
        "test_candidates_vary_hyper_parameters_alone test_an_audit_takes_terms_and_hyper_parameters",
    },
    "names of accounts that look alike": {
        "ledger/test_ledger_partitions.py": "test_names_are_plain_ascii test_names_are_compared_without_their_case "
        "test_a_name_that_could_not_be_given_is_no_entry",
    },
    "refusals name no place": {
        "schema/test_refusals_name_no_place.py": "test_the_message_is_the_same_wherever_the_bad_cell_stands "
        "test_cells_of_a_file_without_a_header_are_not_taken_for_names "
        "test_the_key_of_a_single_object_is_never_printed",
    },
    "epsilon of a run that is not private": {
        "test_not_private.py": "test_a_seeded_run_has_epsilon_infinity test_a_run_without_noise_has_epsilon_infinity "
        "test_a_loaded_model_has_epsilon_infinity test_the_record_itself_decides",
    },
    "a failed step releases nothing": {
        "test_fail_safe.py": "test_a_search_that_never_knew_its_gradient_releases_nothing "
        "test_slopes_of_very_many_classes_keep_their_norm",
    },
    "odd names, texts, links and files": {
        "cli/test_edges.py": "test_column_names_do_not_steer_the_terminal test_a_report_shows_any_column_name "
        "test_deep_texts_are_refused test_a_dangling_link_is_not_followed test_labels_are_no_formulas "
        "test_a_report_is_shown_where_the_balance_cannot_be_read test_odd_terms_are_refused_with_a_remedy",
        "models/test_forged_models.py": "test_what_a_model_does_not_hold_is_refused test_a_forged_price_is_refused "
        "test_an_archive_is_no_model",
    },
    "results are rebuilt, faults and mutants are caught": {
        "audit/test_rebuild.py": "test_a_run_is_rebuilt_from_its_transcript test_a_leak_shows",
        "audit/test_rebuild_engines.py": "test_a_run_on_files_or_a_cluster_is_rebuilt",
        "audit/test_rebuild_cli.py": "test_commands_are_rebuilt",
        "mechanisms/test_top_k.py": "test_a_second_pick_among_weights_that_are_all_one",
        "accounting/test_adaptive_dominance.py": "test_the_price_between_grid_points_is_what_the_scaling_lemma_asks",
        "schema/test_schema_property.py": "test_one_more_row_of_the_schema_changes_nothing",
    },
    "models of others that complain": {
        "evaluation/test_evaluate.py": "test_a_model_that_fails_leaves_no_cell_behind_the_refusal "
        "test_one_row_causes_no_warning",
    },
    "promises of files": {
        "models/test_forged_models.py": "test_a_forged_promise_is_refused",
        "models/test_models.py": "test_what_could_not_be_read_again_is_not_saved",
        "evaluation/test_evaluate.py": "test_a_report_may_not_promise_more_than_its_metrics_cost "
        "test_a_report_is_read_only_with_the_noise_of_its_guarantee "
        "test_a_report_may_leave_out_nothing_that_its_guarantee_rests_on",
    },
    "a refusal that depends on the size of a table": {
        "test_fail_safe.py": "test_whether_rows_fit_in_memory_decides_no_refusal",
    },
    "errors behind an error": {
        "test_fail_safe.py": "test_behind_what_leaves_a_worker_stands_no_other_error",
        "rows/test_dask.py": "test_behind_a_refusal_stands_no_error_of_a_worker",
        "evaluation/test_evaluate.py": "test_a_model_that_fails_leaves_no_cell_behind_the_refusal",
    },
    "parts of a result that a comparison skipped": {
        "audit/test_audit_estimators.py": "test_replay_compares_what_any_object_holds_and_its_attributes",
    },
    "cells that NumPy changes": {
        "test_domain.py": "test_names_that_differ_in_a_last_nul_are_two_persons",
        "schema/test_declared_targets.py": "test_a_truth_value_of_numpy_is_one_beside_other_cells",
    },
}


@pytest.mark.parametrize("subject", TESTS_OF)
def test_every_closed_hole_has_its_tests(subject):
    for file, names in TESTS_OF[subject].items():
        tree = ast.parse((Path(__file__).parent / file).read_text())
        found = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert not set(names.split()) - found


@pytest.fixture(autouse=True)
def seeded():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        yield


def ordinary_table(n=4000, d=20):
    rng = np.random.default_rng(0)
    X = rng.random((n, d)) * (rng.random((n, d)) < 0.3)
    return X, (X[:, 0] > X[:, 1]).astype(int)


@pytest.mark.parametrize("entry", [1e-310, 1e-320, 5e-324])
def test_one_tiny_entry_does_not_decide_the_model(entry):
    """The same noise with and without the row: an honest row moves a weight a little, never this far."""
    X, y = ordinary_table()
    row = np.zeros(20)
    row[3] = entry
    fits = [
        DPGradientClassifier(
            Domain(classes=[0, 1], n_samples=4000), epsilon=0.1, random_state=5
        ).fit(A, b)
        for A, b in ((X, y), (np.vstack([X, row]), np.append(y, 1)))
    ]
    assert np.abs(fits[1].coef_ - fits[0].coef_).max() < 0.5


def test_many_tiny_entries_with_unequal_scales():
    """4001 entries of 2^-149 in wide data, after columns were dropped: the row is an empty one."""
    rng = np.random.default_rng(1)
    X = sp.random_array((300, 4001), density=0.01, rng=rng, format="csr")
    y = np.append(rng.integers(0, 2, 300), 1)
    fits = [
        DPGradientClassifier(Domain(classes=[0, 1], n_samples=300), random_state=2).fit(
            sp.vstack([X, sp.csr_array(np.full((1, 4001), entry))], format="csr"), y
        )
        for entry in (0.0, 2.0**-149)
    ]
    assert fits[0].coef_.any()
    assert np.array_equal(fits[1].coef_, fits[0].coef_)


def test_what_cannot_be_represented_is_refused_before_anything_is_spent():
    with pytest.raises(DomainError, match="another unit"):
        DPGradientRegressor(Domain(target_bound=1e40))


@pytest.mark.parametrize("size", [1e30, 1e-30])
def test_large_and_small_parameters_give_finite_models(size):
    X, y = ordinary_table(300)
    domain = Domain(target_bound=size)
    model = DPGradientRegressor(domain, random_state=0).fit(X * size, y * size)
    assert np.isfinite(model.coef_).all()
    assert math.isfinite(model.intercept_)


@pytest.mark.parametrize("name", all_estimators.__all__)
@pytest.mark.parametrize("index", [-1, 7, 2**30])
@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array])
def test_indices_out_of_range_are_refused(name, index, form):
    """They used to corrupt the heap."""
    X = form(np.eye(7))
    X.indices = X.indices.copy()
    X.indices[0] = index
    estimator = build(name, "add-remove")[0]
    with pytest.raises(SchemaError, match="malformed"):
        estimator.fit(X, np.arange(7) % 2)


def test_a_stale_flag_does_not_let_a_long_row_pass():
    """Two entries of one cell, flagged as canonical: together 1.8, longer than the row_norm of 1."""
    X = sp.csr_array(
        (np.array([0.9, 0.9, 0.5]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2)
    )
    X.has_canonical_format = True
    clipped = clip_table(Domain(row_norm=1.0), X, np.zeros(2)).X
    assert np.linalg.norm(clipped.toarray(), axis=1).max() <= 1.0
