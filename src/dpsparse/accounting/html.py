"""Guarantees and plans as small self-contained HTML, for notebooks; standard library only."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import fields
from html import escape
from typing import Any

from dpsparse._checks import show_number
from dpsparse.accounting.events import Event, Repeated, Sequence

# readable on light and dark backgrounds
_GOOD, _AMBER, _BAD = "#1a7f4b", "#a86400", "#c4302b"


def guarantee_html(
    headline: str, proven: bool, rows: Iterable[tuple[str, Any]], *, caution: bool = False
) -> str:
    """A coloured headline above a table of facts: green, amber with a caution, red without a proof."""
    colour = _BAD if not proven else _AMBER if caution else _GOOD
    cells = "".join(
        '<tr><th scope="row" style="text-align:left;font-weight:normal;opacity:.7;'
        f'padding:1px 12px 1px 0;vertical-align:top">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(show(value))}</td></tr>'
        for name, value in rows
    )
    return (
        f'<div style="border-left:4px solid {colour};padding:2px 10px;margin:4px 0">'
        f'<div style="font-weight:600;color:{colour}">{escape(headline)}</div>'
        f'<table style="border-collapse:collapse;font-size:90%">{cells}</table></div>'
    )


def likelihood_factor(epsilon: float) -> float:
    """e^epsilon, never below it: the factor by which a probability may change."""
    return math.nextafter(math.exp(min(epsilon, 700.0)), math.inf) if epsilon else 1.0


def show(value: Any) -> str:
    """A number as people read it, an event in words, anything else as it prints."""
    if isinstance(value, Event):
        return describe(value)
    return show_number(value) if isinstance(value, float) else str(value)


def describe(event: Event) -> str:
    """An event in one line: "30 x Gaussian, scale 32.7, sensitivity 1.41"."""
    if isinstance(event, Repeated):
        return f"{event.count} x {describe(event.event)}"
    if isinstance(event, Sequence):
        return "; then ".join(describe(part) for part in event.events) or "nothing"
    parts = [(field.name, getattr(event, field.name)) for field in fields(event)]
    numbers = [
        f"{name} {value:,}" if isinstance(value, int) else f"{name} {show_number(value, 4)}"
        for name, value in parts
        if isinstance(value, (int, float))
    ]
    return ", ".join([_words(type(event).__name__), *numbers])


def _words(name: str) -> str:
    known = {
        "NonPrivate": "no privacy at all",
        "Exponential": "exponential mechanism",
        "RoundedGaussian": "Gaussian on a grid",
        "ThresholdedGaussian": "Gaussian on a grid, names above a threshold",
    }
    return known.get(name, name)
