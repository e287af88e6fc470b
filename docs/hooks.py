"""What mkdocs does to a page before it is rendered: pages that include a file of the repository get its text.

``<!-- include: CHANGELOG.md -->`` stands for the file. Its links are made relative to the page; those that lead to
files outside the documentation become plain text.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
INCLUDE = re.compile(r"<!-- include: (\S+) -->")
LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|#)([^)#\s]+)(#[^)]*)?\)")
PLACES = {
    "CHANGELOG.md": "explanation/changes.md",
    "SECURITY.md": "explanation/security.md",
    "README.md": "index.md",
    "fixtures/README.md": "explanation/fixtures.md",
    **{f"schemas/{name}/NOTES.md": f"explanation/{page}.md" for name, page in
       (("kafka", "kafka"), ("pulsar", "pulsar"), ("jmq4", "jmq4"), ("net", "captures"))},
}  # fmt: skip
"""{file of the repository: the page that includes it}."""


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The text of a page."""
    here = posixpath.dirname(page.file.src_uri)

    def included(match: re.Match[str]) -> str:
        text = (ROOT / match[1]).read_text(encoding="utf-8")
        return LINK.sub(lambda link: _link(link, posixpath.dirname(match[1]), here), text)

    markdown = LINK.sub(lambda link: _link(link, posixpath.join("docs", here), here), markdown)
    return INCLUDE.sub(included, markdown)


def _link(link: re.Match[str], folder: str, here: str) -> str:
    target = posixpath.normpath(posixpath.join(folder, link[2]))
    page = PLACES.get(target) or (target.removeprefix("docs/") if target.startswith("docs/") else "")
    if not page or not (ROOT / "docs" / page).exists():
        return link[1] if (ROOT / target).exists() else link[0]
    return f"[{link[1]}]({posixpath.relpath(page, here or '.')}{link[3] or ''})"
