"""Writes the pages of the documentation that are made from the code; `make pages` runs it.

``tests/docs/test_pages.py`` compares them with what stands in the repository.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from wirekit.exports import export
from wirekit.registry import BUILT_IN

HERE = Path(__file__).parent


def protocol_page(name: str) -> Callable[[], str]:
    """What writes the page of a protocol."""
    return lambda: export([name], "markdown").text


PAGES: dict[str, Callable[[], str]] = {f"protocols/{name}.md": protocol_page(name) for name in BUILT_IN}


def main() -> None:
    """Writes all pages."""
    for path, text in PAGES.items():
        (HERE / path).write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
