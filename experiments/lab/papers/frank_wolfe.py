"""Raff, Khanna and Lu (2023, 002): Tables 3 and 4, Figures 1 to 4. One run per data set serves all four figures."""

import math
import time

import numpy as np
from scipy.special import expit

from dpsparse import Domain, DPGradientClassifier, DPLassoClassifier
from dpsparse.published import RaffKhannaLuLassoClassifier
from dpsparse.published.raff_khanna_lu_2023_lasso import stale_lasso
from dpsparse.random import make_generator
from lab.methods import promise
from lab.papers.chapter import derive_seed
from lab.papers.common import WIDE, axes, classifier_scores, split, thinned, wide
from lab.papers.operations import exact_gap, fast, standard
from lab.papers.sparsifier import laplace_scale
from lab.report import markdown_table

DELTA, RADIUS = 1e-6, 50.0


def lasso(kind, X, epsilon, n_iter, radius, seed):
    domain = Domain(classes=[0, 1], n_samples=X.shape[0])
    return kind(
        domain, epsilon=epsilon, delta=DELTA, radius=radius, n_iter=n_iter, fit_intercept=False,
        random_state=seed,
    )  # fmt: skip


# ---- Table 3 -------------------------------------------------------------------------------------

ORDER = ("rcv1", "news20", "kdda", "url", "web")
TIMED = ("rcv1", "kdda", "url", "web")  # shapes on which all forms end within seconds
SCAN, HEAP, SAMPLER, OURS = "Alg. 2", "Alg. 2 + 3", "Alg. 2 + 4 (repaired)", "ours"
SPEED_FRACTION = {"kdda": 0.1, "url": 0.1, "web": 0.1}  # of the stand-ins of the figures
# Lines 4 to 13 of Algorithm 2 to the letter: scores are sums over the rows (lines 4 and 10 to 12 divide by nothing),
# while the scale of line 5 is one for means: N is in its numerator, the radius in its denominator.
LETTER = "lines 4 to 13 to the letter"
LETTER_OF = {SCAN: f"{SCAN}, {LETTER}", SAMPLER: f"{SAMPLER}, {LETTER}"}
LARGER = ("url", 0.3)  # three times the url of Table 3; at epsilon 1 it runs for too long
LETTER_DATA = {
    ("url", 0.1): (1.0, 0.1),
    LARGER: (0.1,),
    ("rcv1", 1.0): (1.0, 0.1),
    ("kdda", 0.1): (1.0, 0.1),
}
# Every step of Algorithm 1, and of Algorithm 2 with noise on all features, costs the same: so many are timed.
FEW_STEPS = {"Alg. 1": 20, SCAN: 100}
MODES = {OURS: "proven", HEAP: "nonprivate"}


def speed_configurations():
    return [
        {"dataset": d, "epsilon": e, "n_iter": 4000, "mode": "published", "fraction": SPEED_FRACTION.get(d, 1.0)}
        for d in TIMED
        for e in (1.0, 0.1)
    ] + [
        {"dataset": d, "epsilon": e, "n_iter": 4000, "mode": "published", "fraction": f, "reading": LETTER}
        for (d, f), epsilons in LETTER_DATA.items()
        for e in epsilons
    ]  # fmt: skip


def speed_trial(config, seed, number):
    """Processor seconds of all forms in one run on the same rows; each has run on a few rows before, so that nothing
    compiles. With a reading: Algorithm 2 and 2 + 4 with either scale, and how many columns each chose."""
    X, y = wide(config["dataset"], config["fraction"])
    epsilon, n_iter, letter = config["epsilon"], config["n_iter"], "reading" in config
    rng = make_generator(seed)
    scale = laplace_scale(RADIUS, n_iter, X.shape[0], epsilon, DELTA)
    kappa = epsilon / math.sqrt(8.0 * n_iter * math.log(1.0 / DELTA)) / 2.0
    model = lasso(DPLassoClassifier, X, epsilon, n_iter, RADIUS, derive_seed(seed, OURS))

    def stale(draw, sharper=1.0):
        options = {"radius": RADIUS, "kappa": kappa * sharper, "draw": draw}
        return lambda A, b, steps: stale_lasso(A, b, rng, n_iter=steps, **options)

    forms = {"Alg. 1": lambda A, b, steps: noisy_frank_wolfe(A, b, scale, rng, steps)}
    for name, draw in ((SCAN, "scan"), (SAMPLER, "printed")):
        forms[name] = stale(draw)
        if letter:
            forms[LETTER_OF[name]] = stale(draw, X.shape[0] / RADIUS)
    if not letter:
        forms[HEAP] = lambda A, b, steps: fast(A, b, RADIUS, steps)
        forms[OURS] = lambda A, b, steps: model.fit(A, b)
    few = np.r_[np.flatnonzero(y == 0)[:32], np.flatnonzero(y == 1)[:32]]

    def timed(form, steps):
        began = time.process_time()
        found = form(X, y, steps)
        return time.process_time() - began, found

    out, slow = [], None
    for name, form in forms.items():
        form(X[few], y[few], 2)
        part = {"cell": {"variant": name, "mode": MODES.get(name, "published")}}
        steps = FEW_STEPS.get(name)
        if steps and not (letter and name == SCAN):  # whose columns are counted
            first, some = timed(form, 1)[0], timed(form, steps + 1)[0]
            spent = first + (some - first) / steps * (n_iter - 1)
        else:
            spent, weights = timed(form, n_iter)
            part |= {"columns": np.count_nonzero(weights)} if letter else {}
        slow = slow or spent  # Algorithm 1 comes first
        part |= {"speed-up": slow / spent, "seconds": spent}
        out.append(part | ({"guarantee": promise(model, X.shape[1])} if name == OURS else {}))
    return out


def noisy_frank_wolfe(X, y, scale, rng, n_iter):
    """Algorithm 1 as printed, in SciPy: two products with the matrix and O(D) work in every step."""
    Xt = X.T.tocsr()
    n, d = X.shape
    w = np.zeros(d)
    for t in range(1, n_iter + 1):
        gradient = (Xt @ (expit(X @ w) - y)) / n
        j = int(np.argmax(np.abs(gradient + rng.laplace(0.0, scale, d))))
        step = 2.0 / (t + 2.0)
        w *= 1.0 - step
        w[j] -= step * RADIUS * np.sign(gradient[j])
    return w


def speed_facts(summary):
    found = {}
    for name, variant in (("scan", SCAN), ("heap", HEAP), ("sampler", SAMPLER), ("ours", OURS)):
        values = [
            summary.mean("speed-up", None, **c, reading=None)
            for c in summary.cells
            if c["variant"] == variant and "reading" not in c
        ]
        found[name] = f"{min(values):.3g} to {max(values):.3g}"

    def told(variant, where, epsilons):
        return " and ".join(
            f"{summary.mean('speed-up', None, variant=variant, epsilon=e, reading=LETTER, **where):.3g}"
            for e in epsilons
        )

    for (data, fraction), epsilons in LETTER_DATA.items():
        where = {"dataset": data, "fraction": fraction}
        name = f"{data}_large" if (data, fraction) == LARGER else data
        found[f"letter_{name}"] = told(LETTER_OF[SAMPLER], where, epsilons)
        found[f"mean_{name}"] = told(SAMPLER, where, epsilons)
    return found


def speed_table(summary):
    """One line a data set and epsilon: seconds of Algorithm 1, and how many times faster the others are."""
    head = ["data", "epsilon", "Alg. 1, seconds", "Alg. 2, printed", SCAN, f"{HEAP} (no noise)",
            "Alg. 2 + 4, printed", SAMPLER, f"{OURS} (proven)"]  # fmt: skip
    lines = []
    timed = [c for c in summary.cells if "reading" not in c]
    for data, epsilon in dict.fromkeys((c["dataset"], c["epsilon"]) for c in timed):
        cell = {"dataset": data, "epsilon": epsilon, "reading": None}

        def ratio(variant, cell=cell):
            return f"{summary.mean('speed-up', None, variant=variant, **cell):.3g}"

        def printed(variant, cell=cell):
            number = summary.published("speed-up", variant=variant, **cell)
            return "" if number is None else f"{number.value:g}"

        seconds = summary.mean("seconds", None, variant="Alg. 1", **cell)
        lines.append([data, f"{epsilon:g}", f"{seconds:.0f}", printed(SCAN), ratio(SCAN), ratio(HEAP),
                      printed(SAMPLER), ratio(SAMPLER), ratio(OURS)])  # fmt: skip
    return f"{markdown_table(head, lines)}\n\n{letter_table(summary)}"


def letter_table(summary):
    """The same with lines 4 to 13 of Algorithm 2 to the letter, url as large as in the figures."""
    head = ["data", "epsilon", "Alg. 1, seconds"]
    for form in (SCAN, SAMPLER):
        head += [f"{form.removesuffix(' (repaired)')}, printed", form, f"{form}, to the letter"]
    head += ["columns chosen", "columns chosen, to the letter"]
    lines = []
    for data, fraction, epsilon in ((*data, e) for data, some in LETTER_DATA.items() for e in some):
        cell = {"dataset": data, "fraction": fraction, "epsilon": epsilon, "reading": LETTER}

        def mean(variant, metric="speed-up", form=".3g", cell=cell):
            return f"{summary.mean(metric, None, variant=variant, **cell):{form}}"

        size = f", {100 * fraction * WIDE[data][2]:g} % of the shape"
        line = [data + size, f"{epsilon:g}", mean("Alg. 1", "seconds")]
        for form in (SCAN, SAMPLER):
            number = summary.published("speed-up", variant=form, **cell)
            line += [f"{number.value:g}", mean(form), mean(LETTER_OF[form])]
        lines.append(
            [*line, *(mean(form, "columns", ".0f") for form in (SAMPLER, LETTER_OF[SAMPLER]))]
        )
    return markdown_table(head, lines)


# ---- Table 4 -------------------------------------------------------------------------------------

LASSO, GRADIENT = "private LASSO", "noisy gradients (ours)"
WORDS = "private LASSO, entries 0/1"  # a reading: whether a word occurs, not how often
SCALED = (
    "private LASSO, columns by their maxima"  # a reading: the scaling of the authors' other paper
)


def accuracy_configurations():
    steps, news = {"n_iter": 400_000}, {"dataset": "news20", "mode": "published", "trials": 5}
    return [
        {"dataset": d, "method": LASSO, **steps, "mode": m}
        for d in ORDER
        for m in ("published", "proven")
        if (d, m) != ("news20", "published")
    ] + [
        *({"method": reading, **steps, **news} for reading in (LASSO, WORDS)),
        {"method": SCALED, **steps, **news, "trials": 1},
        *({"dataset": d, "method": GRADIENT, "mode": "proven", "n_iter": 0} for d in ORDER),
    ]


def accuracy_trial(config, seed, number):
    X, y = wide(config["dataset"])
    if config["method"] == WORDS:
        X = X.copy()
        X.data[:] = 1.0
    elif config["method"] == SCALED:
        X = X.copy()
        X.data /= X.max(axis=0).toarray().ravel()[X.indices]  # all entries are positive
    train, test = split(X.shape[0], seed)
    noise = derive_seed(seed, config["dataset"], config["mode"])
    if config["method"] == GRADIENT:
        domain = Domain(row_norm=1.0, classes=[0, 1], n_samples=len(train))
        model = DPGradientClassifier(domain, epsilon=0.1, delta=DELTA, random_state=noise)
    else:
        kind = {"published": RaffKhannaLuLassoClassifier, "proven": DPLassoClassifier}
        model = lasso(kind[config["mode"]], X[train], 0.1, config["n_iter"], 5000.0, noise)
    if (
        config["mode"] == "published"
    ):  # the class has the same law, but keeps groups that are of no use here
        constants = model._constants(X.shape[1], 1)
        weights = stale_lasso(
            X[train], y[train], make_generator(noise), radius=constants["radius"], n_iter=config["n_iter"],
            kappa=constants["kappa"], draw="reject",
        )  # fmt: skip
        margins, n_nonzero = X[test] @ weights, np.count_nonzero(weights)
    else:
        margins = model.fit(X[train], y[train]).decision_function(X[test])
        n_nonzero = model.n_nonzero_
    found = classifier_scores(margins, y[test])
    found["sparsity"] = 100.0 * (1.0 - n_nonzero / X.shape[1])
    return found | {"guarantee": promise(model, X.shape[1])}


def accuracy_facts(summary):
    """The one table that is not a stand-in first."""

    def reached(method, mode):
        auc = {d: summary.mean("AUC", mode, dataset=d, method=method) for d in ORDER}
        others = [v for name, v in auc.items() if name != "news20" and v == v]
        accuracy, area = (
            summary.average(metric, mode, dataset="news20", method=method).text(".1f")
            for metric in ("accuracy", "AUC")
        )
        elsewhere = f"; stand-ins {min(others):.0f} to {max(others):.0f}" if others else ""
        return f"{accuracy} % (AUC {area}{elsewhere})"

    return {
        "published": reached(LASSO, "published"), "words": reached(WORDS, "published"),
        "scaled": reached(SCALED, "published"),
        "proven": reached(LASSO, "proven"), "gradient": reached(GRADIENT, "proven"),
    }  # fmt: skip


# ---- Figures 1 to 4 ------------------------------------------------------------------------------


def figure_configurations():
    return [{"dataset": name, "n_iter": 4000, "mode": "nonprivate"} for name in WIDE]


def figure_trial(config, seed, number):
    X, y = wide(config["dataset"])
    train, test = split(X.shape[0], seed)
    A, labels = X[train], y[train]
    w1, gaps1, ops1 = standard(A, labels, RADIUS, config["n_iter"])
    w2, gaps2, ops2, pops = fast(A, labels, RADIUS, config["n_iter"])
    at = thinned(config["n_iter"])
    scores1, scores2 = (classifier_scores(X[test] @ w, y[test]) for w in (w1, w2))
    nonzeros = max(np.count_nonzero(w2), 1)
    return {
        "iterations": at + 1.0,
        "gap 1": gaps1[at],
        "gap 2": gaps2[at],
        "operations 1": ops1[at],
        "operations 2": ops2[at],
        "pops": pops[at],
        "final gap, Alg. 1": gaps1[-1],
        "final gap, Alg. 1 (recomputed)": exact_gap(A, labels, w1, RADIUS),
        "final gap, Alg. 2 (own account)": gaps2[-1],
        "final gap, Alg. 2 (recomputed)": exact_gap(A, labels, w2, RADIUS),
        "relative L1 distance of solutions": np.abs(w1 - w2).sum() / np.abs(w1).sum(),
        "accuracy, Alg. 1": scores1["accuracy"],
        "accuracy, Alg. 2": scores2["accuracy"],
        "fewer operations": ops1[-1] / ops2[-1],
        "fewer operations at iteration 1000": ops1[999] / ops2[999],
        "pops per draw / non-zeros, mean": pops.mean() / nonzeros,
        "pops per draw / non-zeros, largest": pops.max() / nonzeros,
        "non-zeros": nonzeros,
    }


def figure_facts(summary):
    """Operations and pops are judged on the one real table: counts on stand-ins follow from how they were made."""

    def each(metric):
        return {c["dataset"]: summary.mean(metric, dataset=c["dataset"]) for c in summary.cells}

    def span(metric):
        return f"{min(each(metric).values()):.2g} to {max(each(metric).values()):.2g}"

    distance, first, second = map(
        each, ("relative L1 distance of solutions", "accuracy, Alg. 1", "accuracy, Alg. 2")
    )
    far = [name for name, v in distance.items() if v >= 0.01]
    return {
        "near": len(distance) - len(far), "all": len(distance), "far": ", ".join(far),
        "distance": span("relative L1 distance of solutions"),
        "points": max(abs(first[name] - second[name]) for name in first),
        "heap": 100.0 * _share_of_pops(summary, "news20"),
        "fewer": each("fewer operations")["news20"], "fewer_span": span("fewer operations"),
        "worst": each("pops per draw / non-zeros, largest")["news20"],
        "pops": span("pops per draw / non-zeros, mean"),
    }  # fmt: skip


def _share_of_pops(summary, name):
    """At most this share of the counted operations of Algorithms 2 and 3 are heap pops (100 of them pay for one)."""
    pops = summary.mean("pops per draw / non-zeros, mean", dataset=name)
    all_pops = pops * summary.mean("non-zeros", dataset=name) * 4000
    return 100.0 * all_pops / summary.curve("operations 2", dataset=name)[-1]


def plot_gap(summary, path):
    found, save = axes(path, 2, xscale="log", yscale="log", xlabel="iteration", ylabel="gap")
    titles = ("Algorithm 1", "Algorithm 2, its own account")
    for axis, which, style, title in zip(found, ("1", "2"), ("-", "--"), titles, strict=True):
        for cell in summary.cells:
            gap = np.abs(summary.curve(f"gap {which}", **cell))
            axis.plot(summary.curve("iterations", **cell), gap, style, label=cell["dataset"])
        axis.set_title(title)
    save()


def plot_ratio(summary, path):
    (axis,), save = axes(path, xscale="log", yscale="log", xlabel="iteration", ylabel="times fewer")
    for cell in summary.cells:
        ratio = summary.curve("operations 1", **cell) / summary.curve("operations 2", **cell)
        axis.plot(summary.curve("iterations", **cell), ratio, label=cell["dataset"])
    save()


def plot_pops(summary, path):
    (axis,), save = axes(path, xscale="log", xlabel="iteration", ylabel="pops / final non-zeros")
    for cell in summary.cells:
        pops = summary.curve("pops", **cell) / summary.mean("non-zeros", **cell)
        axis.plot(summary.curve("iterations", **cell), pops, label=cell["dataset"])
    save()


def plot_operations(summary, path):
    (axis,), save = axes(path, xscale="log", yscale="log", xlabel="operations", ylabel="gap")
    for k, cell in enumerate(summary.cells):
        for which, style in (("1", "--"), ("2", "-")):
            axis.plot(
                summary.curve(f"operations {which}", **cell), np.abs(summary.curve(f"gap {which}", **cell)),
                style, color=f"C{k}", label=cell["dataset"] if which == "2" else None,
            )  # fmt: skip
    save()
