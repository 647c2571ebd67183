"""The public names and their parameters are a list; it changes in the same commit as CHANGELOG.md.

After a change on purpose: `python tests/golden/test_public_api.py` writes the list anew, and a line in
CHANGELOG.md says why (docs/project.md).
"""

import inspect
import subprocess
from importlib import import_module
from pathlib import Path

import pytest

import dpsparse

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).with_name("public_api.txt")
ROOMS = (
    "accounting", "audit", "datasets", "evaluation", "exceptions", "inference", "io", "ledger", "model_selection",
    "preprocessing", "proofs", "published", "report",
)  # fmt: skip


def public_names() -> list[str]:
    """One line per public name: the name, and the parameters it is called with."""
    lines = []
    for room in ("", *ROOMS):
        module = import_module(f"dpsparse.{room}" if room else "dpsparse")
        names = getattr(module, "__all__", None) or [
            n for n, v in vars(module).items() if isinstance(v, type)
        ]
        for name in names:
            what = getattr(module, name)
            call = ""
            if callable(what) and not (isinstance(what, type) and issubclass(what, BaseException)):
                call = (
                    f"({', '.join(p for p in inspect.signature(what).parameters if p[0] != '_')})"
                )
            lines.append(f"{room}{'.' if room else ''}{name}{call}")
    from dpsparse.cli.commands import program

    lines += [f"$ dpsparse {command}" for command in program.commands]
    return sorted(lines)


def test_public_names_are_those_of_the_list():
    now, listed = public_names(), LIST.read_text("utf-8").splitlines()
    added, gone = sorted(set(now) - set(listed)), sorted(set(listed) - set(now))
    assert (added, gone) == ([], []), (
        f"public names changed: added {added}, gone {gone}. If on purpose: run `python {LIST.parent.name}/"
        f"{Path(__file__).name}` in tests (with src on PYTHONPATH) and add a line to CHANGELOG.md in the same commit."
    )


def test_the_list_changes_only_with_the_changelog():
    def git(*arguments: str) -> str:
        try:
            done = subprocess.run(
                ["git", "-C", str(ROOT), *arguments],
                capture_output=True,
                text=True,
                check=True,
                timeout=300,
            )
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("not a git checkout")
        return done.stdout

    path = LIST.relative_to(ROOT).as_posix()
    pending = git("diff", "--name-only", "HEAD").split()
    if path in pending:
        assert "CHANGELOG.md" in pending, f"{path} is edited and CHANGELOG.md is not"
    commit = git("log", "-1", "--no-merges", "--format=%H", "--", path).strip()
    if commit:
        touched = git("show", "--name-only", "--format=", commit).split()
        assert "CHANGELOG.md" in touched, (
            f"{path} was changed without CHANGELOG.md in {commit[:10]}"
        )


def test_one_version():
    assert f"version: {dpsparse.__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"{{{dpsparse.__version__}}}" in (ROOT / "docs" / "project.md").read_text("utf-8")
    assert f"\n## {dpsparse.__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_type_checkers_are_told():
    assert (ROOT / "src" / "dpsparse" / "py.typed").exists()


if __name__ == "__main__":
    LIST.write_text("\n".join(public_names()) + "\n", "utf-8")
