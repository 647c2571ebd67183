"""Guarantees and plans as small self-contained HTML, for notebooks; standard library only."""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape
from typing import Any

from dpsparse._checks import show_number


def guarantee_html(
    headline: str, proven: bool, rows: Iterable[tuple[str, Any]], *, caution: bool = False
) -> str:
    """A coloured headline above a table of facts: green, amber with a caution, red without a proof."""
    # Readable on light and dark backgrounds.
    colour = "#c4302b" if not proven else "#a86400" if caution else "#1a7f4b"
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
    """A number as people read it, anything else as it prints."""
    return show_number(value) if isinstance(value, float) else str(value)
