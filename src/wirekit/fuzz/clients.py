"""A client as a target: a command that is run against a scripted server."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from wirekit.errors import Misuse
from wirekit.fuzz.cases import Case
from wirekit.fuzz.plays import HARMLESS, Play
from wirekit.fuzz.scripted_server import ScriptedServer
from wirekit.fuzz.targets import ACCEPTED, REFUSED, Bounds, Outcome, Target, outcome_of, ran, words_of


class ClientTarget(Target):
    """A command that is run for each case, with a server that plays it.

    Args:
        command: its words; ``{port}`` is the port of the server on 127.0.0.1.
        protocol: the protocol that it speaks.
        bounds: as for a command. The client must end by itself, within ``seconds``.
        fields: as for ``ScriptedServer``.

    Raises:
        Misuse: for a command without ``{port}``.
    """

    def __init__(
        self,
        command: str,
        protocol: str,
        bounds: Bounds,
        *,
        fields: Mapping[str, Any] | None = None,
    ) -> None:
        self._words = words_of(command)
        if "{port}" not in command:
            raise Misuse("client: needs {port} in its command, as in client:./client 127.0.0.1:{port}")
        self._protocol, self._bounds = protocol, bounds
        self._fields = dict(fields or {})

    def run(self, case: Case) -> Outcome:
        if not isinstance(case, Play):
            raise Misuse("client: needs the name of a protocol, not a layout")
        server = ScriptedServer(self._protocol, case, fields=self._fields)
        try:
            words = [word.replace("{port}", str(server.port)) for word in self._words]
            child, state = ran(words, subprocess.DEVNULL, self._bounds)
        finally:
            server.close()
        outcome = outcome_of(child, state, replace(self._bounds, want_values=False))
        if case.kind in HARMLESS and outcome.kind in (ACCEPTED, REFUSED):
            fault = next(server.faults(), None)
            outcome = outcome if fault is None else replace(fault, kind="request", log=outcome.log)
        return replace(outcome, sent=bytes(server.sent))
