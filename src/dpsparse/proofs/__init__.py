"""The proof notes that guarantees name, shipped with the package: `read(model.privacy_.source)`.

In an installed package the notes lie beside this file; in a checkout they are the ones in docs/proofs.
"""

from __future__ import annotations

from pathlib import Path

from dpsparse.exceptions import ParameterError

__all__ = ["names", "read"]


def names() -> list[str]:
    """The names of all notes.

    Returns
    -------
    list of str
        Names that `read` takes, sorted.

    Examples
    --------
    >>> from dpsparse import proofs
    >>> "noisy_gradient" in proofs.names()
    True
    """
    return sorted(note.stem for note in _folder().glob("*.md") if note.stem != "index")


def read(source: str) -> str:
    """The text of a note, by its name or by the `source` of a guarantee.

    Parameters
    ----------
    source : str
        ``"noisy_gradient"``, or ``model.privacy_.source``.

    Returns
    -------
    str
        Markdown.

    Examples
    --------
    >>> from dpsparse import Domain, DPLassoClassifier, proofs
    >>> plan = DPLassoClassifier(Domain(classes=[0, 1])).plan(n_features=10)
    >>> print(proofs.read(plan.source).splitlines()[0])
    # Private Frank-Wolfe on the L1 ball
    """
    name = source.split(",")[0].strip().rsplit("/", 1)[-1].removesuffix(".md")
    if name not in names():
        raise ParameterError(f"There is no proof note {name!r}; there are: {', '.join(names())}.")
    return (_folder() / f"{name}.md").read_text("utf-8")


def _folder() -> Path:
    here = Path(__file__).parent
    return here if any(here.glob("*.md")) else here.parents[2] / "docs" / "proofs"
