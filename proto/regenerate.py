"""Generate the Python modules of this folder's ``.proto`` files: ``python -m wirekit.proto.regenerate [--check]``.

Needs grpcio-tools, which is a dependency of development only. protoc writes one thing into a module that depends on
protoc's own version: the oldest protobuf runtime that the module accepts. Left alone, that would make every user
install a runtime as new as the developer's compiler, and would change the files with every compiler. For these two
files protoc 28.1 and 35.1 write byte-identical modules but for that number. So the number of the oldest,
``RUNTIME``, is written, whichever one ran; the result was loaded on the runtimes 5.28.1, 5.29.6, 6.33.6 and 7.36.2.
A compiler that writes anything else is noticed: ``tests/pulsar/test_proto.py`` compares with the committed modules.
"""

from __future__ import annotations

import argparse
import keyword
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = "wirekit/proto"
"""Where protoc is told the files are, so that modules and messages carry the package's name."""

SOURCES = ("PulsarApi.proto", "PulsarMarkers.proto")
RUNTIME = (5, 28, 1)
"""The oldest protobuf runtime that the modules accept; the dependency in ``pyproject.toml`` says the same."""

_KEYWORDS = re.compile(rf"^ *(?:{'|'.join(keyword.kwlist)}): .*\n", re.MULTILINE)
_HEADER = re.compile(r"^# Protobuf Python Version: .*$", re.MULTILINE)
_GUARD = re.compile(r"(\.Domain\.PUBLIC,\n)\s+\d+,\n\s+\d+,\n\s+\d+,\n\s+'[^']*',\n")


def generate(target: Path) -> list[Path]:
    """Write the modules and their type stubs into the folder ``target``.

    Returns:
        The four files written: ``*_pb2.py`` and ``*_pb2.pyi`` for each source.

    Raises:
        RuntimeError: protoc refused a source (it says why on stderr), or wrote a module without the version guard.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [path.name for path in generate(Path(folder))]
        ['PulsarApi_pb2.py', 'PulsarApi_pb2.pyi', 'PulsarMarkers_pb2.py', 'PulsarMarkers_pb2.pyi']
    """
    from grpc_tools import protoc  # type: ignore[import-untyped,unused-ignore]

    written = []
    with tempfile.TemporaryDirectory() as scratch:
        arguments = [f"-I{PACKAGE}={HERE}", f"--python_out={scratch}", f"--pyi_out={scratch}"]
        status = protoc.main(["protoc", *arguments, *(f"{PACKAGE}/{source}" for source in SOURCES)])
        if status != 0:
            raise RuntimeError(f"protoc ended with status {status}")
        for source in SOURCES:
            for suffix in ("_pb2.py", "_pb2.pyi"):
                name = Path(source).stem + suffix
                text = (Path(scratch) / PACKAGE / name).read_text(encoding="utf-8")
                path = target / name
                text = _for_oldest_runtime(text) if suffix == "_pb2.py" else _without_keywords(text)
                path.write_text(text, encoding="utf-8")
                written.append(path)
    return written


def _for_oldest_runtime(text: str) -> str:
    version = ".".join(map(str, RUNTIME))
    text, headers = _HEADER.subn(f"# Protobuf Python Version: {version}", text)
    numbers = "".join(f"    {number},\n" for number in RUNTIME)
    text, guards = _GUARD.subn(rf"\g<1>{numbers}    '',\n", text)
    if (headers, guards) != (1, 1):
        raise RuntimeError("the generated module has no version guard where this script expects one; adapt the script")
    return text


def _without_keywords(stub: str) -> str:
    """The stub without declarations of names that are keywords of Python, which protoc writes and no checker can read.

    It is Schema.Type's ``None``; at run time ``Schema.Type.Value("None")`` gives it.
    """
    return _KEYWORDS.sub("", stub)


def main(arguments: Sequence[str] | None = None) -> int:
    """Regenerate in place, or with ``--check`` only compare. Returns 0, or 1 if a committed module differs."""
    parser = argparse.ArgumentParser(
        prog="python -m wirekit.proto.regenerate", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--check", action="store_true", help="change nothing; status 1 if a module is out of date")
    if not parser.parse_args(arguments).check:
        for path in generate(HERE):
            print(path.name)
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        stale = [path.name for path in generate(Path(scratch)) if path.read_bytes() != (HERE / path.name).read_bytes()]
    for name in stale:
        print(f"{name} is out of date", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
