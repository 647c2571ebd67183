"""The one base of every HTML page: page.html has head and style, nothing on a page comes from outside."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from string import Template


def page(title: str, body: str) -> str:
    """A whole page around an HTML `body`, whose values were escaped where they were put in."""
    base = Template(files(__package__).joinpath("page.html").read_text("utf-8"))
    return base.substitute(title=escape(title), body=body.strip())
