"""Build sdist and wheel, check them, and use the wheel in a clean environment of every Python that can be found.

python .ci/check_wheel.py [--all-pythons]

In each environment: `pip install dpsparse.whl` alone gives a Python API that fits; without the extra the command
says what to install;
with `[cli]` the command helps, fits, and reports. Code and commands of README.md run from the installed wheel.

This interpreter uses the wheel with machine code (`hatch_build.py`): its first fits must not compile, and they give the
bits of code that Numba compiled here. The pure wheel has the same files but for the machine code; other interpreters
use that one. Every stage says what it took, in seconds of processor time, which do not depend on who else uses the
machine. With --all-pythons Numba's code is compiled anew, to say how long a user waits without machine code.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parents[1]
# Without bytecode, which takes long to make and is hardly read here.
INSTALL = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
SMOKE = """
import dpsparse, time
start = time.perf_counter()
from dpsparse import Domain, DPGradientClassifier, DPLassoClassifier, proofs, save, load
from dpsparse.datasets import make_sparse_classification
X, y = make_sparse_classification(n_samples=2000, n_features=500, seed=0)
from numba.core import event
recorder = event.install_recorder("numba:compile")
compiled = recorder.__enter__()
for kind in (DPGradientClassifier, DPLassoClassifier):
    model = kind(Domain(classes=[0, 1], n_samples=2000), epsilon=2.0).fit(X, y)
    assert model.privacy_.proven and proofs.read(model.privacy_.source).startswith("#")
save(model, "model.json", overwrite=True)
assert (load("model.json").predict(X) == model.predict(X)).all()
assert "site-packages" in dpsparse.__file__, dpsparse.__file__
print(f"  fit, save and load in {time.perf_counter() - start:.1f} s; functions compiled: {len(compiled.buffer) // 2}")
"""


# Seconds of import and of a first fit, kernels compiled meanwhile, and the bits of two models.
FIRST = """
import time; start = time.process_time()
import numpy as np; from numba.core import event
from dpsparse import Domain, DPGradientClassifier, DPLassoClassifier
X = np.random.default_rng(0).uniform(-1, 1, (300, 20))
with event.install_recorder("numba:compile") as compiled:
    for kind in (DPLassoClassifier, DPGradientClassifier):
        began = time.process_time()
        model = kind(Domain(classes=[0, 1], n_samples=300), random_state=1).fit(X, (X[:, 0] > 0) * 1)
        print(kind.__name__, "first fit %.2f s," % (time.process_time() - began), "before it %.2f s" % (began - start))
        print("bits", model.coef_.tobytes().hex())
print("compiled", len(compiled.buffer))
"""


# All that a process does until it has its first model.
WARM = """
import numpy as np; from dpsparse import Domain, {name}
X = np.random.default_rng(0).uniform(-1, 1, (300, 20))
{name}(Domain(classes=[0, 1], n_samples=300)).fit(X, (X[:, 0] > 0) * 1)
"""


@contextmanager
def stage(name: str) -> Iterator[None]:
    def used() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return children.ru_utime + children.ru_stime

    before = used()
    yield
    print(f"  [{name}: {used() - before:.0f} s]", flush=True)


def run(*command: object, cwd: Path, expect: int = 0, **env: str) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    if done.returncode != expect:
        sys.exit(
            f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}\nexit code {done.returncode}, not {expect}"
        )
    return done.stdout + done.stderr


def least_seconds(*command: object, cwd: Path) -> float:
    """Of wall time: the less of two runs after a first."""
    walls = []
    for _ in range(3):
        start = time.perf_counter()
        run(*command, cwd=cwd)
        walls.append(time.perf_counter() - start)
    return min(walls[1:])


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
            timeout=60,
        ).stdout.split()
        if text and tuple(map(int, text)) >= (3, 11):
            found.setdefault(tuple(map(int, text)), python)
    return [found[version] for version in sorted(found)]


def write_people(path: Path, seed: int) -> None:
    """A table that README.md speaks of: numbers on different scales, words, missing values, a label."""
    rng = random.Random(seed)
    lines = ["age,dose,ward,label"]
    for _ in range(2_000):
        age = rng.randint(18, 95)
        ill = "yes" if rng.random() < age / 100 else "no"
        lines.append(f"{age},{rng.choice(['', '1.5', '2'])},{rng.choice('ABC')},{ill}")
    path.write_text("\n".join(lines) + "\n")


def use(python: str, wheel: Path, place: Path, whole: bool) -> None:
    env = place / "venv"
    run(python, "-m", "venv", env, cwd=place)
    pip = [env / "bin" / "python", *INSTALL]
    with stage("install"):
        run(*pip, wheel, cwd=place)
    timed = "import time; t = time.perf_counter(); import dpsparse; print(time.perf_counter() - t)"
    run(env / "bin" / "python", "-c", "import dpsparse, sklearn, numba, scipy.stats", cwd=place)
    seconds = min(float(run(env / "bin" / "python", "-c", timed, cwd=place)) for _ in range(3))
    print(f"  import dpsparse: {seconds:.3f} s")
    smoke = (
        SMOKE if whole else SMOKE.replace(", DPLassoClassifier):", ",):")
    )  # its kernel compiles longest
    with stage("first fits"):
        print(run(env / "bin" / "python", "-c", smoke, cwd=place).rstrip())
    for name in ("DPLassoClassifier", "DPGradientClassifier"):
        seconds = least_seconds(env / "bin" / "python", "-c", WARM.format(name=name), cwd=place)
        print(f"  a process has its first {name} after {seconds:.2f} s")
    refusal = run(env / "bin" / "dpsparse", "--help", cwd=place, expect=2)
    assert "dpsparse[cli]" in refusal, refusal
    with stage("install [cli]"):
        run(*pip, f"{wheel}[cli]", cwd=place)
    assert "Exit codes" in run(env / "bin" / "dpsparse", "--help", cwd=place)
    assert "Lemma" in run(env / "bin" / "dpsparse", "proof", "counts", cwd=place)
    run(env / "bin" / "dpsparse", "report", "model.json", "-o", "card.html", cwd=place)
    if whole:
        readme = (ROOT / "README.md").read_text("utf-8")
        with stage("code of README.md"):
            for code in re.findall(r"```python\n(.*?)```", readme, re.DOTALL):
                run(env / "bin" / "python", "-c", code, cwd=place)
        people = place / "people"  # a folder of its own: no command overwrites a model
        people.mkdir()
        write_people(people / "people.csv", seed=0)
        write_people(people / "others.csv", seed=1)
        (commands,) = re.findall(r"```\n(dpsparse check.*?)```", readme, re.DOTALL)
        start = time.perf_counter()
        with stage("commands of README.md"):
            for command in commands.strip().splitlines():
                run(env / "bin" / "dpsparse", *command.split()[1:], cwd=people)
        seconds = time.perf_counter() - start
        print(f"  its commands, budget to card, took {seconds:.0f} s")


def first_fits(python: Path, place: Path, **env: str) -> list[str]:
    """The bits of two models, and how many functions were compiled for them."""
    lines = run(python, "-c", FIRST, cwd=place, **env).splitlines()
    print(*(f"  {line}" for line in lines if "first fit" in line), sep="\n")
    return [line for line in lines if line.startswith(("compiled", "bits"))]


def files(wheel: Path) -> dict[str, int]:
    """Check sums of what a wheel installs, without machine code and what describes the wheel itself."""
    with ZipFile(wheel) as archive:
        return {
            one.filename: one.CRC
            for one in archive.infolist()
            if ".dist-info/" not in one.filename and "/_ahead" not in one.filename
        }


def compare(compiled: Path, pure: Path, place: Path, anew: bool) -> None:
    """Machine code of the wheel is used, is all that it adds, and gives the bits of the compiler of this machine."""
    assert files(compiled) == files(pure)
    with tempfile.TemporaryDirectory() as cache:
        *bits, count = first_fits(place / "venv" / "bin" / "python", place, NUMBA_CACHE_DIR=cache)
        assert count == "compiled 0", count
        print("  without machine code:")
        kept = {"NUMBA_CACHE_DIR": cache} if anew else {}  # else what the tests have compiled
        *ours, _ = first_fits(Path(sys.executable), place, DPSPARSE_AHEAD="0", **kept)
    assert bits == ours


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--all-pythons", action="store_true")
    every = parser.parse_args().all_pythons
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        dist = Path(folder) / "dist"
        build = [sys.executable, "-m", "build", "--outdir", dist, ROOT]
        with stage("sdist and pure wheel"):
            run(*build, cwd=ROOT, DPSPARSE_COMPILE="0")
        (pure,) = dist.glob("*.whl")
        # With the packages of this environment: the isolated build above has shown that what it states is enough, and
        # a second one would only install NumPy to Numba once more.
        with stage("wheel with machine code"):
            run(*build, "--wheel", "--no-isolation", cwd=ROOT, DPSPARSE_COMPILE="1")
        (compiled,) = set(dist.glob("*.whl")) - {pure}
        run(sys.executable, "-m", "twine", "check", "--strict", *dist.iterdir(), cwd=ROOT)
        for wheel in (pure, compiled):
            print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB")
        for i, python in enumerate(pythons(every)):
            place = Path(folder) / f"use{i}"
            place.mkdir()
            print(run(python, "--version", cwd=place).strip())
            own = python == sys.executable
            use(python, compiled if own else pure, place, whole=i == 0)
            if own:
                with stage("compiled and pure wheel compared"):
                    compare(compiled, pure, place, anew=every)
    print(f"sdist and wheel are in order ({time.perf_counter() - start:.0f} s)")


if __name__ == "__main__":
    main()
