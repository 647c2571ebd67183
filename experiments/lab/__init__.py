"""The laboratory: every experiment is a list of (task, method, setting), and one engine runs, stores and shows them.

    task      a data set with its public facts, split by a hash of row numbers (tasks.py, tables.py, domains/*.toml)
    method    ours, a rival, a reference (methods.py, rivals/)
    setting   epsilon, delta, adjacency, number of weights (settings of a suite)
    measure   AUC, log loss, R2, F1 of the support, coverage, processor seconds, peak memory (measures.py)
    suite     a list of the three (suites.py); its rows are JSON lines in results/lab/<suite>.jsonl

`dpsparse lab run|table|page|ticket` is its command, `python -m lab` from this folder's parent does the same.
"""
