"""``docs/tables.md`` and the schemas say the same, and every reader can take the types."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import FIXTURES
from wirekit.pipeline.tables import OUTPUTS, TABLES

PAGE = (FIXTURES.parent / "docs" / "tables.md").read_text(encoding="utf-8")
TYPES = {
    "int": "int32",
    "bigint": "int64",
    "string": "string",
    "binary": "binary",
    "boolean": "bool",
    "timestamp (µs, UTC)": "timestamp[us, tz=UTC]",
    "timestamp (ms, UTC)": "timestamp[ms, tz=UTC]",
}


@pytest.mark.parametrize("name", TABLES)
def test_the_page_describes_every_column(name: str) -> None:
    section = PAGE.partition(f"\n## {name}\n\n")[2].partition("\n## ")[0]
    assert section.startswith(TABLES[name].text)
    described = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+) \|$", section, re.MULTILINE)
    columns = [(column.name, str(column.type), column.text) for column in TABLES[name].columns]
    assert [(column, TYPES[kind], text) for column, kind, text in described] == columns


def test_the_page_names_every_table() -> None:
    assert re.findall(r"^DIR/(\w+)/", PAGE, re.MULTILINE) == list(OUTPUTS)
    assert Path(FIXTURES.parent, "docs", "tables.md").read_text(encoding="utf-8").endswith("\n")
