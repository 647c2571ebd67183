"""One self-contained HTML page about an audit; nothing on it comes from outside."""

from __future__ import annotations

import math
from html import escape

from dpsparse._checks import show_number
from dpsparse._html import page as whole_page
from dpsparse.audit.verdict import Row, Verdict

# Of the bars: the rest of the style is that of every page.
_STYLE = """<style>td svg { width: 120px; height: 10px; padding: 0; background: none }
.bar { fill: var(--line) } .bound { fill: #4668a8 } .over { fill: var(--bad) } td { color: var(--ink) }</style>"""

_WHAT = {
    "replay": "the same released history on neighbouring tables, compared at every mechanism",
    "rebuild": "the run again without its rows, from what it released: everything it shows is the same",
    "boundary": "whole-number contributions of rows on which floating-point arithmetic breaks",
    "noise": "whether the noise that was drawn follows its declared law",
    "exact law": "exact likelihood ratios of whole histories: the privacy profile",
    "black box": "published models only, counted on two neighbouring tables",
}


def page(verdict: Verdict) -> str:
    """The page as text."""
    word, kind = ("not refuted", "holds") if verdict.holds else ("REFUTED", "refuted")
    rows = "\n".join(_row(row) for row in verdict.rows)
    title = f"Audit of {verdict.method}"
    body = f"""{_STYLE}
<h1>{escape(title)}</h1>
<p>Claim: epsilon = {verdict.claimed:g} at delta = {show_number(verdict.delta)}, {escape(verdict.adjacency)},
calibration {escape(verdict.calibration)}. Verdict: <span class="{kind}">{word}</span>.</p>
<table><caption hidden>Attacks and what they refute</caption>
<thead><tr><th scope="col">attack</th><th scope="col">claimed epsilon</th>
<th scope="col">largest epsilon refuted</th><th scope="col">verdict</th>
<th scope="col">what was seen</th></tr></thead>
<tbody>
{rows}
</tbody></table>
<p>A refuted epsilon is refuted with confidence {100 * verdict.confidence:g} %. "Holds" says that these
attacks found nothing, not that nothing is there: the proof is the guarantee, the audit is a check of
the proof and of the code. Infinity means that the proof itself fails: a sensitivity, a count or a law.</p>
"""
    return whole_page(title, body)


def _row(row: Row) -> str:
    kind = "holds" if row.holds else "refuted"
    return (
        f'<tr><th scope="row">{escape(row.attack)}<br><small>{escape(_WHAT.get(row.attack, ""))}'
        f'</small></th><td class="n">{row.claimed:.4g}</td>'
        f'<td class="n">{_number(row.refuted)}<br>{_bar(row)}</td>'
        f'<td class="{kind}">{escape(row.verdict)}</td><td>{escape(row.detail)}</td></tr>'
    )


def _number(value: float) -> str:
    return "infinity" if math.isinf(value) else f"{value:.4g}"


def _bar(row: Row) -> str:
    """The refuted epsilon against the claimed one, as a small picture."""
    share = 1.0 if math.isinf(row.refuted) else min(row.refuted / row.claimed, 2.0) / 2.0
    kind = "bound" if row.holds else "over"
    return (
        '<svg width="120" height="10" role="img" aria-label="refuted against claimed">'
        '<rect class="bar" width="120" height="10"/>'
        f'<rect class="{kind}" width="{120 * share:.1f}" height="10"/>'
        '<rect x="59" width="2" height="10" fill="currentColor"/></svg>'
    )
