"""Tables of pages are those of the files that commands write."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_tables_are_those_of_the_rows():
    """`dpsparse lab pages` writes them."""
    from lab.pages import TABLES, pages

    for path, before, after in pages():
        assert after == before, f"{path.name} differs from its rows: run dpsparse lab pages"
        assert all(before.count(f"<!-- {table} -->") == 1 for table in TABLES[path.stem])


def test_the_table_of_integrations_lists_all_of_them_and_none_fails():
    from integrations.__main__ import ALL, TABLE

    page = (ROOT / "docs/other_tools.md").read_text("utf-8")
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \|$", TABLE.search(page)[0], re.MULTILINE)
    listed = [(tool, what) for tool, several, _ in rows[1:] for what in several.split("; ")]
    assert sorted(listed) == sorted((each.tool, each.what) for each in ALL)
    assert len(ALL) >= 52
    assert not [row for row in rows if row[2].startswith("fails")]


def test_the_matches_of_the_readme_are_those_of_the_book():
    book = (ROOT / "experiments/book/reproduction.md").read_text("utf-8")
    matches = re.search(
        r"(\d+) of (\d+) as printed, (\d+) of (\d+) under .*?, (\d+) of (\d+) by construction", book
    )
    single = re.search(r"(\d+) of the matches as printed, (\d+) of the matches under", book)
    assert matches is not None
    assert single is not None
    found = list(
        zip(matches.groups()[1::2], matches.groups()[::2], [*single.groups(), "-"], strict=True)
    )
    readme = (ROOT / "README.md").read_text("utf-8")
    assert re.findall(r"^\| .+? \| (\d+) \| (\d+) \| ([\d-]+) \|$", readme, re.MULTILINE) == found
