"""Tables of pages are those of the files that commands write."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_table_of_speed_is_that_of_the_benchmark():
    page = (ROOT / "docs/leaderboard.md").read_text("utf-8")
    shown = dict(re.findall(r"^\| (.+?) \| .+? \| ([\d.]+) \|$", page, re.MULTILINE))
    measured = json.loads((ROOT / "experiments/lab/ratios.json").read_text("utf-8"))
    assert shown == {name: f"{value:g}" for name, value in measured.items()}


def test_the_table_of_integrations_lists_all_of_them_and_none_fails():
    from integrations.__main__ import ALL, TABLE

    page = (ROOT / "docs/other_tools.md").read_text("utf-8")
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \|$", TABLE.search(page)[0], re.MULTILINE)
    assert [row[:2] for row in rows[1:]] == [(each.tool, each.what) for each in ALL]
    assert len(ALL) >= 52
    assert not [row for row in rows if row[2].startswith("fails")]
