"""Real clients against scripted servers: ``python -m tests.peers COUNT SEED PYTHON [PEER ...]`` (docs/peers.md).

PYTHON is an interpreter whose environment has the peers. Each case is a process of its own. Findings are kept in
``build/peers/PEER/findings``.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.peers.brokers import KEY, VALUE, kafka_answer, pulsar_answer
from wirekit.fuzz.cases import Case
from wirekit.fuzz.corpus import Corpus
from wirekit.fuzz.plays import HARMLESS, Play, Plays
from wirekit.fuzz.running import Fuzzer, Options
from wirekit.fuzz.scripted_server import Answer, ScriptedServer
from wirekit.fuzz.targets import ACCEPTED, REFUSED, Bounds, Outcome, Target, outcome_of, ran

PEERS: dict[str, tuple[str, str, Answer]] = {
    "kafka-python": ("kafka_python.py", "kafka", kafka_answer),
    "aiokafka": ("aiokafka_client.py", "kafka", kafka_answer),
    "confluent-kafka": ("confluent.py", "kafka", kafka_answer),
    "pulsar-client": ("pulsar_client.py", "pulsar", pulsar_answer),
}
"""Script, protocol and broker of each, by the name of its package."""
SECONDS = 20.0
"""A script gives up by itself within half of that."""
MEMORY = 1 << 30
JOBS = 4
CLIENTS = Path(__file__).with_name("clients")
OUTPUT = Path("build/peers")
RAISED = re.compile(r"Traceback \(most recent call last\):\n((?:[ \t].*\n|\n)+)(\S.*)")
OWN_ERRORS = ("kafka.errors.", "aiokafka.errors.", "asyncio.exceptions.", "TimeoutError")
"""What clients raise to say that something went wrong; they also log it."""
FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')


class Peer(Target):
    """A script that produces a message and consumes one."""

    def __init__(self, python: str, name: str) -> None:
        script, self._protocol, self._answer = PEERS[name]
        self._words = [python, str(CLIENTS / script)]

    def run(self, case: Case) -> Outcome:
        assert isinstance(case, Play)
        server = ScriptedServer(self._protocol, case, answer=self._answer)
        bounds = Bounds(SECONDS, MEMORY)
        try:
            child, state = ran([*self._words, str(server.port)], subprocess.DEVNULL, bounds)
        finally:
            server.close()
        outcome = outcome_of(child, state, bounds)
        output = child.output.decode(errors="replace")
        log = f"{server.damaged}\n{output}{child.complaint[-4096:].decode(errors='replace')}"
        kind, says, place = outcome.kind, outcome.says, outcome.place
        raised = [each for each in RAISED.findall(log) if not each[1].startswith(OWN_ERRORS)]
        if kind in (ACCEPTED, REFUSED, "exit-status") and raised:
            frames, says = raised[-1]
            path, _, function = FRAME.findall(frames)[-1]
            kind, place = "exception", f"{says.partition(':')[0]} {Path(path).name} {function}"
        elif kind in (ACCEPTED, REFUSED):
            wrong = _misread(case, server.damaged, output)
            fault = next(server.faults(), None) if case.kind in HARMLESS else None
            if wrong:
                kind, says, place = "value", wrong, server.damaged
            elif fault is not None:
                kind, says, place = "request", fault.says, fault.place
            elif case.kind in HARMLESS[:2] and kind == REFUSED:
                kind, says, place = "refuses", f"it fails though nothing is wrong: {output}", ""
        return Outcome(kind, says, place, log=log[-4096:], sent=bytes(server.sent))


def _misread(case: Play, damaged: str, output: str) -> str:
    """What a script consumed that was not sent, or was damaged so that it must be refused."""
    for line in output.splitlines():
        if line.startswith("consumed"):
            if repr(VALUE) not in line or ("None" not in line and " 0 " in line and repr(KEY) not in line):
                return f"it gives its application {line!r}"
            if "checksum" in damaged and case.kind == "damaged frame":
                return f"it takes a message in spite of a wrong checksum: {line!r}"
    return ""


def main() -> None:
    count, seed, python, *names = sys.argv[1:]
    for name in names or PEERS:
        protocol = PEERS[name][1]
        plays = Plays(protocol, int(seed))
        options = Options(int(count), jobs=JOBS, minimise=False)
        summary = Fuzzer(plays, lambda name=name: Peer(python, name), options, corpus=Corpus(OUTPUT / name)).run()
        outcomes = ", ".join(f"{kind} {number}" for kind, number in sorted(summary.outcomes.items()))
        print(f"{name}: {summary.cases} cases in {summary.seconds:.0f} s: {outcomes}", flush=True)
        for finding in sorted(summary.findings, key=lambda finding: finding.signature):
            case, again = finding.original, "" if finding.reproduced else " (not a second time)"
            at = case.at if isinstance(case, Play) else 0
            print(f"  {finding.kind} x{finding.count}{again}: {finding.says[:200]}")
            print(f"    {case.kind}, answer {at}; {finding.log.partition(chr(10))[0]}; {finding.file}")


if __name__ == "__main__":
    main()
