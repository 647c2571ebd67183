"""Templates of this package filled in; they need jinja2, the pages around them do not."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from dpsparse._checks import rounded_up
from dpsparse.accounting.html import show
from dpsparse.exceptions import DPSparseError


def filled(name: str, **values: Any) -> str:
    """The template of that name with every value escaped; a value that is missing is an error."""
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError as error:
        raise DPSparseError(
            "Cards and reports need jinja2: pip install 'dpsparse[cli]'."
        ) from error
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters |= {"show": show, "rounded_up": rounded_up}
    text = files(__package__).joinpath(f"{name}.j2").read_text("utf-8")
    return environment.from_string(text).render(**values)
