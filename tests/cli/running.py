"""Runs of the command line as scripts see them; Python and wirekit are loaded once for all of them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from functools import cache
from typing import Any

HEARTBEAT = "00000017cafebebe040200000001070000016c3d0e8b28"
"""A heartbeat of JMQ4, in hex."""
SERVER = """
import atexit, gc, importlib, json, os, pkgutil, socket, sys
import click, cramjam, google.protobuf, isal.igzip_lib, lz4.frame, numba, pyarrow.dataset, pyarrow.parquet, rich
for name in ("capture", "cli", "compiler", "conversation", "pipeline", "protocols", "road", "schemas", "tables"):
    package = importlib.import_module("wirekit." + name)
    for each in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(each.name)
numba.njit(lambda: 0)()  # numba imports most of its modules now
gc.freeze()
link = socket.socket(fileno=int(sys.argv[1]))
while True:
    request, streams, _, _ = socket.recv_fds(link, 1 << 20, 3)
    if not request:
        break
    child = os.fork()
    if not child:
        link.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        said = json.loads(request)
        os.environ.clear()
        os.environ.update(said["environment"])
        os.chdir(said["folder"])
        sys.argv = ["wirekit", *said["arguments"]]
        from wirekit.cli import main
        try:
            main()
        except SystemExit as left:
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(left.code)  # to take all modules apart would copy their memory
    for stream in streams:
        os.close(stream)
    link.sendall(os.waitpid(child, 0)[1].to_bytes(4, "big"))
"""
"""Starts a copy of itself for each command: it begins as a fresh process does, behind all imports but that of DuckDB.

With DuckDB, a command would collect garbage when it ends.
"""


_servers: list[subprocess.Popen[bytes]] = []


@cache
def _server() -> socket.socket:
    """The connection to a server, which ends when this process does."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-c", SERVER, str(theirs.fileno())]
    _servers.append(subprocess.Popen(command, pass_fds=[theirs.fileno()]))
    theirs.close()
    return ours


class Run:
    """One run of the command line.

    Args:
        fresh: whether it is a process of its own from the start, for what depends on how Python starts.
    """

    def __init__(self, *arguments: str, stdin: bytes = b"", fresh: bool = False) -> None:
        if fresh:
            command = [sys.executable, "-m", "wirekit", *arguments]
            completed = subprocess.run(command, input=stdin, capture_output=True, check=False)
            self.status, self.out, self.err = completed.returncode, completed.stdout, completed.stderr.decode()
            return
        request = {"arguments": arguments, "environment": dict(os.environ), "folder": os.getcwd()}
        reading, writing = os.pipe()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            socket.send_fds(_server(), [json.dumps(request).encode()], [reading, out.fileno(), err.fileno()])
            os.close(reading)
            feeder = threading.Thread(target=_feed, args=(writing, stdin))
            feeder.start()
            answer = _server().recv(4)
            feeder.join()
            assert answer, "the server has failed; it says why on standard error"
            self.status = os.waitstatus_to_exitcode(int.from_bytes(answer, "big"))
            out.seek(0)
            err.seek(0)
            self.out = out.read()
            self.err = err.read().decode()

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.decode().splitlines()]


def _feed(pipe: int, data: bytes) -> None:
    """Writes all of the standard input, or what the command reads of it."""
    try:
        with open(pipe, "wb") as stream:
            stream.write(data)
    except BrokenPipeError:
        pass
