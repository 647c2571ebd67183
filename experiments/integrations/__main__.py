"""The command; see the package."""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import re
import subprocess
import sys
import tempfile
import venv
import warnings
from pathlib import Path
from typing import NamedTuple

from integrations import learn, recipes, tables, tools  # noqa: F401  (they fill the list)
from integrations.registry import ALL, ENVIRONMENTS, Integration

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "other_tools.md"
TABLE = re.compile(r"(<!-- integrations -->\n).*?(<!-- end of integrations -->)", re.DOTALL)
MINUTES = 10  # for one integration
MARK = "integration "  # before a line of results: a tool may print lines of its own


class Result(NamedTuple):
    """Whether an integration passed, and the sentence that a user sees."""

    passed: bool
    sentence: str


def main() -> int:
    """Run, print, and write where asked; the exit code says whether something failed."""
    parser = argparse.ArgumentParser(prog="python -m integrations", description=__doc__)
    parser.add_argument("words", nargs="*", help="run those whose name holds one of these words")
    parser.add_argument(
        "--write", action="store_true", help="write the table of docs/other_tools.md"
    )
    parser.add_argument(
        "--folder", type=Path, default=ROOT / ".venv-integrations", help="of environments"
    )
    parser.add_argument(
        "--python", help="one interpreter that has everything, instead of environments"
    )
    parser.add_argument("--here", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here is not None:
        return run_here(options.here)
    words = [word.lower() for word in options.words]
    chosen = [each for each in ALL if not words or any(w in each.name.lower() for w in words)]
    results: dict[str, Result] = {}
    for name in ENVIRONMENTS:
        waiting = [each.name for each in chosen if each.environment == name]
        if waiting:
            python = options.python or environment(options.folder, name)
            results |= run_in(python, waiting)
    failures = sum(not result.passed for result in results.values())
    print(f"{len(results) - failures} of {len(results)} passed")
    if options.write:
        write([(each, results[each.name]) for each in chosen])
    return int(failures > 0)


def environment(folder: Path, name: str) -> str:
    """The interpreter of an environment of its own, made where it is missing."""
    home = folder / name
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not (home / "complete").exists():
        venv.create(home, with_pip=True, clear=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-e", str(ROOT), *ENVIRONMENTS[name]], check=True)
        (home / "complete").touch()
    return str(python)


def run_in(python: str, waiting: list[str]) -> dict[str, Result]:
    """All of an environment, one after the other in one process; if it dies, the rest in a new one."""
    path = os.pathsep.join(str(ROOT / folder) for folder in ("src", "experiments"))
    settings = {
        "PYTHONPATH": path,
        "MPLBACKEND": "agg",
        "NUMBA_CACHE_DIR": str(Path(python).parent / "numba"),
    }
    results: dict[str, Result] = {}
    while len(results) < len(waiting):
        rest = waiting[len(results) :]
        child = subprocess.Popen(
            [python, "-m", "integrations", "--here", *rest],
            env={**os.environ, **settings}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert child.stdout is not None
        for line in child.stdout:
            if line.startswith(MARK):
                add(results, *json.loads(line[len(MARK) :]))
        child.wait()
        if len(results) < len(waiting):
            add(results, waiting[len(results)], False, f"the process ended ({child.returncode})")
    return results


def add(results: dict[str, Result], name: str, passed: bool, sentence: str) -> None:
    results[name] = Result(passed, sentence)
    print(f"{'passed' if passed else 'FAILED'}  {name}: {sentence}", flush=True)


def run_here(names: list[str]) -> int:
    """In the environment: run these, and print a line for each."""
    warnings.simplefilter("ignore")  # seeded and unpaid fits on purpose
    os.chdir(tempfile.mkdtemp())  # tools leave files where they run
    by_name = {each.name: each for each in ALL}
    for name in names:
        faulthandler.dump_traceback_later(60 * MINUTES, exit=True)
        try:
            result = Result(True, by_name[name].run() or "")
        except Exception as error:
            result = Result(False, f"{type(error).__name__}: {error}".splitlines()[0])
        faulthandler.cancel_dump_traceback_later()
        print(MARK + json.dumps([name, result.passed, result.sentence]), flush=True)
    return 0


def write(results: list[tuple[Integration, Result]]) -> None:
    """One row for what is done with a tool and has the same result."""
    done: dict[tuple[str, str], list[str]] = {}
    for each, (passed, sentence) in results:
        shown = " ".join(sentence.replace("|", "\\|").split())
        shown = (shown or "works") if passed else f"fails: {shown}"
        done.setdefault((each.tool, shown), []).append(each.what)
    rows = ["| tool | what is done | result |", "|---|---|---|"]
    for (tool, shown), what in done.items():
        rows.append(f"| {tool} | {'; '.join(what)} | {shown} |")
    text = PAGE.read_text("utf-8")
    PAGE.write_text(
        TABLE.sub(lambda found: found[1] + "\n".join(rows) + "\n" + found[2], text), "utf-8"
    )


if __name__ == "__main__":
    sys.exit(main())
