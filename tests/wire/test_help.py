"""``help(wirekit.wire)`` is a page that a person can read, and names every node."""

from __future__ import annotations

import pydoc
import re
from types import ModuleType

import wirekit
import wirekit.wire
from wirekit.wire import Integer

SIZES = r"u?int(24|32|40|48|56)|\w+le"  # written as a range on the page


def test_help_on_the_vocabulary_is_short() -> None:
    assert len(pydoc.plain(pydoc.render_doc(wirekit.wire)).splitlines()) < 200


def test_help_on_the_vocabulary_names_every_node() -> None:
    names = {
        name
        for name, value in vars(wirekit.wire).items()
        if not name.startswith("_") and not isinstance(value, ModuleType) and name != "annotations"
    }
    sizes = {name for name in names if isinstance(getattr(wirekit.wire, name), Integer) and re.fullmatch(SIZES, name)}
    assert names - sizes - set(re.findall(r"\w+", str(wirekit.wire.__doc__))) == set()


def test_help_on_the_package_names_every_function_and_class() -> None:
    assert set(wirekit.__all__) - set(re.findall(r"\w+", str(wirekit.__doc__))) == set()
