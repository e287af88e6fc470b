"""Lines from columns are those that ``json_text`` makes of each row."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wirekit.errors import Misuse
from wirekit.values import json_text, to_json

pytest.importorskip("numba")
pa = pytest.importorskip("pyarrow")

from wirekit.compiler.columns import json_lines  # noqa: E402
from wirekit.compiler.columns.json_lines import lines  # noqa: E402

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
COLUMNS: dict[str, tuple[Any, Any]] = {
    "signed": (pa.int64(), st.integers(-(1 << 63), (1 << 63) - 1)),
    "unsigned": (pa.uint64(), st.integers(0, (1 << 64) - 1)),
    "byte": (pa.int8(), st.integers(-128, 127)),
    "flag": (pa.bool_(), st.booleans()),
    "raw": (pa.binary(), st.binary(max_size=70)),
    "large": (pa.large_binary(), st.binary(max_size=9)),
    "text": (pa.string(), TEXT),
    "name": (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["a", 'b"', "ü", ""])),
    "none": (pa.null(), st.none()),
}
SCHEMA = pa.schema([pa.field(name, kind) for name, (kind, _) in COLUMNS.items()])
ROW = st.fixed_dictionaries({name: st.none() | values for name, (_, values) in COLUMNS.items()})
FIXED = {"file": 'ü"\\\n\udcff', "partition": None, "number": 7}
FIELDS = ["file", *COLUMNS, "partition", "number"]


def expected(rows: list[dict[str, Any]]) -> bytes:
    objects = ({name: {**FIXED, **row}[name] for name in FIELDS} for row in rows)
    return "".join(f"{json_text(to_json(each))}\n" for each in objects).encode()


def written(batch: Any) -> bytes:
    return b"".join(bytes(part) for part in lines(batch, FIELDS, FIXED))


@settings(deadline=None, max_examples=60)
@given(rows=st.lists(ROW, max_size=6), skip=st.integers(0, 3))
def test_any_rows(rows: list[dict[str, Any]], skip: int) -> None:
    batch = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    assert written(batch) == expected(rows)
    assert written(batch.slice(skip)) == expected(rows[skip:])


def test_numbers_of_every_length() -> None:
    numbers = [sign * (10**power + by) for power in range(19) for by in (-1, 0, 1) for sign in (1, -1)]
    rows = [{**dict.fromkeys(COLUMNS), "signed": number, "unsigned": abs(number)} for number in numbers]
    rows.append({**dict.fromkeys(COLUMNS), "signed": -(1 << 63), "unsigned": (1 << 64) - 1})
    assert written(pa.RecordBatch.from_pylist(rows, schema=SCHEMA)) == expected(rows)


def test_every_character() -> None:
    """In front of, behind and between others, and where the text ends in the middle of one."""
    every = [chr(code) for code in range(0x11000) if not 0xD800 <= code < 0xE000]
    texts = ["".join(every), *(every[code] for code in range(0x2100)), "aé\x9b", "\u202e", "\u2066字\x85"]
    rows = [{**dict.fromkeys(COLUMNS), "text": text} for text in texts]
    text = written(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
    assert text == expected(rows)
    assert [json.loads(line)["text"] for line in text.decode().split("\n")[:-1]] == texts


def test_lines_larger_than_a_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "PIECE", 64)
    rows = [{**dict.fromkeys(COLUMNS), "raw": b"\xab" * size, "text": '"' * size} for size in (0, 3000, 1, 90_000, 2)]
    assert written(pa.RecordBatch.from_pylist(rows, schema=SCHEMA)) == expected(rows)


def test_a_column_that_cannot_be_written_is_misuse() -> None:
    batch = pa.RecordBatch.from_pydict({"real": [1.5]})
    with pytest.raises(Misuse, match="double"):
        list(lines(batch, ["real"], {}))
    with pytest.raises(Misuse, match="no column 'offset'"):
        list(lines(batch, ["offset"], {}))
