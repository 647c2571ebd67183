"""Tables and plots of `screening.py` from its JSON lines, published numbers beside ours."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from pathlib import Path

import numpy as np
import screening_data as sd

Rows = dict[tuple[str, str, str], list[dict]]


def read(path: Path) -> list[dict]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def write(out: Path) -> None:
    rows: Rows = defaultdict(list)
    for row in read(out / "rows.jsonl"):
        if not row.get("last"):
            rows[row["part"], row["data"], row["method"]].append(row)
    text = [
        "# Screening: tables",
        "",
        "Written by `experiments/screening.py`. Means over trials (number in brackets), published figures beside.",
        "All runs are seeded for repeatability; epsilon is that of the same fit with secure noise.",
        "",
        *table_synthetic(rows),
        *table_nonprivate(rows),
        *table_adp(rows),
        *tables_real(rows, "tables 2-3", "Paper 001, Tables 2 and 3 (Yeo-Johnson)", sd.TABLE3),
        *tables_real(rows, "tables 4-5", "Paper 001, Tables 4 and 5 (no Yeo-Johnson)", sd.TABLE5),
        *table_guidance(rows),
        *table_rows(rows),
        *table_time(rows),
    ]
    (out / "tables.md").write_text("\n".join(text) + "\n")
    try:
        import matplotlib
    except ImportError:  # tables do not need it
        return
    matplotlib.use("Agg")
    plot_adp(rows, out)
    plot_rnm(rows, out)
    plot_real(rows, out)
    plot_guidance(rows, out)


def mean(group: list[dict], key: str) -> float:
    values = [row[key] for row in group if row.get(key) is not None and not math.isnan(row[key])]
    return float(np.mean(values)) if values else math.nan


def show(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.3f}"


def table(head: list[str], body: list[list[str]]) -> list[str]:
    lines = [" | ".join(head), "|".join("---" for _ in head), *(" | ".join(row) for row in body)]
    return (
        [f"| {line} |" for line in lines[:1]]
        + [f"|{lines[1]}|"]
        + [f"| {line} |" for line in lines[2:]]
        + [""]
    )


# ---- tables --------------------------------------------------------------------------------------

GUARANTEE = {
    "rnm": "claims (5, 1/3000): not proven", "rnm on an empty table": "the same noise, no data",
}  # fmt: skip


def table_synthetic(rows: Rows) -> list[str]:
    body = []
    for name, published in sd.TABLE1.items():
        for (part, data, method), group in rows.items():
            if part != "synthetic" or data != name:
                continue
            cells = [
                name,
                f"{method} ({len(group)})",
                GUARANTEE.get(method, "(5, 1/3000)-DP, proven"),
            ]
            for key, value in zip(("tpr", "fpr", "f1", "density"), published, strict=True):
                cells += [show(mean(group, key)), show(value) if method == "rnm" else ""]
            body.append(cells)
    head = ["data", "method", "guarantee"]
    for name in ("TPR", "FPR", "F1", "density"):
        head += [name, "published"]
    return ["## Paper 001, Table 1: 3000 x 600, 70 active features", "", *table(head, body)]


def table_nonprivate(rows: Rows) -> list[str]:
    body = [
        [data, f"{method} ({len(group)})", show(mean(group, "tpr")), "0.55" if "rescaled, start zero" in method else "",
         show(mean(group, "fpr")), "0" if "rescaled, start zero" in method else ""]
        for (part, data, method), group in rows.items() if part == "nonprivate"
    ]  # fmt: skip
    head = [
        "loss",
        "rule",
        "share of true non-zeros found",
        "published",
        "share of false ones",
        "published",
    ]
    return ["## Non-private rule at every iteration, radius 5", "", *table(head, body)]


def table_adp(rows: Rows) -> list[str]:
    printed = {
        "A: noisy optimiser": "nothing screened", "B: noisy screening, 50th": "about 0.10 true, 0 false",
    }  # fmt: skip
    body = []
    for (part, data, method), group in rows.items():
        if part == "adp":
            note = next((text for key, text in printed.items() if method.startswith(key)), "")
            body.append(
                [
                    data,
                    f"{method} ({len(group)})",
                    show(mean(group, "tpr")),
                    show(mean(group, "fpr")),
                    note,
                ]
            )
    head = [
        "loss",
        "method, screening at",
        "true non-zeros kept",
        "false non-zeros kept",
        "published",
    ]
    return [
        "## Paper 000, Figure 1 and experiments A, B: radius 5, epsilon 2.5 + 2.5",
        "",
        *table(head, body),
    ]


def tables_real(rows: Rows, prefix: str, title: str, published: dict) -> list[str]:
    first, second = [], []
    for i, name in enumerate(sd.NAMES):
        groups = {m: g for (part, _, m), g in rows.items() if part == f"{prefix}: {name}"}
        for method in ("rnm", "counts", "top-k", "dp-fw"):
            if method not in groups:
                continue
            group = groups[method]
            paper: list[float | None] = [None] * 5
            if method == "rnm":
                paper = (
                    list(sd.TABLE2[name][1])
                    if prefix == "tables 2-3"
                    else [None, None, *sd.TABLE4[name]]
                )
            cells = [name, f"{method} ({len(group)})"]
            for key, value in zip(("tpr", "fpr", "f1", "density", "r2"), paper, strict=True):
                cells += [show(mean(group, key)), show(value)]
            first.append(cells)
        for method in ("np-fw", "preselect-k", "oracle-k", "rnm", "counts", "top-k", "dp-fw"):
            if method not in groups:
                continue
            group = groups[method]
            f1, mse = published[method][i] if method in published else (None, None)
            second.append(
                [name, f"{method} ({len(group)})", show(mean(group, "f1")), show(f1),
                 show(mean(group, "mse")), show(mse)]
            )  # fmt: skip
    head = ["data", "method"]
    for key in ("TPR", "FPR", "F1", "density", "R2"):
        head += [key, "published"]
    note = (
        "`rnm`, `oracle-k` claim (5, 1/n) without proof; `np-fw`, `preselect-k` are not private; `counts`, "
        "`top-k` (k = d/3) and `dp-fw` (all weights) are proven (5, 1/n)-DP given the prepared table, "
        "one public recipe for all."
    )
    return [
        f"## {title}", "", note, "", *table(head, first),
        *table(["data", "method", "F1", "published", "MSE", "published"], second),
    ]  # fmt: skip


def table_guidance(rows: Rows) -> list[str]:
    body = [
        [data, f"{method} ({len(group)})", *(show(mean(group, key)) for key in ("tpr", "fpr", "f1", "density"))]
        for (part, data, method), group in rows.items() if part == "guidance"
    ]  # fmt: skip
    head = ["varied", "method", "TPR", "FPR", "F1", "density"]
    return [
        "## Guidance: uncorrelated synthetic data, epsilon 5 unless varied",
        "",
        *table(head, body),
    ]


def table_rows(rows: Rows) -> list[str]:
    keys = ("tpr", "fpr", "f1", "density", "mse")
    body = [
        [data, f"{method} ({len(group)})", f"{mean(group, 'live'):.0f}", *(show(mean(group, key)) for key in keys)]
        for (part, data, method), group in rows.items() if part == "rows"
    ]  # fmt: skip
    head = ["rows", "method", "live of 100", "TPR", "FPR", "F1", "density", "MSE / variance"]
    return [
        "## How many rows paid rules need: 100 features, 12 active, epsilon 1",
        "",
        *table(head, body),
    ]


def table_time(rows: Rows) -> list[str]:
    body = []
    for (part, data, method), group in rows.items():
        if part == "cost":
            seconds = float(np.median([row["seconds"] for row in group]))
            base = float(np.median([row["seconds"] for row in rows[part, data, "no screening"]]))
            live = " -> ".join(str(n) for n in group[-1]["live"])
            body.append(
                [data, f"{method} ({len(group)})", f"{seconds:.2f}", f"{base / seconds:.2f}", live]
            )
    head = ["data, solver", "method", "seconds", "speed-up", "live features"]
    return [
        "## Does screening save time? Processor seconds, median",
        "",
        *table(head, body),
    ]


# ---- plots ---------------------------------------------------------------------------------------


def _trace(group: list[dict], key: str = "trace") -> np.ndarray:
    return np.mean([row[key] for row in group if row.get(key)], axis=0)


def plot_adp(rows: Rows, out: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(11, 5.5), sharey=True)
    for line, loss in zip(axes, ("squared", "logistic"), strict=True):
        for axis, (name, title) in zip(
            line,
            {"every": "every step", "50th": "every 50th", "last": "last step"}.items(),
            strict=True,
        ):
            group = rows.get(("adp", loss, f"adp, {name}"))
            if group:
                trace = _trace(group)
                axis.plot(trace[:, 0], trace[:, 1], label="true non-zeros")
                axis.plot(trace[:, 0], trace[:, 2], "--", label="true zeros")
            axis.set_title(f"{loss}, {title}")
            axis.set_xlabel("iteration")
    axes[0, 0].set_ylabel("share non-zero")
    axes[1, 0].set_ylabel("share non-zero")
    axes[0, 0].legend()
    figure.suptitle(
        "Paper 000, Figure 1 redrawn: ADP-Screen cannot tell true non-zeros from true zeros"
    )
    _save(figure, out / "adp_figure1.png")
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.5))
    for axis, loss in zip(axes, ("squared", "logistic"), strict=True):
        for method, label in (
            ("A: noisy optimiser, every", "private optimiser"),
            ("B: noisy screening, last", "non-private optimiser"),
        ):
            group = rows.get(("adp", loss, method))
            if group:
                axis.semilogy(
                    _trace(group)[:, 0],
                    _trace(group, "gaps"),
                    label=label,
                )
        axis.set_title(loss)
        axis.set_xlabel("iteration")
    axes[0].set_ylabel("Wolfe gap (mean loss)")
    axes[0].legend()
    figure.suptitle(
        "Paper 000, Figure 2 redrawn: the gap under private and non-private optimisation"
    )
    _save(figure, out / "adp_figure2.png")


def plot_rnm(rows: Rows, out: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True)
    for axis, name in zip(axes, sd.TABLE1, strict=True):
        group = rows.get(("synthetic", name, "rnm"))
        if group:
            trace = _trace(group)
            axis.plot(trace[:, 0], trace[:, 1], "C0", label="RNM: true non-zeros")
            axis.plot(trace[:, 0], trace[:, 2], "C0--", label="RNM: true zeros")
        axis.plot(1000, sd.TABLE1[name][0], "k*", ms=10, label="published end points")
        axis.plot(1000, sd.TABLE1[name][1], "k*", ms=10)
        free = rows.get(("synthetic", name, "counts"))
        if free:
            axis.axhline(mean(free, "tpr"), color="C2", label="counts (proven): true non-zeros")
            axis.axhline(
                mean(free, "fpr"), color="C2", ls="--", label="counts (proven): true zeros"
            )
        axis.axhline(599 / 1199, color="grey", lw=0.7)
        axis.set_title(name)
        axis.set_xlabel("iteration")
    axes[0].set_ylabel("share non-zero")
    axes[1].legend(fontsize=7, loc="center left")
    figure.suptitle("Paper 001, Figure 1 redrawn (grey: pure noise, (d-1)/(2d-1))")
    _save(figure, out / "rnm_figure1.png")


def plot_real(rows: Rows, out: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 4, figsize=(12, 5.5))
    for axis, (i, name) in zip(axes.ravel(), enumerate(sd.NAMES), strict=True):
        groups = {m: g for (part, _, m), g in rows.items() if part == f"tables 2-3: {name}"}
        traced = [row for row in groups.get("rnm", []) if row.get("trace")]
        if traced:
            trace = _trace(traced)
            axis.plot(trace[:, 0], trace[:, 1], label="RNM-Screen (ours)")
        axis.axhline(sd.TABLE3["rnm"][i][1], color="k", ls=":", label="RNM-Screen, Table 3")
        for method, colour in (("top-k", "C2"), ("np-fw", "grey")):
            if method in groups:
                axis.axhline(
                    mean(groups[method], "mse"),
                    color=colour,
                    label={"top-k": "top-k (proven)"}.get(method, method),
                )
        axis.set_title(name)
    axes[0, 0].set_ylabel("MSE")
    axes[0, 0].legend(fontsize=7)
    figure.suptitle("Paper 001, Figure 2 redrawn: training error")
    _save(figure, out / "rnm_figure2.png")


def plot_guidance(rows: Rows, out: Path) -> None:
    import matplotlib.pyplot as plt

    titles = {
        "clip": "feature_bound (sd of entries 0.2)", "n_iter": "n_iter", "radius": "radius c / Y",
        "epsilon": "epsilon", "share": "screen_share",
    }  # fmt: skip
    figure, axes = plt.subplots(1, 5, figsize=(15, 3.2), sharey=True)
    for axis, (name, title) in zip(axes, titles.items(), strict=True):
        curves: dict[str, dict[float, float]] = defaultdict(dict)
        for (part, data, method), group in rows.items():
            if part == "guidance" and data == name:
                curves[method.split(",")[0]][group[0]["x"]] = mean(group, "f1")
        for rule, points in curves.items():
            xs = sorted(points)
            axis.plot(xs, [points[x] for x in xs], "o-", label=rule)
        axis.axhline(sd.TABLE1["uncorrelated"][2], color="k", ls=":", label="RNM published")
        axis.set_title(title, fontsize=9)
        if name != "share":
            axis.set_xscale("log")
        ticks = sorted({x for points in curves.values() for x in points})
        axis.set_xticks(ticks, [f"{x:g}" for x in ticks])
        axis.minorticks_off()
        axis.legend(fontsize=7)
    axes[0].set_ylabel("F1")
    _save(figure, out / "guidance.png")


def _legend(axis) -> None:
    if axis.get_legend_handles_labels()[0]:
        axis.legend()


def _save(figure, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
