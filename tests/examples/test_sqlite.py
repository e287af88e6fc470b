"""The header of SQLite databases as an example declares it, against Python's sqlite3."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

import wirekit
from examples.sqlite import PROTOCOL
from tests.agreement.law import agree
from tests.own import declared


@pytest.fixture(autouse=True, scope="module")
def _registered() -> Iterator[None]:
    with declared(PROTOCOL):
        yield


def database(path: Path, *statements: str) -> bytes:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path.read_bytes()


def test_a_database_begins_as_the_layout_says(tmp_path: Path) -> None:
    data = database(
        tmp_path / "one",
        "PRAGMA page_size = 1024",
        "PRAGMA encoding = 'UTF-16le'",
        "PRAGMA user_version = 7",
        "PRAGMA application_id = -3",
        "CREATE TABLE t (a)",
        "CREATE INDEX i ON t (a)",
    )
    decoded = agree("sqlite.file", data, {})
    header, page = decoded.value.header, decoded.value.schema_page
    assert (header.page_size, header.text_encoding.symbol, header.user_version) == (1024, "UTF_16LE", 7)
    assert (header.application_id, header.page_count) == (-3, len(data) // 1024)
    assert header.sqlite_version == int("{:d}{:03d}{:03d}".format(*sqlite3.sqlite_version_info))
    assert (page.type.symbol, page.cells) == ("LEAF_TABLE", 2)
    assert all(place >= page.content_start for place in page.cell_pointers)


def test_a_page_with_pages_below_it(tmp_path: Path) -> None:
    many = [f"CREATE TABLE t{number} ({', '.join(f'column{at}' for at in range(20))})" for number in range(9)]
    page = agree("sqlite.file", database(tmp_path / "one", "PRAGMA page_size = 512", *many), {}).value.schema_page
    assert page.type.symbol == "INTERIOR_TABLE"
    assert page.right_most_page > 1


def test_a_header_that_was_built_is_one_for_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "one"
    data = database(path, "CREATE TABLE t (a)")
    value = wirekit.decode(data, "sqlite.header").value
    value.user_version = 1234
    path.write_bytes(wirekit.encode("sqlite.header", value) + data[100:])
    assert sqlite3.connect(path).execute("PRAGMA user_version").fetchone() == (1234,)


def test_columns_of_many_headers(tmp_path: Path) -> None:
    headers = [database(tmp_path / str(at), f"PRAGMA user_version = {at}")[:100] for at in range(1, 4)]
    batch = wirekit.columns("sqlite.header", b"".join(headers))
    assert batch["user_version"].to_pylist() == [1, 2, 3]
