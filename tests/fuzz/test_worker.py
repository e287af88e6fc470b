"""What a worker answers for values that JSON does not have."""

from __future__ import annotations

import json

from wirekit.errors import Limit, Short
from wirekit.fuzz.worker import plain


def test_errors_are_answered_by_their_facts() -> None:
    short, limit = json.loads(json.dumps([Short(4, 2, path="size"), Limit("frame", 1, b"\2")], default=plain))
    place = {"protocol": "", "offset": None, "source": 0, "partial": None, "hint": "", "bounded": 0}
    assert short == place | {"path": "size", "needed": 4, "available": 2}
    assert limit == place | {"path": "", "limit": "frame", "allowed": 1, "actual": "02"}
