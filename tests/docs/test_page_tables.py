"""Tables of pages are those of the files that commands write."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_table_of_speed_is_that_of_the_benchmark():
    page = (ROOT / "docs/benchmarks.md").read_text("utf-8")
    shown = dict(re.findall(r"^\| (.+?) \| .+? \| ([\d.]+) \|$", page, re.MULTILINE))
    measured = json.loads((ROOT / "experiments/lab/ratios.json").read_text("utf-8"))
    assert shown == {name: f"{value:g}" for name, value in measured.items()}
