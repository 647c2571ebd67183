"""Public names, texts and numbers as people read them: what a name holds is shown and never obeyed.

Column names and labels come from files. A terminal obeys control characters in them (colours, cursor, title), and a
line break would begin a line that looks like one of ours.
"""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Context


def show_name(name: object) -> str:
    """A public name on one line; what is not printable is written as \\u001b, as in JSON."""
    return "".join(c if c.isprintable() else _escaped(c) for c in str(name))


def show_text(text: str) -> str:
    """A text whose line breaks are its own; everything else as in `show_name`. JSON stays the same JSON."""
    return "\n".join(map(show_name, text.split("\n")))


def _escaped(character: str) -> str:
    halves = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{halves[i : i + 4]}" for i in range(0, len(halves), 4))


def show_number(value: float, digits: int = 6) -> str:
    """A number in few digits: 1 rather than 1.0, 1e-6 rather than 1e-06."""
    return _plain_digits(f"{value:.{digits}g}")


def rounded_up(value: float, digits: int = 6) -> str:
    """A number of a promise in few digits, rounded up: what is printed never understates a loss."""
    if len(repr(value)) > digits + 2:
        value = float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(value))
    return _plain_digits(repr(value))


def _plain_digits(text: str) -> str:
    return re.sub(r"e([+-])0*", lambda sign: f"e{sign[1].strip('+')}", text.removesuffix(".0"))
