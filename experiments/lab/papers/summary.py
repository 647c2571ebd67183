"""Rows against the published numbers: averages, standard errors, and the rule that says "match".

Match rule. The paper's average and ours are compared as two independent averages: they match if they
differ by at most two standard errors of the difference plus half a unit of the last printed digit.
Where the paper prints no spread, ours stands in for it at the paper's number of trials. A single
deterministic number has no spread and must agree to its printed digits. Fewer than MIN_TRIALS trials of
ours against an average of theirs are not compared.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from lab.engine import Row
from lab.papers.chapter import AFTER_THE_FACT, AS_PRINTED, BY_CONSTRUCTION, Chapter, Config
from lab.report import markdown_table

PUBLISHED = Path(__file__).parents[2] / "published"
MIN_TRIALS = 5
MODES = ("nonprivate", "published", "proven")
_MARKS = {AS_PRINTED: "", AFTER_THE_FACT: " (reading)", BY_CONSTRUCTION: " (construction)"}
# How a cell is run, not which cell it is.
_NOT_NAMES = {
    "mode", "trials", "n_iter", "fraction", "part", "tuning", "attack", "budgets",
}  # fmt: skip


@dataclass(frozen=True)
class Average:
    """Mean of a metric over trials, its spread and its standard error."""

    mean: float
    deviation: float
    trials: int

    @property
    def error(self) -> float:
        return self.deviation / math.sqrt(self.trials)

    def text(self, form: str) -> str:
        if self.trials == 1 or self.deviation == 0.0:
            return f"{self.mean:{form}}"
        return f"{self.mean:{form}} ± {self.error:{form}}"


def average(values: Iterable[float]) -> Average:
    """Mean and spread of at least one number."""
    numbers = np.fromiter(values, float)
    spread = float(np.std(numbers, ddof=1)) if len(numbers) > 1 else 0.0
    return Average(float(np.mean(numbers)), spread, len(numbers))


@dataclass(frozen=True)
class Published:
    """One printed number: value, half a unit of its last digit, spread if printed, trials.

    `comparable` is False where our data or clock are not the paper's: shown, never counted.
    """

    value: float
    half_digit: float
    deviation: float | None
    trials: int
    comparable: bool = True

    def can_judge(self, ours: Average) -> bool:
        """Whether our trials suffice for a comparison of averages."""
        return self.comparable and ours.trials >= min(MIN_TRIALS, self.trials)

    def matches(self, ours: Average) -> bool:
        deviation = ours.deviation if self.deviation is None else self.deviation
        error = math.hypot(ours.error, deviation / math.sqrt(self.trials))
        return abs(ours.mean - self.value) <= 2.0 * error + self.half_digit + 1e-12


@dataclass(frozen=True)
class Summary:
    """The rows of one chapter beside the published cells."""

    chapter: Chapter
    rows: list[Row]  # one per fit; of several tunings only the best
    published_cells: list[dict[str, Any]]
    fits: int  # with all tunings
    seconds: float
    source: str  # authors, year and title of the paper
    listed: list[Config]  # configurations in their order, where a trial measures one of them

    # ---- access for verdicts, tests and plots -------------------------------------------------

    @cached_property
    def cells(self) -> list[Config]:
        """Every cell (configuration without its mode), in the order of the configurations."""
        seen: dict[str, Config] = {}
        for source in [*self.listed, *(row["setting"] for row in self.rows)]:
            cell = _cell(source)
            seen.setdefault(_text(cell), cell)
        present = {_text(_cell(row["setting"])) for row in self.rows}
        return [cell for text, cell in seen.items() if text in present]

    def values(self, metric: str, mode: str | None = None, **cell: Any) -> list[Any]:
        """The metric of every matching row, in the order of the trials."""
        wanted = cell if mode is None else cell | {"mode": mode}
        # only the rows that share the rarest of the wanted values need a look
        lists = [
            self._by_value.get((k, _hashed(v)), []) for k, v in wanted.items() if v is not None
        ]
        found = [
            (row["split"], row["measures"][metric])
            for row in min(lists, key=len, default=self.rows)
            if all(row["setting"].get(k) == v for k, v in wanted.items())
            and metric in row["measures"]
        ]
        return [value for _, value in sorted(found, key=lambda pair: pair[0])]

    @cached_property
    def _by_value(self) -> dict[tuple[str, Any], list[Row]]:
        """The rows by each name and value of their configurations."""
        found: dict[tuple[str, Any], list[Row]] = {}
        for row in self.rows:
            for k, v in row["setting"].items():
                found.setdefault((k, _hashed(v)), []).append(row)
        return found

    def average(self, metric: str, mode: str | None = None, **cell: Any) -> Average | None:
        """Mean and spread of a metric over the trials where it is defined; None if there are none."""
        values = np.asarray(self.values(metric, mode, **cell), float)
        if values.ndim != 1:
            return None
        values = values[~np.isnan(values)]
        return average(values) if len(values) else None

    def mean(self, metric: str, mode: str | None = None, **cell: Any) -> float:
        """The mean alone; NaN if there are no rows."""
        average = self.average(metric, mode, **cell)
        return math.nan if average is None else average.mean

    def curve(self, metric: str, mode: str | None = None, **cell: Any) -> np.ndarray:
        """Mean of a list-valued metric, position by position."""
        mean: np.ndarray = np.asarray(self.values(metric, mode, **cell), float).mean(axis=0)
        return mean

    def published(self, metric: str, **cell: Any) -> Published | None:
        """The printed number of a cell, if there is one."""
        for entry in self.published_cells:
            if metric in entry["values"] and all(
                cell.get(k) == v for k, v in entry["cell"].items()
            ):
                text = str(entry["values"][metric])
                decimals = len(text.partition(".")[2])
                deviation = entry.get("deviations", {}).get(metric)
                return Published(
                    value=float(text),
                    half_digit=0.5 * 10.0**-decimals,
                    deviation=deviation,
                    trials=entry["trials"],
                    comparable=entry.get("comparable", True),
                )
        return None

    # ---- comparison -----------------------------------------------------------------------------

    def comparisons(self) -> Iterator[tuple[Config, str, Published, Average]]:
        """Printed numbers beside ours as published (or without noise, where the method has none)."""
        for cell in self.cells:
            for metric in self.chapter.metrics:
                printed = self.published(metric, **cell)
                for mode in ("published", "nonprivate"):
                    ours = self.average(metric, mode, **cell)
                    if printed is not None and ours is not None and printed.can_judge(ours):
                        yield cell, metric, printed, ours
                        break

    @cached_property
    def matches(self) -> list[tuple[str, bool, int]]:
        """Of every compared number its kind, whether it matches, and the paper's trials."""
        return [
            (self.chapter.kind(cell, metric), printed.matches(ours), printed.trials)
            for cell, metric, printed, ours in self.comparisons()
        ]

    def matched(self, kind: str = "", *, single: bool = False) -> tuple[int, int]:
        """(numbers that match, numbers compared), all or of one kind, or those that are one trial of the paper's."""
        chosen = [
            good
            for of, good, trials in self.matches
            if kind in ("", of) and (trials == 1 or not single)
        ]
        return sum(chosen), len(chosen)

    @property
    def guarantees(self) -> list[str]:
        """Different guarantees by mode, as the rows carry them."""
        return sorted(
            {
                f"{row['setting'].get('mode', '')}: {row['guarantee']['headline']}"
                for row in self.rows
                if row.get("guarantee")
            }
        )

    def table(self) -> str:
        """Markdown: one line per cell and metric, published beside ours."""
        keys = list(dict.fromkeys(key for cell in self.cells for key in cell))
        head = [*keys, "metric", "published", "ours as published", "match", "ours proven", "trials"]
        lines = [
            [*(str(cell.get(k, "")) for k in keys), *line]
            for cell in self.cells
            for metric, form in self.chapter.metrics.items()
            if (line := self._line(cell, metric, form)) is not None
        ]
        return markdown_table(head, lines)

    def _line(self, cell: Config, metric: str, form: str) -> list[str] | None:
        averages = {mode: self.average(metric, mode, **cell) for mode in MODES}
        as_published = averages["published"] or averages["nonprivate"]
        proven = averages["proven"]
        if as_published is None and proven is None:
            return None
        printed = self.published(metric, **cell)
        match = ""
        if printed is not None and not printed.comparable:
            match = "other data"
        elif printed is not None and as_published is not None:
            match = "yes" if printed.matches(as_published) else "no"
            match += _MARKS[self.chapter.kind(cell, metric)]
            match = match if printed.can_judge(as_published) else "too few trials"
        trials = sorted({a.trials for a in averages.values() if a is not None})
        return [
            metric,
            "" if printed is None else f"{printed.value:g}",
            "" if as_published is None else as_published.text(form),
            match,
            "" if proven is None else proven.text(form),
            "/".join(map(str, trials)),
        ]


def summarise(chapter: Chapter, rows: list[Row], published: Path = PUBLISHED) -> Summary:
    """Rows of a chapter with the printed numbers of its paper."""
    paper = chapter.name.split("-", 1)[0]
    item = _read_json(published / f"{paper}.json").get(chapter.name, {})
    cells = [{"trials": item.get("trials", 1), **entry} for entry in item.get("cells", [])]
    rows = [row for row in rows if "error" not in row]
    parts = [part for row in rows for part in _parts(row)]
    shown = _best_tuning(parts, chapter.tuned_by)
    seconds = float(sum(row["measures"]["seconds"] for row in rows))
    source = str(_read_json(published / "papers.json").get(paper, ""))
    listed = [] if any("parts" in row for row in rows) else chapter.configurations()
    return Summary(chapter, shown, cells, len(parts), seconds, source, listed)


def _read_json(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text())) if path.exists() else {}


def _parts(row: Row) -> list[Row]:
    """A trial that measures several methods on one draw of the data gives one row for each."""
    if "parts" not in row:
        return [row]
    return [
        {"split": row["split"], **part, "setting": {**row["setting"], **part["cell"]}}
        for part in row["parts"]
    ]


def _best_tuning(rows: list[Row], metric: str) -> list[Row]:
    """Of the settings tried for a cell and mode those rows whose mean of `metric` is smallest."""
    if not metric:
        return rows
    tried: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        setting = row["setting"]
        cell = _text(_cell(setting) | {"mode": setting.get("mode")})
        tried.setdefault(cell, {}).setdefault(setting.get("tuning", ""), []).append(row)
    return [
        row
        for tunings in tried.values()
        for row in min(tunings.values(), key=lambda tried: _mean_or_inf(tried, metric))
    ]


def _mean_or_inf(rows: list[Row], metric: str) -> float:
    mean = float(np.mean([row["measures"][metric] for row in rows]))
    return math.inf if math.isnan(mean) else mean


def _hashed(value: Any) -> Any:
    """A value of a configuration as a key: 2 and 2.0 stay the same."""
    return str(value) if isinstance(value, list) else value


def _cell(config: Config) -> Config:
    return {k: v for k, v in config.items() if k not in _NOT_NAMES}


def _text(cell: Config) -> str:
    return json.dumps(cell, sort_keys=True)


def sign_test(first: Sequence[float], second: Sequence[float]) -> float:
    """Two-sided sign test of paired samples; ties are dropped. 1.0 if nothing is left."""
    difference = np.asarray(first, float) - np.asarray(second, float)
    above, below = int(np.sum(difference > 0)), int(np.sum(difference < 0))
    return float(stats.binomtest(above, above + below).pvalue) if above + below else 1.0


def wilcoxon(first: Sequence[float], second: Sequence[float]) -> float:
    """Two-sided Wilcoxon signed-rank test of paired samples. 1.0 if all pairs are equal.

    Pairs with a NaN (the AUC of a test part with one class) are left out.
    """
    difference = np.asarray(first, float) - np.asarray(second, float)
    difference = difference[~np.isnan(difference)]
    return float(stats.wilcoxon(difference, method="auto").pvalue) if np.any(difference) else 1.0
