"""Writes vectors.json with kazoo, which wirekit does not depend on: ``pip install kazoo==2.11.0``, then run this."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

from kazoo.protocol import serialization as jute
from kazoo.security import ACL, Id

OPEN = [ACL(31, Id("world", "anyone"))]
STAT_JSON = {
    "czxid": 5,
    "mzxid": 7,
    "ctime": 1_700_000_000_123,
    "mtime": 1_700_000_000_456,
    "version": 1,
    "cversion": 2,
    "aversion": 0,
    "ephemeral_owner": 0x1000_0000_0001,
    "data_length": 3,
    "num_children": 0,
    "pzxid": 5,
}
STAT = tuple(STAT_JSON.values())
STAT_BYTES = jute.stat_struct.pack(*STAT)


def framed(data: bytes) -> str:
    """A frame as hexadecimal digits."""
    return (struct.pack("!i", len(data)) + data).hex()


def request(xid: int, record: Any, body: dict[str, Any]) -> dict[str, Any]:
    """A request as kazoo sends it (connection.py, ``_submit``)."""
    data = jute.int_int_struct.pack(xid, record.type) + bytes(record.serialize())
    return {"key": "request", "hex": framed(data), "reads": {"xid": xid, "type": record.type, "body": body}}


def response(xid: int, operation: str, record: Any, data: bytes, body: dict[str, Any], reads: Any) -> dict[str, Any]:
    """A response that kazoo reads (connection.py, ``_read_response``)."""
    assert record.deserialize(data, 0) == reads, record.deserialize(data, 0)
    whole = jute.reply_header_struct.pack(xid, 42, 0) + data
    header = {"xid": xid, "zxid": 42, "err": 0, "body": body}
    return {"key": "response", "context": {"operation": operation}, "hex": framed(whole), "reads": header}


def main() -> None:
    """Writes the file."""
    connect = jute.Connect(0, 7, 10_000, 0x1234, b"\0" * 16, False)
    acls = [{"perms": 31, "scheme": "world", "id": "anyone"}]
    text = jute.write_string("/brokers/ids/1")
    watch = jute.Watch(3, 3, "/a")
    event = jute.int_int_struct.pack(3, 3) + jute.write_string("/a")
    assert jute.Watch.deserialize(event, 0) == (watch, len(event))
    zookeeper_stat = jute.ZnodeStat._make(STAT)
    vectors = [
        {
            "key": "connect_request",
            "hex": framed(bytes(connect.serialize())),
            "reads": {"last_zxid_seen": 7, "time_out": 10_000, "session_id": 0x1234, "passwd": "00" * 16},
        },
        request(
            1,
            jute.Create("/brokers/ids/1", b'{"port":9092}', OPEN, 1),
            {"path": "/brokers/ids/1", "data": b'{"port":9092}'.hex(), "acl": acls, "flags": 1},
        ),
        request(2, jute.GetData("/controller", True), {"path": "/controller", "watch": True}),
        request(3, jute.SetData("/a", None, -1), {"path": "/a", "data": None, "version": -1}),
        request(4, jute.GetChildren2("/brokers/topics", False), {"path": "/brokers/topics", "watch": False}),
        request(5, jute.SetACL("/a", OPEN, 0), {"path": "/a", "acl": acls, "version": 0}),
        request(6, jute.Exists("/ä", False), {"path": "/ä"}),
        request(
            7,
            jute.Transaction([jute.Create("/a", b"x", OPEN, 0), jute.CheckVersion("/b", 3), jute.Delete("/c", 1)]),
            {
                "parts": [
                    {
                        "type": 1,
                        "done": False,
                        "err": -1,
                        "body": {"path": "/a", "data": "78", "acl": acls, "flags": 0},
                    },
                    {"type": 13, "body": {"path": "/b", "version": 3}},
                    {"type": 2, "body": {"path": "/c", "version": 1}},
                ]
            },
        ),
        request(8, jute.Transaction([]), {"parts": []}),
        request(-4, jute.Auth(0, "digest", "user:secret"), {"scheme": "digest", "auth": b"user:secret".hex()}),
        {"key": "request", "hex": framed(jute.int_int_struct.pack(-2, 11)), "reads": {"xid": -2, "body": None}},
        response(1, "create", jute.Create, text, {"path": "/brokers/ids/1"}, "/brokers/ids/1"),
        response(
            2,
            "getData",
            jute.GetData,
            jute.write_buffer(b"{}") + STAT_BYTES,
            {"data": "7b7d", "stat": STAT_JSON},
            (b"{}", zookeeper_stat),
        ),
        response(
            4,
            "getChildren2",
            jute.GetChildren2,
            struct.pack("!i", 2) + jute.write_string("a") + jute.write_string("b") + STAT_BYTES,
            {"children": ["a", "b"], "stat": STAT_JSON},
            (["a", "b"], zookeeper_stat),
        ),
        response(
            7,
            "multi",
            jute.Transaction,
            jute.multiheader_struct.pack(1, False, 0)
            + jute.write_string("/a")
            + jute.multiheader_struct.pack(13, False, 0)
            + jute.multiheader_struct.pack(-1, True, -1),
            {"parts": [{"type": 1, "err": 0, "body": {"path": "/a"}}, {"type": 13, "err": 0}]},
            ["/a", True],
        ),
        response(8, "multi", jute.Transaction, jute.multiheader_struct.pack(-1, True, -1), {"parts": []}, []),
        {
            "key": "response",
            "hex": framed(jute.reply_header_struct.pack(-1, -1, 0) + event),
            "reads": {"xid": -1, "zxid": -1, "body": {"type": 3, "state": 3, "path": "/a"}},
        },
        {
            "key": "response",
            "context": {"operation": "getData"},
            "hex": framed(jute.reply_header_struct.pack(9, 43, -101)),
            "reads": {"xid": 9, "err": -101, "body": None},
        },
    ]
    lines = ",\n".join(f"  {json.dumps(vector, ensure_ascii=False)}" for vector in vectors)
    Path(__file__).with_name("vectors.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
