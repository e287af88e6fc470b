"""How long does ``wirekit decode --hex`` take from start to end, next to importing construct?"""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import wirekit

RUNS = 12
KAFKA = (
    "00000050000000010000000900096b70792d70726f62650001000003e8000000010006742d6e6f6e6500000001000000000000001f"
    "0000000000000000000000136cbc21b70000000000036f6c64000000027631"
)
JMQ4 = "00000017cafebebe040200000001070000016c3d0e8b28"
PING = {"command": {"type": "PING", "ping": {}}}
SEND = {
    "command": {"type": "SEND", "send": {"producer_id": 1, "sequence_id": 3, "num_messages": 1}},
    "entry": {
        "metadata": {"producer_name": "standalone-0-0", "sequence_id": 3, "publish_time": 1_700_000_000_000},
        "payload": bytes(range(100)),
    },
}


def commands() -> dict[str, list[str]]:
    """What is started, by what it is called."""
    decode = [sys.executable, "-m", "wirekit", "decode"]
    ping, send = (wirekit.encode("pulsar.frame", value).hex() for value in (PING, SEND))
    return {
        "import construct": [sys.executable, "-c", "import construct"],
        "python alone": [sys.executable, "-c", "pass"],
        "import wirekit": [sys.executable, "-c", "import wirekit"],
        "decode kafka.request": [*decode, "kafka.request", "--hex", KAFKA],
        "decode pulsar.frame, a SEND with its checksum": [*decode, "pulsar.frame", "--hex", send],
        "decode, JMQ4 guessed": [*decode, "--hex", JMQ4],
        "decode, Kafka guessed": [*decode, "--hex", KAFKA],
        "decode, a Pulsar PING guessed": [*decode, "--hex", ping],
        "decode, a Pulsar SEND with its checksum guessed": [*decode, "--hex", send],
    }


def measure(command: list[str], environment: dict[str, str]) -> float:
    """CPU seconds of a whole process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run() -> tuple[str, list[tuple[str, str]]]:
    """The question, and (label, figure) per command; the first run of each leaves its bytecode and does not count."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    started = commands()
    for command in started.values():
        measure(command, environment)
    times = dict.fromkeys(started, float("inf"))
    for _ in range(RUNS):  # in turns: the machine may be busy with something else
        for label, command in started.items():
            times[label] = min(times[label], measure(command, environment))
    peer = times["import construct"]
    return str(__doc__), [
        (label, f"{seconds * 1e3:.0f} ms, {seconds / peer:.2f} × import construct") for label, seconds in times.items()
    ]
