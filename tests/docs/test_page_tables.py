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
    assert [row[:2] for row in rows[1:]] == [(each.tool, each.what) for each in ALL]
    assert len(ALL) >= 52
    assert not [row for row in rows if row[2].startswith("fails")]
