"""The base of every HTML page, and templates of this package filled in; these need jinja2."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from dpsparse._checks import rounded_up, show_name
from dpsparse._json import readable
from dpsparse.accounting.guarantee import show
from dpsparse.exceptions import DPSparseError


def page(title: str, body: str) -> str:
    """A whole page around an HTML `body`, whose values were escaped where they were put in. page.html has head and
    style; nothing on a page comes from outside."""
    base = Template(files(__package__).joinpath("page.html").read_text("utf-8"))
    return base.substitute(title=escape(title), body=body.strip())


def filled(name: str, **values: Any) -> str:
    """The template of that name with every value escaped; a value that is missing is an error."""
    try:
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise DPSparseError(
            "Cards and reports need jinja2: pip install 'dpsparse[cli]'."
        ) from error
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)

    def quoted(value: str) -> Markup:
        """A text of YAML that a person reads and edits: letters stay letters, and apostrophes apostrophes."""
        return Markup(show_name(readable(value)))

    environment.filters |= {"show": show, "rounded_up": rounded_up}
    environment.filters["quoted"] = quoted
    text = files(__package__).joinpath(f"{name}.j2").read_text("utf-8")
    return environment.from_string(text).render(**values)
