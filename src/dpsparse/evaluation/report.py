"""What a private evaluation found: numbers with intervals, curves, and what was promised for them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpsparse import methods
from dpsparse.accounting.guarantee import PERSON, PROMISED, ROW, Guarantee, Phase, Plan
from dpsparse.evaluation.intervals import Estimate
from dpsparse.evaluation.metrics import Curve, Table, Threshold, measure
from dpsparse.evaluation.plan import Subject, make_plan, noise_variance
from dpsparse.evaluation.released import Released
from dpsparse.exceptions import ParameterError


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """Estimates and tables by name (`report.accuracy`, `report.roc`), the plan and the released numbers.

    Everything here is computed from released numbers, also where a report is read from a file: looking at it again, or
    computing more, is free.
    """

    model: str
    plan_: Plan
    released: Released
    subject: Subject
    metrics: tuple[str, ...]
    labels: list[Any]
    level: float = 0.95

    @cached_property
    def _measured(self) -> tuple[dict[str, Estimate], dict[str, Table]]:
        return measure(self.released, self.subject, self.metrics, self.labels, self.level)

    @property
    def estimates(self) -> dict[str, Estimate]:
        """Metrics by name, each with its interval."""
        return self._measured[0]

    @property
    def tables(self) -> dict[str, Table]:
        """Curves and counts by name."""
        return self._measured[1]

    @property
    def privacy_(self) -> Guarantee:
        return self.plan_.guarantee

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # also asked of a report that has no fields yet, by pickle
            raise AttributeError(name)
        for found in (self.estimates, self.tables):
            if name in found:
                return found[name]
        raise AttributeError(f"The report has no {name!r}; it has: {', '.join(self)}.")

    def __iter__(self) -> Any:
        return iter([*self.estimates, *self.tables])

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    @property
    def covers(self) -> str:
        """What the intervals are about."""
        unit = "persons" if self.plan_.unit == PERSON else "rows"
        text = (
            "Intervals count sampling and privacy noise. They cover the metric of this fixed model on the population "
            f"from which the {unit} were drawn independently; not other populations, and not a model chosen on the "
            "same rows."
        )
        if unit == "persons":
            text += " Every metric is a mean over persons."
        if self.subject.n_classes == 0:
            bound, middle = self.subject.target_bound, self.subject.target_middle
            ends = f"{middle - bound:g} to {middle + bound:g}" if middle else f"+-{bound:g}"
            clipped = f" Errors beyond {self.subject.error_bound:g} count as that"
            clipped += ", which can make R2 too large" if "r2" in self.estimates else ""
            text += f"{clipped}; targets are clipped to {ends}."
        if "log_loss" in self.estimates:
            text += " The log loss of a row counts as at most 6."
        return text

    def threshold_for(
        self, *, precision: float | None = None, recall: float | None = None
    ) -> Threshold:
        """A decision threshold for a target precision or recall, free of charge.

        Of the thresholds that reach the target, by estimate, the one with the best other rate. Its intervals hold
        for all thresholds of the report at once, since it was chosen by looking at them.
        """
        if "histogram" not in self.released.numbers or self.subject.n_classes != 2:
            raise ParameterError(
                "A threshold needs the curve of a classifier of two classes; evaluate with metrics=['roc', ...]."
            )
        curve = Curve.of(self.released, self.subject.has_chances)
        return curve.threshold_for(precision, recall, self.level)

    def plot(self) -> Any:
        """A matplotlib figure: estimates with intervals and, for two classes, ROC and calibration."""
        from dpsparse.report.evaluation import evaluation_figure

        return evaluation_figure(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain types: estimates, tables, released numbers, guarantee; `from_dict` reads it again."""
        return {
            "format": 1,
            "model": self.model,
            "subject": asdict(self.subject),
            "metrics": list(self.metrics),
            "labels": self.labels,
            "level": self.level,
            "estimates": {name: asdict(part) for name, part in self.estimates.items()},
            "tables": {
                name: {column: cells.tolist() for column, cells in part.items()}
                for name, part in self.tables.items()
            },
            "released": self.released.to_dict(),
            "covers": self.covers,
            "guarantee": self.privacy_.to_dict(),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Report:
        """Inverse of `to_dict`, also of what `dpsparse evaluate -o report.json` has written; estimates and tables are
        computed again, and a report is refused whose noise is not that of its guarantee."""
        if record.get("format") != 1 or "subject" not in record:
            raise ParameterError("This is not a report of dp_evaluate: its format is unknown.")
        released, subject = record["released"], Subject(**record["subject"])
        plan = _plan(Guarantee.from_dict(record["guarantee"]))
        known = not subject.private or (subject.own and record["model"] in methods.__all__)
        if plan.proven and not (
            known and plan.promises_as(_priced_again(plan, subject, record["metrics"]))
        ):
            raise ParameterError(
                "This report contradicts itself: its guarantee does not follow from its model and metrics. It was "
                "edited; do not trust it."
            )
        for name in released["numbers"]:
            told, paid = released["noise_variance"][name], noise_variance(name, plan)
            if not math.isclose(told, paid, rel_tol=1e-6):
                raise ParameterError(
                    f"The noise of {name} in this report is not that of its guarantee: its intervals would be wrong. "
                    "Take the file that dpsparse evaluate wrote."
                )
        return cls(
            record["model"],
            plan,
            Released(
                {name: np.array(part) for name, part in released["numbers"].items()},
                released["noise_variance"],
                released["n_units"],
                None if released["cuts"] is None else np.array(released["cuts"]),
                released["centre"],
            ),
            subject,
            subject.check(record["metrics"]),
            record["labels"],
            record["level"],
        )

    def __str__(self) -> str:
        lines = [f"Evaluation of {self.model}: {self.privacy_.headline}"]
        lines += [f"  {name:<12} {part}" for name, part in self.estimates.items()]
        if self.subject.positive and {"precision", "recall", "f1"} & self.estimates.keys():
            lines.append(f"  precision, recall and F1 are of: {self.subject.positive}")
        if self.tables:
            lines.append(f"  tables: {', '.join(self.tables)}")
        lines.append(f"{100 * self.level:g} % intervals. {self.covers}")
        return "\n".join(lines) + self.privacy_.caution_lines

    __repr__ = __str__


def _plan(g: Guarantee) -> Plan:
    """The plan behind a guarantee, without the notes of its phases."""
    return Plan(
        method="dp_evaluate",
        phases=tuple(Phase(name, event) for name, event in g.events),
        proven=g.proven,
        **{name: getattr(g, name) for name in PROMISED},
    )


def _priced_again(plan: Plan, subject: Subject, metrics: Any) -> Plan:
    """What these metrics of this model cost under the terms of a plan, and on what that rests."""
    return make_plan(
        subject,
        subject.check(metrics),
        epsilon=plan.epsilon,
        delta=plan.delta,
        adjacency=plan.adjacency,
        unit=PERSON if plan.unit == PERSON else ROW,
    )
