"""``wirekit warm``: compiles the kernels for reading captures by columns in advance."""

from __future__ import annotations

import sys
import time

import click

from wirekit.cli.common import COLUMNS, need, say
from wirekit.errors import plural


@click.command("warm")
def command() -> int:
    """Compile the code that large captures use, and cache it on this machine.

    Run it in a Dockerfile or on each worker of a cluster, so that later runs do not wait. Code in the cache is not
    compiled again."""
    need("compiling ahead", *COLUMNS)
    from wirekit.compiler.cache import listening
    from wirekit.road.warming import warm

    compiled: list[str] = []

    def compiling(name: str) -> None:
        compiled.append(name)
        if sys.stderr.isatty():
            click.echo(f"\r\x1b[Kcompiling, once per machine: {name} ({len(compiled)})", nl=False, err=True)

    start = time.monotonic()
    with listening(compiling):
        warm()
    if sys.stderr.isatty() and compiled:
        click.echo("\r\x1b[K", nl=False, err=True)
    took = time.monotonic() - start
    say(
        f"compiled {plural(len(compiled), 'function')} in {took:.1f} s"
        if compiled
        else "everything is compiled already"
    )
    return 0
