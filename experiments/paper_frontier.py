"""Beyond the papers: what works best at a true guarantee, from the rows of frontier.py."""

import math

from _common import plot_by_epsilon, trial_number

from dpsparse.reproduce import Experiment

DATA = ("phishing", "mushrooms", "w8a", "a9a", "news-bigrams")
GRADIENT, FEW = "gradient", "gradient, 100 weights"
METHODS = (
    GRADIENT,
    FEW,
    "peeling",
    "dp-ight",
    "dp-lasso",
)  # the last three keep 100 weights at most
EPSILONS = (0.1, 0.5, 1.0, 3.0)


def configurations(quick):
    if quick:
        return [
            {"data": "phishing", "method": m, "epsilon": 1.0, "mode": "proven"}
            for m in (FEW, "dp-lasso")
        ]
    return [
        {"data": d, "method": m, "epsilon": e, "mode": "proven"}
        for d in DATA
        for m in METHODS
        for e in EPSILONS
    ]


def trial(config, seed):
    import frontier

    method, k = (GRADIENT, 100) if config["method"] == FEW else (config["method"], None)
    number = trial_number("frontier", seed)
    found, model = frontier.fitted_row(config["data"], method, config["epsilon"], k, number)
    measured = {"AUC": 100.0 * found["score"], "non-zeros": found["n_nonzero"]}
    return measured | {"guarantee": model.plan(model.n_features_in_).guarantee}


def verdict(summary):
    won = compared = 0
    for cell in summary.cells:
        if cell["method"] != FEW:
            continue
        rivals = [
            summary.mean("AUC", "proven", **(cell | {"method": m}))
            for m in METHODS
            if m not in (GRADIENT, FEW)
        ]
        rivals = [r for r in rivals if not math.isnan(r)]
        if rivals:
            compared += 1
            won += summary.mean("AUC", "proven", **cell) >= max(rivals)
    return (
        f"Of the methods that keep at most 100 weights, noisy gradients have the highest AUC in {won} of {compared} "
        "cells (data set and epsilon)."
    )


def plot(summary, path):
    names = list(dict.fromkeys(c["data"] for c in summary.cells))
    plot_by_epsilon(summary, path, "AUC", [{"data": n} for n in names], names)


EXPERIMENTS = (
    Experiment(
        name="frontier",
        title="AUC against epsilon at a true guarantee",
        configurations=configurations,
        trial=trial,
        trials=(1, 5),
        metrics={"AUC": ".2f", "non-zeros": ".0f"},
        claim="(No paper.) Which method to use at a proven epsilon?",
        verdict=verdict,
        instead="DPGradientClassifier.",
        protocol="Defaults of the estimators, delta 1e-6, add/remove; data and splits as in experiments/frontier.py.",
        needs=("phishing", "mushrooms", "w8a", "a9a", "a9a.t", "20newsgroups-raw"),
        plot=plot,
    ),
)
