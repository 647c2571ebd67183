"""Public names and texts for a terminal: what a name holds is shown and never obeyed.

Column names and labels come from files. A terminal obeys control characters in them (colours, cursor, title), and a
line break would begin a line that looks like one of ours.
"""

from __future__ import annotations


def show_name(name: object) -> str:
    """A public name on one line; what is not printable is written as \\u001b, as in JSON."""
    return "".join(c if c.isprintable() else _escaped(c) for c in str(name))


def show_text(text: str) -> str:
    """A text whose line breaks are its own; everything else as in `show_name`. JSON stays the same JSON."""
    return "\n".join(map(show_name, text.split("\n")))


def _escaped(character: str) -> str:
    halves = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{halves[i : i + 4]}" for i in range(0, len(halves), 4))
