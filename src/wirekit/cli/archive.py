"""``wirekit archive``: one file with everything that the workers of a Spark cluster need."""

from __future__ import annotations

import os

import click

from wirekit.cli.common import need, say
from wirekit.pipeline.summary import size_text


@click.command("archive")
@click.argument("file", type=click.Path(dir_okay=False), metavar="FILE.tar.gz")
def command(file: str) -> int:
    """Write an archive for workers of a Spark cluster that do not have wirekit.

    It holds wirekit, the installed protocols, their dependencies and compiled code, for the Python version and the
    platform of this machine. Workers need Spark and this version of Python, nothing else.

    \b
    wirekit archive worker.tar.gz
    wirekit pipeline captures/ -o tables --master spark://host:7077 --archive worker.tar.gz
    """
    need("an archive for workers", "numba", "pyarrow")
    from wirekit.spark.archive import write

    versions = write(file)
    say(f"{file}: {size_text(os.path.getsize(file))}, wirekit {versions['wirekit']} and {len(versions) - 1} packages")
    return 0
