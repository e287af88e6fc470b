"""Runs a Python target in a process of its own: inputs on standard input, one result each on standard output.

Both are framed by four bytes of length, big-endian; a result is a JSON object. The target's standard output is
discarded; its standard error is that of this process. Nothing here imports wirekit, so that the process holds only the
target.

    python worker.py MODULE FUNCTION WANT_VALUES
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import struct
import sys
import traceback
from collections.abc import Callable
from typing import Any, BinaryIO

LARGEST_ANSWER = 1 << 20
LONGEST_MESSAGE = 500
FRAMES = 8
FATAL = 3
"""Exit status when the function cannot be imported; standard error says why."""


def memory() -> dict[str, int]:
    """The current and the peak memory of this process in bytes; zeros if the system does not report it."""
    sizes = {"VmRSS": 0, "VmHWM": 0}
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            for line in file:
                name, _, size = line.partition(":")
                if name in sizes:
                    sizes[name] = int(size.split()[0]) * 1024
    except OSError:
        pass
    return {"resident": sizes["VmRSS"], "peak": sizes["VmHWM"]}


def plain(value: Any) -> Any:
    """The JSON form of other objects: bytes as hex, named tuples and objects by their public fields."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    if hasattr(value, "_asdict"):
        return value._asdict()
    slots = [vars(kind).get("__slots__", ()) for kind in reversed(type(value).__mro__)]
    names = [name for each in slots for name in ((each,) if isinstance(each, str) else each)]
    if names or hasattr(value, "__dict__"):
        fields = {name: getattr(value, name) for name in names if hasattr(value, name)} | getattr(value, "__dict__", {})
        return {name: field for name, field in fields.items() if name[:1] != "_"}
    return repr(value)


def call(function: Callable[[bytes], Any], data: bytes, want_values: bool) -> dict[str, Any]:
    """The result for one input."""
    try:
        value = function(data)
    except BaseException as error:  # noqa: BLE001  # whatever the target raises is the result
        return {"exception": _described(error)}
    if not want_values:
        return {}
    try:
        text = json.dumps(value, default=plain)
    except (TypeError, ValueError, RecursionError) as error:
        return {"unprintable": str(error)[:LONGEST_MESSAGE]}
    if len(text) > LARGEST_ANSWER // 2:
        return {"unprintable": f"{len(text)} characters of JSON"}
    return {"value": text}


def _described(error: BaseException) -> dict[str, Any]:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename != __file__][-FRAMES:]
    try:
        message = str(error)[:LONGEST_MESSAGE]
    except Exception as second:  # noqa: BLE001  # an error of the target that cannot even be printed
        message = f"<{type(second).__name__} while printing it>"
    return {
        "types": [f"{each.__module__}.{each.__qualname__}" for each in type(error).__mro__],
        "message": message,
        "frames": [f"{os.path.basename(frame.filename)}:{frame.lineno} {frame.name}" for frame in own],
    }


def main() -> None:
    """Serves until standard input ends."""
    module, name, want_values = sys.argv[1:]
    inputs, results = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    faulthandler.enable()
    sys.path[0] = os.getcwd()
    try:
        function: Any = importlib.import_module(module)
        for part in name.split("."):
            function = getattr(function, part)
    except (ImportError, AttributeError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(FATAL)
    _write(results, memory())
    while len(head := inputs.read(4)) == 4:
        data = inputs.read(struct.unpack(">I", head)[0])
        _write(results, {**call(function, data, want_values == "1"), **memory()})


def _write(results: BinaryIO, result: dict[str, Any]) -> None:
    data = json.dumps(result).encode()
    results.write(struct.pack(">I", len(data)) + data)
    results.flush()


if __name__ == "__main__":
    main()
