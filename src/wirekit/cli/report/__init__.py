"""``wirekit inspect --report``: one HTML page about captures, which needs no network and no other file.

``Report`` takes the items of captures, and ``write`` writes the page: a template with style and script, and the data,
compressed in a block that browsers do not parse. The size of a page is bounded: it has a sample of the frames of a
large capture, and says so. Application data and secrets are included only on request.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import zlib
from importlib.resources import files
from typing import Any

from wirekit.cli.report.collecting import Report
from wirekit.values import printable

__all__ = ["Report", "write"]

LEVEL = 9


def write(report: Report, path: str, title: str) -> None:
    """Writes the page.

    Args:
        report: the collected content.
        path: the file to write.
        title: the title of the page.
    """
    text = page(report.to_json(), title)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def page(data: dict[str, Any], title: str) -> str:
    """The page as text. All data is base64 in the page, and the script puts it into text nodes only."""
    assets = files("wirekit.cli.report")
    style, script, frame = (assets.joinpath(f"page.{kind}").read_text("utf-8") for kind in ("css", "js", "html"))
    compressed = base64.b64encode(zlib.compress(json.dumps(data, separators=(",", ":")).encode(), LEVEL)).decode()
    parts = {
        "TITLE": html.escape(printable(title)),
        "STYLE": style,
        "SCRIPT": script,
        "DATA": compressed,
        "STYLE_HASH": _hash(style),
        "SCRIPT_HASH": _hash(script),
    }
    pieces = frame.split("%%")
    return "".join(parts[piece] if number % 2 else piece for number, piece in enumerate(pieces))


def _hash(text: str) -> str:
    """A hash for the page's content security policy."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
