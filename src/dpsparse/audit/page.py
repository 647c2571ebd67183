"""One self-contained HTML page about an audit; nothing on it comes from outside."""

from __future__ import annotations

import math
from html import escape

from dpsparse._checks import show_number
from dpsparse._html import page as whole_page
from dpsparse.audit.verdict import Row, Verdict

_WHAT = {
    "replay": "the same released history on neighbouring tables, compared at every mechanism",
    "rebuild": "the run again without its rows, from what it released: everything it shows is the same",
    "noise": "whether the noise that was drawn follows its declared law",
    "exact law": "exact likelihood ratios of whole histories: the privacy profile",
    "black box": "published models only, counted on two neighbouring tables",
}


def page(verdict: Verdict) -> str:
    """The page as text."""
    word, kind = ("not refuted", "good") if verdict.holds else ("REFUTED", "bad")
    rows = "\n".join(_row(row) for row in verdict.rows)
    title = f"Audit of {verdict.method}"
    body = f"""<h1>{escape(title)}</h1>
<p>Claim: epsilon = {verdict.claimed:g} at delta = {show_number(verdict.delta)}, {escape(verdict.adjacency)},
calibration {escape(verdict.calibration)}. Verdict: <span class="tag {kind}">{word}</span>.</p>
<table><caption hidden>Attacks and what they refute</caption>
<thead><tr><th scope="col">attack, and what it saw</th><th scope="col" class="n">refutes</th>
<th scope="col">verdict</th></tr></thead>
<tbody>
{rows}
</tbody></table>
<p>An epsilon is refuted if it is below the number in the second column, with confidence
{100 * verdict.confidence:g} %. "Holds" says that these attacks found nothing, not that nothing is
there: the proof is the guarantee, the audit is a check of the proof and of the code. Infinity
means that the proof itself fails: a sensitivity, a count or a law.</p>
"""
    return whole_page(title, body)


def _row(row: Row) -> str:
    refuted = "infinity" if math.isinf(row.refuted) else f"{row.refuted:.4g}"
    return (
        f"<tr><td><b>{escape(row.attack)}</b>: {escape(_WHAT[row.attack])}<br><small>{escape(row.detail)}</small></td>"
        f'<td class="n">{refuted}</td>'
        f'<td><span class="tag {"good" if row.holds else "bad"}">{escape(row.verdict)}</span></td></tr>'
    )
