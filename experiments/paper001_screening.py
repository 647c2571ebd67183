"""Khanna, Lu and Raff (2023, screening: 000) and its anonymous sequel (001): every table and figure."""

import math

import numpy as np

from _common import axes, trial_number
from engine import AFTER_THE_FACT, AS_PRINTED, Experiment, sign_test, wilcoxon
from engine.experiment import experiments_folder, find
from engine.runner import read_rows, rows_file
from engine.summary import summarise

REAL = (
    "abalone", "housing", "bodyfat", "pyrim", "triazines", "residential", "communities", "blogfeedback",
)  # fmt: skip
NAMES = {
    "rnm": ("RNM-Screen", "published"),
    "rnm on an empty table": ("RNM-Screen on an empty table", "published"),
    "rnm, uniform": ("RNM-Screen, uniform screening", "published"),
    "oracle-k": ("Oracle-K", "published"),
    "adp": ("ADP-Screen", "published"),
    "dp-fw, as published": ("DP-FW", "published"),
    "uniform": ("uniform update and screening", "nonprivate"),
    "np-fw": ("NP-FW", "nonprivate"),
    "preselect-k": ("Preselect-K", "nonprivate"),
}
METRICS = {
    "tpr": "TPR",
    "fpr": "FPR",
    "f1": "F1",
    "density": "density",
    "mse": "MSE",
    "r2": "R2",
    "gap": "gap",
}
SCORES = {"TPR": ".3f", "FPR": ".3f", "F1": ".3f", "density": ".3f"}


def cells(rows, modes=NAMES):
    """What a part yields as cells: names and modes of ours, curves as lists of numbers."""
    for row in rows:
        method, mode = modes.get(row["method"], (row["method"], "proven"))
        part = {"cell": {"data": row["data"], "method": method, "mode": mode}}
        for theirs, ours in METRICS.items():
            if isinstance(row.get(theirs), float) and math.isfinite(row[theirs]):
                part[ours] = row[theirs]
        if "guarantee" in row:
            part["guarantee"] = row["guarantee"]
        if row.get("trace"):
            for name, column in zip(
                ("t", "first", "second"), zip(*row["trace"], strict=True), strict=False
            ):
                part[f"trace {name}"] = list(column)
        if row.get("gaps"):
            part["trace gap"] = row["gaps"]
        yield part


# ---- 000, and appendix B of 001 ------------------------------------------------------------------


def adp_trial(config, seed):
    import _screening as screening

    trial = trial_number("000-figure1", seed)
    every = lambda rows: {r["method"]: (r["method"], "published") for r in rows}  # noqa: E731
    rows = list(screening.part_adp(trial))
    none = list(screening.part_nonprivate(trial))
    for row in none:
        row["method"] = f"no noise at all, {row['method']}"
    modes = every(rows) | {r["method"]: (r["method"], "nonprivate") for r in none}
    return list(cells([*rows, *none], modes))


def adp_verdict(summary):
    rows = {s: (_of(summary, "TPR", s), _of(summary, "FPR", s)) for s in ("every", "50th", "last")}
    text = "; ".join(
        f"{s}: {t:.2f} of the true, {f:.2f} of the false ones stay" for s, (t, f) in rows.items()
    )
    blind = all(abs(t - f) < 0.2 for t, f in rows.values())

    def share(mode, method, metric="TPR", data="squared"):
        return 100.0 * summary.mean(metric, mode, data=data, method=method)

    exact = {
        data: [
            share("nonprivate", f"no noise at all, {rule}, start zero", data=data)
            for rule in ("printed", "rescaled")
        ]
        for data in ("squared", "logistic")
    }
    b = {s: share("published", f"B: noisy screening, {s}") for s in rows}
    false = share("published", "B: noisy screening, 50th", "FPR")
    kept = min(
        summary.mean("density", "published", data=data, method=f"A: noisy optimiser, {s}")
        for s in rows
        for data in exact
    )
    return (
        f"{'Holds' if blind else 'Does not hold'}: {text} (linear regression). Numbers in the running text: "
        "without any noise 55 % of the true coefficients stay and no false one, in linear and logistic regression; "
        f"ours, from zero, {exact['squared'][0]:.0f} and {exact['logistic'][0]:.0f} % as printed, "
        f"{exact['squared'][1]:.0f} and {exact['logistic'][1]:.0f} % with the rule scaled to the radius. "
        f"With a noisy optimiser only (A) no coefficient is screened; ours {100 * kept:.0f} % stay. With noise in "
        f"the screening only (B), every 50th iteration, about 10 % and no false one; ours {b['50th']:.0f} % and "
        f"{false:.1f} %; B at every and at the last iteration is like the figure ({b['every']:.0f} and "
        f"{b['last']:.0f} % of the true ones). The noise is too small for its claim, because the sensitivity "
        "of the score is not O(1/n) (leaks)."
    )


def _of(summary, metric, schedule):
    return summary.mean(metric, "published", data="squared", method=f"adp, {schedule}")


def plot_adp(summary, path):
    found, save = axes(
        path, 3, columns=3, xlabel="iteration", ylabel="share that stays", ylim=(-0.02, 1.02)
    )
    for axis, schedule in zip(found, ("every", "50th", "last"), strict=True):
        cell = {"data": "squared", "method": f"adp, {schedule}"}
        t = summary.curve("trace t", "published", **cell)
        axis.plot(t, summary.curve("trace first", "published", **cell), label="true")
        axis.plot(t, summary.curve("trace second", "published", **cell), label="false")
        axis.set_title(f"screening: {schedule}")
    save()


EXACT = "no noise at all, printed, start random"


def plot_gap(summary, path):
    found, save = axes(path, 2, xlabel="iteration", ylabel="Wolfe gap", yscale="log")
    for axis, data in zip(found, ("squared", "logistic"), strict=True):
        cell = {"data": data, "method": "A: noisy optimiser, every"}
        if summary.values("trace gap", "published", **cell):
            t = summary.curve("trace t", "published", **cell)
            axis.plot(
                t,
                np.abs(summary.curve("trace gap", "published", **cell)),
                label="private optimiser",
            )
        last = summary.mean("gap", "nonprivate", data=data, method=EXACT)
        axis.axhline(abs(last), color="black", ls=":", label="exact optimiser, last iteration")
        axis.set_title(data)
    save()


def gap_verdict(summary):
    texts, ratios = [], []
    for data in ("squared", "logistic"):
        curve = summary.curve(
            "trace gap", "published", data=data, method="A: noisy optimiser, every"
        )
        exact = abs(summary.mean("gap", "nonprivate", data=data, method=EXACT))
        ratios.append(float(abs(curve[-1])) / max(exact, 1e-300))
        texts.append(f"{ratios[-1]:.3g} times as large ({data} loss)")
    holds = "Holds" if min(ratios) > 1 else "Holds in part" if max(ratios) > 1 else "Does not hold"
    return f"{holds}: with the private optimiser the last gap is {' and '.join(texts)}."


# ---- 001, synthetic data --------------------------------------------------------------------------


def synthetic_trial(config, seed):
    import _screening as screening

    number = trial_number("001-table1", seed)
    part = {
        "synthetic": screening.part_synthetic,
        "adp": screening.part_adp_wide,
        "uniform screening": screening.part_uniform,
    }[config["part"]]
    return list(cells(part(number)))


def synthetic_configurations(quick):
    parts = ("synthetic", "adp", "uniform screening")
    return [{"part": part, "mode": "published"} for part in parts]


def synthetic_kind(cell, metric):
    """That the active features come first was chosen because correlation then helps as the paper says."""
    return AFTER_THE_FACT if cell["data"] == "correlated" else AS_PRINTED


def synthetic_verdict(summary):
    f1 = {m: summary.mean("F1", None, data="uncorrelated", method=m) for m in _methods(summary)}
    chance = summary.mean(
        "density", None, data="uncorrelated", method="RNM-Screen on an empty table"
    )
    own = summary.mean("density", None, data="uncorrelated", method="RNM-Screen")
    found = summary.mean("TPR", "published", data="uncorrelated", method="RNM-Screen")
    false = summary.mean("FPR", "published", data="uncorrelated", method="RNM-Screen")
    holds = "Holds as printed, without a true guarantee" if found > false + 0.1 else "Does not hold"
    best = max((m for m in f1 if summary.values("F1", "proven", method=m)), key=lambda m: f1[m])
    uniform = {
        data: [
            summary.values("F1", "published", data=data, method=m)
            for m in ("RNM-Screen", "RNM-Screen, uniform screening")
        ]
        for data in ("uncorrelated", "correlated")
    }
    same = sum(
        a == b for theirs, drawn in uniform.values() for a, b in zip(theirs, drawn, strict=True)
    )
    trials = sum(len(theirs) for theirs, _ in uniform.values())
    return (
        f"{holds}, but by the optimiser, not by screening: with the dropped feature drawn uniformly F1 is the "
        f"same in {same} of {trials} trials, since the printed noise alone decides what is dropped; the density "
        f"{own:.2f} is that of an empty table ({chance:.2f}). F1 {f1['RNM-Screen']:.2f}; the best "
        f"proven rule ({best}) reaches {f1[best]:.2f} at the same epsilon."
    )


def _methods(summary):
    return list(dict.fromkeys(c["method"] for c in summary.cells))


def synthetic_tests(summary):
    lines = []
    for data in ("uncorrelated", "correlated"):
        ours = summary.values("F1", "proven", data=data, method="top-k")
        theirs = summary.values("F1", "published", data=data, method="RNM-Screen")
        if ours and len(ours) == len(theirs):
            lines.append(
                f"F1 of top-k (proven) against RNM-Screen (as published), {data}: sign test p = "
                f"{sign_test(ours, theirs):.2g}."
            )
        adp = summary.values("F1", "published", data=data, method="ADP-Screen")
        if adp and len(adp) == len(theirs):
            lines.append(
                f"As printed: the F1 of RNM-Screen ({np.mean(theirs):.3f}) is significantly better than that of "
                f"ADP-Screen ({np.mean(adp):.3f}, radius 50), {data}: sign test p = {sign_test(theirs, adp):.2g}."
            )
    return lines


def plot_synthetic(summary, path):
    found, save = axes(
        path, 2, xlabel="iteration", ylabel="share of coefficients", ylim=(-0.02, 1.02)
    )
    for axis, data in zip(found, ("uncorrelated", "correlated"), strict=True):
        cell = {"data": data, "method": "RNM-Screen"}
        t = summary.curve("trace t", "published", **cell)
        axis.plot(t, summary.curve("trace first", "published", **cell), label="true non-zero")
        axis.plot(t, summary.curve("trace second", "published", **cell), label="true zero")
        cell = {"data": data, "method": "ADP-Screen"}
        if summary.values("trace t", "published", **cell):
            for column, name in (("first", "true non-zero"), ("second", "true zero")):
                curve = summary.curve(f"trace {column}", "published", **cell)
                axis.plot(t, curve, "--", label=f"{name}, ADP-Screen")
        axis.set_title(data)
    save()


# ---- 001, real data -------------------------------------------------------------------------------


def real_configurations(quick):
    names = ("housing", "pyrim") if quick else REAL
    return [{"data": name, "mode": "published", "n_iter": 0} for name in names]


def real_trial(rows_name, yeo_johnson):
    def trial(config, seed):
        import _screening as screening

        number = trial_number(rows_name, seed)
        return list(cells(screening.part_real(number, [config["data"]], yeo_johnson)))

    return trial


def _better(summary, metric, first, second, sign):
    """Data sets where `first` is significantly better than `second`, and the reverse."""
    up, down, tested = [], [], []
    for name in REAL:
        a = summary.values(metric, None, data=name, method=first)
        b = summary.values(metric, None, data=name, method=second)
        if len(a) != len(b) or len(a) < 6:  # fewer pairs cannot reach 5 %
            continue
        tested.append(name)
        if wilcoxon(a, b) < 0.05:
            (up if sign * (np.mean(a) - np.mean(b)) > 0 else down).append(name)
    return up, down, tested


def real_tests(summary):
    lines = []
    for first, second in (
        ("RNM-Screen", "Oracle-K"),
        ("top-k", "RNM-Screen"),
        ("counts", "RNM-Screen"),
    ):
        for metric, sign in (("F1", 1), ("MSE", -1)):
            up, down, tested = _better(summary, metric, first, second, sign)
            if tested:
                lines.append(
                    f"{metric}: {first} better than {second} on {', '.join(up) or 'none'}, worse on "
                    f"{', '.join(down) or 'none'} of {len(tested)} (Wilcoxon, 5 %)."
                )
    return lines


def real_kind(cell, metric):
    """How the tables were scaled was found by trying which scaling gives the printed non-private errors."""
    return AFTER_THE_FACT


def density_tests(summary):
    """Tables 2 and 4: bold is a density better than that of DP-FW by a sign test; no F1 is bold."""
    agree = {"density": 0, "F1": 0}
    tested = 0
    for name in REAL:
        found = {
            metric: [
                summary.values(metric, "published", data=name, method=m)
                for m in ("RNM-Screen", "DP-FW")
            ]
            for metric in agree
        }
        (a, b), (f, g) = found["density"], found["F1"]
        if len(a) < 6 or len(a) != len(b):
            continue
        tested += 1
        agree["density"] += bool(sign_test(a, b) < 0.05 and np.mean(a) < np.mean(b))
        agree["F1"] += not (sign_test(f, g) < 0.05 and np.mean(f) > np.mean(g))
    return [
        "Bold marks of the paper (sign tests against DP-FW): the density is significantly better on all tables, "
        "ours on "
        f"{agree['density']} of {tested}; no F1 is, ours on {tested - agree['F1']} of {tested}. DP-FW starts at "
        "random in the "
        "ball, so its density is 1 and the first of these could not fail.",
        *real_tests(summary),
    ]


# Tables 3 and 5: the bold one of Oracle-K and RNM-Screen, by data set in the order of REAL; "" where neither is.
BOLD = {
    "001-table3": {"F1": "OO RRR R", "MSE": "OOO    O"},
    "001-table5": {"F1": "OOOO  OO", "MSE": "OOOO   R"},
}


def oracle_tests(summary):
    lines = []
    for metric, sign in (("F1", 1), ("MSE", -1)):
        marks = BOLD[summary.experiment.name][metric]
        agree, differ = 0, []
        for name, mark in zip(REAL, marks, strict=True):
            ours = summary.values(metric, "published", data=name, method="RNM-Screen")
            oracle = summary.values(metric, "published", data=name, method="Oracle-K")
            if len(ours) < 6 or len(ours) != len(oracle):
                continue
            gap = sign * (np.mean(ours) - np.mean(oracle))
            found = " " if sign_test(ours, oracle) >= 0.05 else "R" if gap > 0 else "O"
            agree += found == mark
            if found != mark:
                shown = {"R": "RNM-Screen", "O": "Oracle-K", " ": "neither"}
                differ.append(f"{name} ({shown[mark]} in the paper, {shown[found]} in ours)")
        lines.append(
            f"Bold marks of {metric} (sign test of RNM-Screen against Oracle-K, 5 %): {agree} of "
            f"{agree + len(differ)} as "
            f"in the paper" + (f"; not {', '.join(differ)}." if differ else ".")
        )
    return [*lines, *real_tests(summary)]


def chance_trial(config, seed):
    import _screening as screening

    return list(cells(screening.part_chance(trial_number("001-theorem4", seed))))


def chance_verdict(summary):
    texts, close = [], []
    for cell in summary.cells:
        d = int(cell["data"].removeprefix("d = "))
        found = summary.mean("density", "nonprivate", **cell)
        printed, true = (d - 1) ** 2 / ((d - 1) * d + 1), (d - 1) / (2 * d - 1)
        close.append(abs(found - true) < abs(found - printed))
        texts.append(
            f"{cell['data']}: {found:.3f}, printed {printed:.3f}, (d-1)/(2d-1) = {true:.3f}"
        )
    return (
        f"{'Does not hold' if all(close) else 'Holds in part'}: the share of non-zero coefficients is "
        f"{'; '.join(texts)}. "
        "The proof takes (1/d)^k for the chance that a coefficient is not updated in k steps; it is ((d-1)/d)^k. Half "
        "is also what the paper's own tables show. Screening before the update gives d/(2d-1), no other picture. "
        "The second limit, T - 1 non-zeros as d grows, is T: no screening finds one of the T updated "
        f"coefficients (exactly {_non_zeros(10**6, 10):.4f} for T = 10, d = 10^6)."
    )


def _non_zeros(d, n_iter):
    """The expected number after `n_iter` uniform updates and screenings from zero."""
    share = 0.0
    for _ in range(n_iter):
        share = (share + (1.0 - share) / d) * (1.0 - 1.0 / d)
    return d * share


LARGER = REAL[3:]  # d > 20


def _signs(summary, metric, rival, sign, names=REAL):
    """Data sets where RNM-Screen is significantly better than `rival` by the paper's sign test, and worse."""
    up, down = [], []
    for name in names:
        ours = summary.values(metric, "published", data=name, method="RNM-Screen")
        theirs = summary.values(metric, "published", data=name, method=rival)
        if len(ours) >= 6 and len(ours) == len(theirs) and sign_test(ours, theirs) < 0.05:
            (up if sign * (np.mean(ours) - np.mean(theirs)) > 0 else down).append(name)
    return up, down


def _free(summary, metric, sign):
    up, down, tested = _better(summary, metric, "top-k", "RNM-Screen", sign)
    return (
        f"At a true guarantee the {metric} of the free top-k rule is better on {len(up)} and worse on {len(down)} of "
        f"{len(tested)} (Wilcoxon); RNM-Screen itself has no proof (its noisy winner is compared with 0, its "
        "sensitivity is not O(1/n))."
    )


def density_verdict(summary):
    denser = _signs(summary, "density", "DP-FW", -1)[0]
    better = _signs(summary, "F1", "DP-FW", 1)[0]
    good, compared = summary.matched
    holds = "Holds" if len(denser) == len(REAL) and not better else "Holds in part"
    return (
        f"{holds} as printed, by the paper's sign test against DP-FW: the density is better on {len(denser)} of "
        f"{len(REAL)}, F1 on {len(better)}{_named(better)}. {good} of {compared} of the numbers match. "
        f"{_free(summary, 'F1', 1)}"
    )


def _named(names):
    return f" ({', '.join(names)})" if names else ""


def without_verdict(summary):
    """Table 4 against Table 2, whose rows are another experiment's."""
    folder = experiments_folder()
    first = find("001-table2", folder)
    rows = read_rows(rows_file(folder / "results", first, quick=False))
    before = summarise(first, rows, folder)
    worse, tested = [], []
    for name in REAL:
        r2 = [s.mean("R2", "published", data=name, method="RNM-Screen") for s in (before, summary)]
        if not any(map(math.isnan, r2)):
            tested.append(name)
            if r2[1] < r2[0]:
                worse.append(name)
    holds = "Holds" if set(tested) - set(worse) == {"blogfeedback"} else "Holds in part"
    rest = [name for name in tested if name not in worse]
    return (
        f"{holds}: R2 is worse than in 001-table2 on {len(worse)} of {len(tested)}, not on "
        f"{', '.join(rest) or 'none'}. "
        f"{density_verdict(summary)}"
    )


def mse_verdict(summary):
    f1, mse = (_signs(summary, m, "Oracle-K", s, LARGER)[1] for m, s in (("F1", 1), ("MSE", -1)))
    holds = "Holds" if not f1 and set(mse) <= {"blogfeedback"} else "Holds for F1, not for the error" if not f1 else (
        "Does not hold"
    )  # fmt: skip
    return (
        f"{holds}, by the paper's sign test: of the {len(LARGER)} tables with d > 20 RNM-Screen's F1 is significantly "
        f"worse on {len(f1)}{_named(f1)} and its error on {len(mse)}{_named(mse)}. The errors rest on our scaling "
        f"of the tables. {_free(summary, 'MSE', -1)}"
    )


def oracle_verdict(summary):
    better = _signs(summary, "F1", "Oracle-K", 1)[0]
    lower = _signs(summary, "MSE", "Oracle-K", -1)[0]
    holds = "Holds" if not better else f"Holds on {len(REAL) - len(better)} of {len(REAL)}"
    return (
        f"{holds}, by the paper's sign test: RNM-Screen's F1 is significantly better on {len(better)}"
        f"{_named(better)}, its error on {len(lower)}{_named(lower)} (blogfeedback in the paper). "
        f"{_free(summary, 'MSE', -1)}"
    )


def plot_mse(summary, path):
    (axis,), save = axes(
        path, xlabel="share of the iterations", ylabel="MSE / first MSE", yscale="log"
    )
    for name in REAL:
        cell = {"data": name, "method": "RNM-Screen"}
        if summary.values("trace first", "published", **cell):
            t = summary.curve("trace t", "published", **cell)
            mse = summary.curve("trace first", "published", **cell)
            axis.plot(t / t[-1], mse / mse[0], label=name)
    save()


def mse_curve_verdict(summary):
    falls, tested = [], 0
    for name in REAL:
        cell = {"data": name, "method": "RNM-Screen"}
        if summary.values("trace first", "published", **cell):
            mse = summary.curve("trace first", "published", **cell)
            tested += 1
            if mse[-1] < mse[0]:
                falls.append(name)
    holds = "Holds" if set(REAL[3:]) <= set(falls) else "Holds in part"
    return (
        f"{holds}: the mean error falls from the first to the last recorded step on {len(falls)} of {tested} "
        f"({', '.join(falls)})."
    )


INSTEAD = "DPScreenedLassoRegressor with rule='top-k' or 'counts': free post-processing of the released history."
NOTE = (
    "epsilon 5 in all (screening 0.1 of it for RNM-Screen); preparation by Yeo-Johnson and largest entries looks at "
    "the rows, as the paper does it; the proven rules start from the prepared table, at the same epsilon and delta "
    "1/n. Iterations as in the paper."
)
SYNTHETIC = "3000 x 600, 35 weights +1 and 35 weights -1 (first 70 columns), 1000 iterations. "
ADP = {
    "configurations": lambda quick: [{"part": "adp", "mode": "published"}],
    "trial": adp_trial, "trials": (1, 10), "many": True, "verdict": adp_verdict, "instead": INSTEAD,
    "protocol": SYNTHETIC + "epsilon 2.5 + 2.5, radius 5.",
}  # fmt: skip
TWO_FIGURES = {
    "title": "screening true and false coefficients with ADP-Screen",
    "claim": "ADP-Screen cannot tell true from false coefficients and over-screens when used often.",
    "metrics": {"TPR": ".3f", "FPR": ".3f"},
    "plot": plot_adp,
}
GAP_FIGURE = {
    "title": "Wolfe gap with and without a private optimiser",
    "claim": "A private optimiser leaves a larger Wolfe gap, which disables screening.",
    "metrics": {"density": ".3f"},
    "plot": plot_gap,
}
YEO = {
    "configurations": real_configurations,
    "kind": real_kind,
    "trials": (2, 20),
    "many": True,
    "instead": INSTEAD,
    "protocol": NOTE,
}
FILES = REAL

EXPERIMENTS = (
    Experiment(name="000-figure1", **TWO_FIGURES, **ADP),
    Experiment(
        name="000-figure2", rows_of="000-figure1", **GAP_FIGURE, **(ADP | {"verdict": gap_verdict})
    ),
    Experiment(name="001-figure3", rows_of="000-figure1", **TWO_FIGURES, **ADP),
    Experiment(
        name="001-figure4", rows_of="000-figure1", **GAP_FIGURE, **(ADP | {"verdict": gap_verdict})
    ),
    Experiment(
        name="001-table1",
        title="RNM-Screen on synthetic data",
        configurations=synthetic_configurations,
        kind=synthetic_kind,
        trial=synthetic_trial,
        trials=(1, 20),
        many=True,
        metrics=SCORES,
        claim="RNM-Screen tells true from false coefficients, better when features are correlated.",
        verdict=synthetic_verdict,
        instead=INSTEAD,
        protocol=SYNTHETIC
        + "epsilon 4.9 + 0.1, radius 50; proven rules at epsilon 5, delta 1/3000.",
        tests=synthetic_tests,
        reasons={
            "TPR and FPR (compared, as one trial)": "the published values are whole numbers of 70 and 530 (58, 67; "
            "252, 149) and contradict the density beside them (correlated 0.360, not 0.371), so they are those of one "
            "trial and are compared as such",
            "F1, correlated": "0.425 for 0.444, four standard errors; where the true weights sit is not printed, and "
            "at random places correlation does not help at all",
        },
    ),
    Experiment(
        name="001-figure1",
        title="RNM-Screen over the iterations",
        configurations=synthetic_configurations,
        kind=synthetic_kind,
        trial=synthetic_trial,
        trials=(1, 20),
        many=True,
        rows_of="001-table1",
        metrics={"TPR": ".3f", "FPR": ".3f"},
        claim="RNM-Screen keeps more true than false coefficients, ADP-Screen does not.",
        verdict=synthetic_verdict,
        instead=INSTEAD,
        plot=plot_synthetic,
    ),
    Experiment(
        name="001-table2",
        title="RNM-Screen on real data",
        trial=real_trial("001-table2", True),
        metrics=SCORES | {"R2": ".3f"},
        claim="RNM-Screen is significantly sparser than DP-FW on all tables, and its F1 significantly better on none.",
        verdict=density_verdict,
        reasons={
            "TPR and FPR (compared, as one trial)": "each published value is a ratio of small whole numbers (1/3, 3/5, "
            "9/19, 4/9 ...) and contradicts the F1 beside it, so it is that of one trial, not an average of 20, and is "
            "compared as such; housing's FPR (0.222 for 0.444) and blogfeedback's TPR (0.452 for 0.580) are still "
            "more than two deviations away",
            "F1, bodyfat": "not explained (0.478 for 0.333): Oracle-K's F1 differs by as much; perhaps "
            "another LASSO support (the penalty is not printed), not tested",
            "R2": "not explained (abalone 0.34 for 0.800, communities 0.59 for 0.837). Tried: weights by variance, no "
            "intercept, pooled over features: the same to three digits, because Yeo-Johnson columns are standardised",
        },
        tests=density_tests,
        needs=FILES,
        **YEO,
    ),
    Experiment(
        name="001-table3",
        title="F1 and error against Oracle-K",
        trial=real_trial("001-table2", True),
        rows_of="001-table2",
        metrics={"F1": ".3f", "MSE": ".3f"},
        claim=(
            "For d > 20 RNM-Screen's F1 is not significantly worse than that of Oracle-K, which is not private, and "
            "its error only on BlogFeedback."
        ),
        verdict=mse_verdict,
        reasons={
            "NP-FW": "no spread, so every digit must agree; all errors but pyrim's agree to 2 %, the LASSO support "
            "behind F1 depends on a penalty that is not printed",
            "Preselect-K": "not explained. Tried for the norm that ranks the features: of prepared, raw, divided and "
            "[-1, 1] columns, the smallest, and correlation with the target: at most 2 of 7 F1 and no error agree",
            "pyrim, triazines": "the paper prints the same error for Oracle-K and RNM-Screen (0.451, 0.979), "
            "and for pyrim nearly that of the non-private fit (0.439; ours 0.262, 0.809, 0.926): probably a slip",
            "bodyfat": "not explained, see 001-table2; the radius, not printed, enters the error (0.774 for 0.689)",
            "abalone, communities": "private errors 3 % (Oracle-K) and 11 % (RNM-Screen) above the published; "
            "not explained, other radii were not tried",
        },
        tests=oracle_tests,
        needs=FILES,
        **YEO,
    ),
    Experiment(
        name="001-figure2",
        title="mean squared error over the iterations",
        trial=real_trial("001-table2", True),
        rows_of="001-table2",
        metrics={"MSE": ".3f"},
        claim="The error falls on the larger data sets: RNM-Screen learns.",
        verdict=mse_curve_verdict,
        plot=plot_mse,
        needs=FILES,
        **YEO,
    ),
    Experiment(
        name="001-table4",
        title="RNM-Screen without the Yeo-Johnson transform",
        reasons={
            "R2": "not explained (abalone 0.41 for 0.109, housing 0.30 for 0.062). Tried: no intercept (-0.05, 0.08), "
            "weights by variance (0.25, 0.32), pooled (0.27, 0.35; communities 0.83 for 0.821): none fits "
            "more than two",
            "blogfeedback": "how its columns, of very different size, were scaled is not printed; one factor for all, "
            "which fits residential and communities, leaves most of them near zero; no other was tested",
        },
        trial=real_trial("001-table4", False),
        metrics={"F1": ".3f", "density": ".3f", "R2": ".3f"},
        claim="Without Yeo-Johnson R2 is worse on all data sets but BlogFeedback.",
        verdict=without_verdict,
        tests=density_tests,
        needs=FILES,
        **YEO,
    ),
    Experiment(
        name="001-table5",
        title="F1 and error without the Yeo-Johnson transform",
        trial=real_trial("001-table4", False),
        rows_of="001-table4",
        metrics={"F1": ".3f", "MSE": ".3f"},
        claim="Without Yeo-Johnson RNM-Screen's F1 is not better than that of Oracle-K anywhere.",
        verdict=oracle_verdict,
        reasons={
            "NP-FW": "no spread, so every digit must agree; the errors but blogfeedback's agree to 0.003 or "
            "3 %, F1 to 0.12: the LASSO support depends on a penalty that is not printed",
            "abalone, RNM-Screen": "the published private error (0.010) is below the non-private one (0.012), "
            "perhaps a slip; ours is 0.088",
            "bodyfat, Oracle-K": "0.097 for 0.124, not explained; other radii were not tried",
            "blogfeedback": "the published non-private error (0.023) is six times that of RNM-Screen (0.004), which "
            "is ours for the non-private fit; perhaps another scaling, not tested",
        },
        tests=oracle_tests,
        needs=FILES,
        **YEO,
    ),
    Experiment(
        name="001-theorem4",
        title="density of uniform update and screening (Theorem 4)",
        configurations=lambda quick: [{"part": "chance", "mode": "nonprivate"}],
        trial=chance_trial,
        trials=(1, 5),
        many=True,
        metrics={"density": ".3f"},
        claim="Under uniform update and screening the share of non-zero coefficients tends to (d-1)^2/((d-1)d+1).",
        verdict=chance_verdict,
        protocol=(
            "200 d steps, averages after 20 d. Reading: update, then screen, each uniform over all d "
            "coefficients, as the "
            "proof says. An author could answer that screened coefficients are chosen among the non-zero ones; "
            "each update is undone by a screening and the density tends to 0. The simulation decides."
        ),
    ),
)
