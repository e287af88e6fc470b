"""The header of an SQLite database, and that of the b-tree on its first page. NOTES.md has the sources."""

from __future__ import annotations

from wirekit.registry import Layout, Protocol
from wirekit.values import SymbolTable
from wirekit.wire import (
    Bytes,
    Const,
    If,
    Padding,
    Repeat,
    Struct,
    Symbols,
    int32,
    this,
    uint8,
    uint16,
    uint32,
)

MAGIC = b"SQLite format 3\0"
FORMATS = SymbolTable("format", {1: "LEGACY", 2: "WAL"})
SCHEMA_FORMATS = SymbolTable("schema_format", {0: "EMPTY", 1: "FIRST", 2: "ADDED_COLUMNS", 3: "DEFAULTS", 4: "DESC"})
ENCODINGS = SymbolTable("encoding", {0: "NONE_YET", 1: "UTF_8", 2: "UTF_16LE", 3: "UTF_16BE"})
PAGES = SymbolTable("page", {2: "INTERIOR_INDEX", 5: "INTERIOR_TABLE", 10: "LEAF_INDEX", 13: "LEAF_TABLE"})

HEADER = Struct(
    "magic" / Const(Bytes(16), MAGIC),
    "page_size" / uint16 * "a power of two from 512 on; 1 stands for 65536",
    "write_version" / Symbols(uint8, FORMATS),
    "read_version" / Symbols(uint8, FORMATS),
    "reserved_space" / uint8 * "bytes at the end of each page",
    "max_payload_fraction" / Const(uint8, 64),
    "min_payload_fraction" / Const(uint8, 32),
    "leaf_payload_fraction" / Const(uint8, 32),
    "change_counter" / uint32,
    "page_count" / uint32,
    "first_freelist_page" / uint32,
    "freelist_pages" / uint32,
    "schema_cookie" / uint32,
    "schema_format" / Symbols(uint32, SCHEMA_FORMATS),
    "cache_size" / int32 * "suggested; pages, or KiB if below 0",
    "largest_root_page" / uint32 * "0 without auto-vacuum",
    "text_encoding" / Symbols(uint32, ENCODINGS),
    "user_version" / int32,
    "incremental_vacuum" / uint32,
    "application_id" / int32,
    "reserved" / Padding(20),
    "version_valid_for" / uint32 * "the change counter when the next field was written",
    "sqlite_version" / uint32 * "of the library: X*1000000 + Y*1000 + Z",
    name="DatabaseHeader",
    doc="the first 100 bytes of a database",
)
PAGE = Struct(
    "type" / Symbols(uint8, PAGES, closed=True),
    "first_freeblock" / uint16,
    "cells" / uint16,
    "content_start" / uint16 * "0 stands for 65536",
    "fragmented_bytes" / uint8,
    "right_most_page" / If(this.type < 10, uint32),
    "cell_pointers" / Repeat(this.cells, uint16),
    name="PageHeader",
    doc="the header of a b-tree page, and where its cells are",
)
FILE = Struct("header" / HEADER, "schema_page" / PAGE, name="Database", doc="what a database begins with")

PROTOCOL = Protocol(
    "sqlite",
    "SQLite database files",
    {
        "header": Layout(HEADER, "the first 100 bytes", "fileformat2.html, 1.3"),
        "page": Layout(PAGE, "the header of a b-tree page", "fileformat2.html, 1.6"),
        "file": Layout(FILE, "what a database begins with", "fileformat2.html, 1.3 and 1.6"),
    },
)
