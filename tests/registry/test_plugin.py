"""A third-party package adds a protocol by entry point; all of wirekit then knows it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from construct import this

import wirekit
from wirekit.registry import BUILT_IN, WITHOUT_STREAM, Layout, Protocol, Registry
from wirekit.wire import Bytes, Checked, If, Struct, int8, int16, uint32

MODULE = """
from wirekit.registry import Layout, Protocol
from wirekit.wire import Checked, Length, String, Struct, int16, rest, uint32

NOTE = Struct("size" / Length(int16, minimum=4), "crc" / Checked(uint32, "crc32c"), "text" / String(int16))
PROTOCOL = Protocol("notes", "Notes", {"note": Layout(NOTE, "a note")}, "note", "note", ("note",))
"""

PROGRAM = """
import wirekit
assert "notes.note" in wirekit.registry.keys()
data = wirekit.encode("notes.note", {"text": "hello"})
assert [frame.value.text for frame in wirekit.frames("notes", data + data)] == ["hello", "hello"]
conversation = wirekit.Conversation("notes")
(frame,) = conversation.receive("client", data)
print(frame.schema, frame.value.text, frame.decoded.checks[0].status)
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """An installed package with an entry point, as pip would leave it."""
    (tmp_path / "notes_protocol.py").write_text(MODULE)
    info = tmp_path / "notes_protocol-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: notes-protocol\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[wirekit.protocols]\nnotes = notes_protocol:PROTOCOL\n")
    return tmp_path


def test_protocol_of_an_entry_point_is_loaded(package: Path) -> None:
    program = f"import sys; sys.path.insert(0, {str(package)!r})\n{PROGRAM}"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.stdout == "notes.note hello ok\n", run.stderr


def test_command_line_knows_it(package: Path) -> None:
    program = f"import sys; sys.path.insert(0, {str(package)!r})\nfrom wirekit.cli import main; main()"
    run = subprocess.run(
        [sys.executable, "-c", program, "schemas", "notes"], capture_output=True, text=True, check=False
    )
    assert "notes.note" in run.stdout, run.stderr


def test_a_protocol_name_is_registered_once() -> None:
    registry = Registry()
    registry.register(Protocol("one", "first", {"x": Layout(int8)}))
    with pytest.raises(wirekit.Misuse, match="already registered"):
        registry.register(Protocol("one", "second", {"x": Layout(int8)}))
    with pytest.raises(wirekit.Misuse, match="already registered"):
        registry.register(Protocol("kafka", "mine", {"x": Layout(int8)}))


def test_the_order_of_protocols_is_the_same_whichever_was_used_first() -> None:
    registry = Registry()
    registry.register(Protocol("one", "first", {"x": Layout(int8)}))
    assert registry.protocol("pulsar").name == "pulsar"
    assert registry.protocols()[: len(BUILT_IN)] == list(BUILT_IN)
    assert "one" in registry.protocols()


def test_unknown_key_suggests_a_near_one() -> None:
    with pytest.raises(wirekit.Misuse, match=r"did you mean .*pulsar\.frame"):
        wirekit.decode(b"", "pulsar.frames")


@pytest.mark.parametrize("key", ["zyxq.note", "zyxq", "x" * 5000])
def test_the_error_for_a_key_of_no_protocol_says_how_protocols_are_found(key: str) -> None:
    with pytest.raises(wirekit.Misuse) as caught:
        wirekit.decode(b"", key)
    assert "must be installed as a package, or registered" in str(caught.value)
    assert "did you mean" not in str(caught.value)
    listed = ", ".join(wirekit.registry.protocols())  # other tests register more
    assert len(str(caught.value).replace(listed, "")) < 300


def test_a_key_in_upper_case_suggests_the_near_one() -> None:
    with pytest.raises(wirekit.Misuse, match=r"did you mean kafka\.sasl_token"):
        wirekit.decode(b"", "KAFKA.SASL_TOKEN")


def test_a_layout_that_cannot_be_compiled_is_refused_at_once() -> None:
    opaque = Protocol("opaque", "a test", {"x": Layout(Struct("n" / int8, "a" / Bytes(this.n**2)))})
    registry = Registry()
    with pytest.raises(wirekit.Misuse, match=r"opaque\.x: a"):
        registry.register(opaque)
    assert "opaque.x" not in registry


@pytest.mark.parametrize(
    ("node", "problem"),
    [
        (Struct("a" / int16, "b" / Bytes(this.nosuch)), r"^odd\.x: b reads 'nosuch'"),
        (Struct("a" / Struct("b" / If(this._.nosuch > 0, int8))), r"^odd\.x: a reads 'nosuch'"),
        (Struct("a" / Checked(uint32, "md7")), r"^odd\.x: a: no checksum 'md7'"),
    ],
)
def test_a_layout_that_can_never_work_is_refused_at_once(node: Struct, problem: str) -> None:
    with pytest.raises(wirekit.Misuse, match=problem):
        Registry().register(Protocol("odd", "a test", {"x": Layout(node)}))


def test_built_in_layouts_read_only_existing_fields() -> None:
    for key in wirekit.registry:
        wirekit.registry[key].check()


def test_a_layout_may_read_fields_of_the_enclosing_structure() -> None:
    inner = Struct("b" / If(this._.a > 0, int8))
    layouts = {"inner": Layout(inner), "outer": Layout(Struct("a" / int8, "c" / inner))}
    assert Registry().register(Protocol("nested", "a test", layouts))


def test_protocols_without_a_stream_are_not_imported_for_recognition() -> None:
    silent = [name for name in BUILT_IN if not wirekit.registry.protocol(name).recognised_by]
    assert silent == list(WITHOUT_STREAM)
    assert [protocol.name for protocol in Registry().with_stream()] == ["kafka", "pulsar", "joyqueue", "jmq4"]


@pytest.mark.parametrize("schema", [["joyqueue"], []], ids=["named", "guessed"])
def test_decoding_one_frame_loads_little(schema: list[str]) -> None:
    frame = "00000017cafebebe040200000001070000016c3d0e8b28"
    program = (
        "import sys; from wirekit.cli import _run\n"
        f"assert _run(['decode', *{schema}, '--hex', '{frame}', '--output', 'json']) == 0\n"
        "heavy = {'wirekit.compiler.ir', 'wirekit.schemas.net', 'google.protobuf', 'rich', 'importlib.metadata'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stderr.splitlines()[-1] == "[]"


def test_importing_wirekit_is_light() -> None:
    program = (
        "import sys, wirekit, wirekit.cli\n"
        "heavy = {'numba', 'pyarrow', 'pyspark', 'rich', 'hypothesis', 'numpy', 'pandas', 'google.protobuf'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_a_broken_entry_point_leaves_the_rest_in_order(package: Path) -> None:
    points = package / "notes_protocol-1.0.dist-info" / "entry_points.txt"
    points.write_text("[wirekit.protocols]\nbroken = nosuchmodule:PROTOCOL\nnotes = notes_protocol:PROTOCOL\n")
    program = (
        f"import sys, warnings; sys.path.insert(0, {str(package)!r})\n"
        "import wirekit\n"
        "with warnings.catch_warnings(record=True) as said:\n"
        "    warnings.simplefilter('always')\n"
        "    print({'notes.note', 'kafka.request'} <= set(wirekit.registry.keys()))\n"
        "print(*[each.message for each in said])\n"
        "try: wirekit.decode(b'', 'broken.note')\n"
        "except wirekit.Misuse as error: print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    entry = "the entry point broken = nosuchmodule:PROTOCOL of notes-protocol 1.0"
    why = f"{entry} does not give a protocol: ModuleNotFoundError"
    is_first, warning, error = run.stdout.splitlines()
    assert is_first == "True"
    assert warning.startswith(why)
    assert error.startswith(f"broken.note: {why}")
    code = (
        f"import sys; sys.path.insert(0, {str(package)!r}); from wirekit.cli import main; main(['schemas', 'nosuch'])"
    )
    command = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert command.stderr.splitlines()[0].startswith(f"wirekit: warning: {why}")
    assert ".py" not in command.stderr


@pytest.mark.parametrize("code", ["import sys; sys.exit(5)", "class Odd(BaseException): pass\nraise Odd"])
def test_a_package_that_ends_python_when_it_is_imported_ends_no_command(code: str, package: Path) -> None:
    (package / "notes_protocol.py").write_text(code)
    run = schemas_with(package)
    assert (run.returncode, run.stdout.count("kafka.request ")) == (0, 1)
    assert "wirekit: warning: the entry point notes = notes_protocol:PROTOCOL of notes-protocol 1.0" in run.stderr


def test_metadata_that_is_no_text_ends_no_command(package: Path) -> None:
    points = package / "notes_protocol-1.0.dist-info" / "entry_points.txt"
    points.write_bytes(b"\xff" + points.read_bytes())
    run = schemas_with(package)
    assert (run.returncode, run.stdout.count("kafka.request ")) == (0, 1)
    assert "cannot be searched for protocols: UnicodeDecodeError" in run.stderr


def schemas_with(package: Path) -> subprocess.CompletedProcess[str]:
    """``wirekit schemas``, with a package that is installed."""
    program = f"import sys; sys.path.insert(0, {str(package)!r})\nfrom wirekit.cli import main; main()"
    command = [sys.executable, "-c", program, "schemas"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_missing_extra_is_named() -> None:
    program = (
        "import sys; sys.modules['numba'] = sys.modules['pyarrow'] = sys.modules['numpy'] = None\n"
        "import wirekit\n"
        "from wirekit.cli import _run\n"
        "for name in ('columns', 'rows', 'build_columns'):\n"
        "    try: getattr(wirekit, name)\n"
        "    except wirekit.Misuse as error: print(error)\n"
        "for engine in ('columns', 'build-columns'):\n"
        "    print(_run(['explain', 'kafka.message_set', '--engine', engine]))\n"
        "print(_run(['messages', 'segment', '--engine', 'columns']))\n"
        "print(_run(['inspect', '.']))\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    lines = [*run.stdout.splitlines()[:3], *run.stderr.splitlines()]
    assert all("pip install 'wirekit[columns]'" in line for line in lines), lines
    assert (len(lines), run.stdout.splitlines()[3:]) == (7, ["2"] * 4)


def test_a_protocol_is_not_suggested_for_itself() -> None:
    with pytest.raises(wirekit.Misuse, match="'kafka' is a protocol, not a schema; `wirekit schemas kafka`"):
        wirekit.registry["kafka"]


@pytest.mark.parametrize("first", [name for name in BUILT_IN if name not in WITHOUT_STREAM])
def test_the_order_of_recognition_does_not_depend_on_the_protocol_used_first(first: str) -> None:
    registry = Registry()
    registry.protocol(first)
    names = [protocol.name for protocol in registry.with_stream()]
    ours = [name for name in BUILT_IN if name not in WITHOUT_STREAM]
    assert [name for name in names if name in ours] == ours
    assert names[: len(ours)] == ours
