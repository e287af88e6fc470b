"""``docs/tables.md`` and the schemas say the same, and every reader can take the types."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import FIXTURES
from wirekit.tables.columns import OUTPUTS, TABLES

PAGE = (FIXTURES.parent / "docs" / "tables.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", TABLES)
def test_the_page_describes_every_column(name: str) -> None:
    section = PAGE.partition(f"\n## {name}\n\n")[2].partition("\n## ")[0]
    assert section.startswith(TABLES[name].text)
    described = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+) \|$", section, re.MULTILINE)
    assert described == [(column.name, column.type, column.text) for column in TABLES[name].columns]
    if name in OUTPUTS:
        assert f"in the order of {', '.join(f'`{key}`' for key in TABLES[name].sort)}.\n" in section


def test_the_page_names_every_table() -> None:
    listed = PAGE.partition("\n## ")[0]
    assert re.findall(r"^\| \[?`(\w+)`", listed, re.MULTILINE) == [*OUTPUTS, "commits", "state"]
    assert Path(FIXTURES.parent, "docs", "tables.md").read_text(encoding="utf-8").endswith("\n")
