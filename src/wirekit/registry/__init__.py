"""The registry of protocols and schemas; parsing, building and every tool look layouts up here by key.

A protocol is registered with one line, ``wirekit.register(PROTOCOL)``, or by a package that names it as an entry
point of the group ``wirekit.protocols``. A protocol of wirekit itself is imported when one of its keys is first
requested, so that the use of one protocol does not load the others.
"""

from wirekit.registry.checks import check_declaration
from wirekit.registry.declarations import Beginning, Layout, Note, Protocol, load_object
from wirekit.registry.lookup import BUILT_IN, OF_YOUR_OWN, WITHOUT_STREAM, Registry, register, registry, variants
from wirekit.registry.packages import ENTRY_POINTS
from wirekit.registry.schema import Schema

__all__ = [
    "BUILT_IN",
    "ENTRY_POINTS",
    "OF_YOUR_OWN",
    "WITHOUT_STREAM",
    "Beginning",
    "Layout",
    "Note",
    "Protocol",
    "Registry",
    "Schema",
    "check_declaration",
    "load_object",
    "register",
    "registry",
    "variants",
]
