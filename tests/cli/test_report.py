"""The page of ``inspect --report``: what it holds, what it must not give away, and how it works in a real browser."""

from __future__ import annotations

import base64
import json
import re
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.browser import Page, browser, find
from tests.net.building import ethernet, ipv4, packet, pcap, tcp
from wirekit import encode, example
from wirekit.cli import group
from wirekit.cli.report import collecting

HOSTILE = "</script><img src=x onerror=alert(1)>&\u2028"
SECRET = "s3cr3t-payload"
KAFKA = "kafka-0.10.2.2-4-clients.pcapng"


def report(capture: Path | str, page: Path, *options: str) -> dict[str, Any]:
    """Writes a page and gives the data in it."""
    result = CliRunner().invoke(
        group, ["inspect", "--report", str(page), *options, str(capture)], standalone_mode=False
    )
    assert result.exception is None
    match = re.search(r'<script type="application/octet-stream" id="data">([A-Za-z0-9+/=]*)</script>', page.read_text())
    assert match is not None
    return dict(json.loads(zlib.decompress(base64.b64decode(match[1]))))


def hostile_capture(tmp_path: Path, requests: int = 1) -> Path:
    """Produce requests to a topic whose name is markup, with a value that nobody else may see."""
    value = example("kafka.produce.request.v2")
    value["client_id"] = "<b>client</b>"
    value["body"]["topic_data"][0]["topic"] = HOSTILE
    value["body"]["topic_data"][0]["data"][0]["record_set"]["messages"][0]["message"]["value"] = SECRET.encode().hex()
    packets, sequence = [], 1000
    for _ in range(requests):
        data = encode("kafka.produce.request.v2", value)
        packets.append(packet("net.ethernet", ethernet(ipv4(tcp(data, sequence_number=sequence)))))
        sequence += len(data)
    path = tmp_path / "hostile.pcap"
    path.write_bytes(pcap(*packets))
    return path


def test_application_data_is_there_only_if_it_is_asked_for(tmp_path: Path) -> None:
    capture = hostile_capture(tmp_path)
    for options in ((), ("--payloads",)):
        data = report(capture, tmp_path / "page.html", *options)
        (content,) = data["opened"].values()
        pieces = [bytes.fromhex(piece.replace(".", "0")) for piece, *_ in content["pieces"]]
        shown = SECRET.encode() in pieces[0], SECRET in json.dumps(content["fields"])
        assert shown == (bool(options), bool(options))
        assert HOSTILE.encode() in pieces[0]  # the topic is in the table anyway


def test_the_name_of_a_capture_may_be_no_utf_8(tmp_path: Path) -> None:
    capture = hostile_capture(tmp_path)
    capture = capture.rename(tmp_path / "\udcff.pcap")
    assert report(capture, tmp_path / "page.html")["captures"]


def test_everything_from_a_capture_is_encoded(tmp_path: Path) -> None:
    report(hostile_capture(tmp_path), tmp_path / "page.html", "--payloads")
    page = (tmp_path / "page.html").read_text()
    assert "onerror" not in page
    assert "default-src 'none'" in page


@pytest.mark.parametrize("name", ["jmq4-consume.pcap", "pulsar-consume.pcap"])
def test_no_text_of_a_real_capture_escapes_the_dots(fixtures: Path, tmp_path: Path, name: str) -> None:
    """Every text in the fields is a name that the tables of the page show; and two runs write the same page."""
    data = report(fixtures / "pcap" / name, tmp_path / "page.html")
    assert data == report(fixtures / "pcap" / name, tmp_path / "again.html")
    assert (tmp_path / "page.html").read_bytes() == (tmp_path / "again.html").read_bytes()
    metadata_text = json.dumps([data["strings"], data["connections"], data["captures"]], ensure_ascii=False)
    texts = {text for each in data["opened"].values() for _, _, text, *_ in each["fields"] if text[:1] == "'"}
    assert texts
    assert {text for text in texts if text.strip("'") not in metadata_text} == set()


def test_many_frames_are_sampled_and_all_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "MOST_FRAMES", 10)
    data = report(hostile_capture(tmp_path, 45), tmp_path / "page.html", "--port", "9092=kafka")
    numbers = data["frames"]["number"]
    assert data["total"] == 45
    assert numbers == [1, 9, 17, 25, 33, 41]
    assert sum(api["calls"] for capture in data["captures"] for api in capture["apis"]) == 45


# In the browser.


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    path = find()
    if path is None:
        pytest.skip("no Chromium is installed (Debian: apt-get install chromium)")
    with browser(path, tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory, fixtures: Path) -> Path:
    path = tmp_path_factory.mktemp("report") / "kafka.html"
    report(fixtures / "pcap" / KAFKA, path, "--payloads")
    return path


SHOWN = "Number(document.querySelector('#count').textContent.split(' ')[0].replace(',', ''))"
FIRST = "document.querySelector('#frames tbody tr.pickable')"
PICKED = "document.querySelector('#frames tr[aria-selected=true] td').textContent"
LIT = "[...document.querySelectorAll('.bytes .hex.lit')].map(cell => cell.textContent).join('')"
LIT_FIELDS = "[...document.querySelectorAll('.fields .lit b')].map(name => name.textContent)"


def field(name: str) -> str:
    return f"[...document.querySelectorAll('.fields [data-at]')].find(line => line.firstChild.textContent === '{name}')"


@pytest.mark.parametrize("dark", [False, True])
def test_markup_from_the_wire_is_text(page: Page, tmp_path: Path, dark: bool) -> None:
    report(hostile_capture(tmp_path), tmp_path / "page.html", "--payloads", "--port", "9092=kafka")
    page.open(tmp_path / "page.html", dark=dark)
    page.point(FIRST, click=True)
    assert HOSTILE in page.run("document.querySelector('#frames tbody').textContent")
    assert SECRET in page.run("document.querySelector('.fields').textContent")
    assert page.run("document.querySelectorAll('img, b b').length") == 0
    assert page.requested == [(tmp_path / "page.html").resolve().as_uri()]
    assert page.errors == []


def test_filters_select_frames_everywhere(page: Page, kafka: Path) -> None:
    page.open(kafka)
    every = page.run(SHOWN)
    page.key("/")
    page.type("made-by-api")
    few = page.run(SHOWN)
    assert 0 < few < every
    page.point("document.querySelector('#wrong')", click=True)
    assert 0 < page.run(SHOWN) < few
    page.point("document.querySelector('#clear')", click=True)
    assert page.run(SHOWN) == every
    page.point("document.querySelector('.histogram')", click=True)
    assert page.run("document.querySelector('.histogram').getAttribute('aria-pressed')") == "true"
    assert 0 < page.run(SHOWN) < every
    assert page.errors == []


def test_tables_sort_by_a_click_and_move_by_keys(page: Page, kafka: Path) -> None:
    page.open(kafka)
    heading = "[...document.querySelectorAll('#frames th button')].find(button => button.textContent === 'ms')"
    page.point(heading, click=True)
    page.point(heading, click=True)
    numbers = page.run("[...document.querySelectorAll('#frames tr.pickable')].map(row => row.cells[3].textContent)")
    latencies = [float(number.replace(",", "")) for number in numbers if number]
    assert latencies == sorted(latencies, reverse=True)
    assert latencies
    page.point(FIRST, click=True)
    first = page.run(PICKED)
    page.key("j")
    assert page.run(PICKED) != first
    page.key("k")
    assert page.run(PICKED) == first
    page.key("p")
    assert page.run(PICKED) != first  # its request
    assert page.errors == []


def test_fields_and_bytes_light_each_other_bit_by_bit(page: Page, kafka: Path) -> None:
    page.open(kafka)
    page.point(
        "[...document.querySelectorAll('#frames tr.pickable')].find(row => row.textContent.includes('produce v2'))",
        click=True,
    )
    page.point(field("api_version"))
    assert page.run(LIT) == "0002"
    page.point("document.querySelector('.bytes .hex')")
    assert page.run(LIT_FIELDS) == ["size"]
    page.point(field("codec"))
    assert len(page.run(LIT)) == 2
    bits = "[...document.querySelectorAll('.bits .lit')]"
    assert page.run(f"{bits}.length") == 3
    page.point("document.querySelector('.bits [title=timestamp_type]')")
    assert page.run(LIT_FIELDS) == ["timestamp_type"]
    page.key("f")
    page.key("ArrowDown")
    assert page.run(LIT_FIELDS) == ["api_key"]
    assert page.errors == []


def test_the_timeline_zooms_by_keys_and_wheel(page: Page, kafka: Path) -> None:
    page.open(kafka)
    every = page.run(SHOWN)
    page.run("document.querySelector('#timeline').focus()")
    for _ in range(4):
        page.key("+")
    near = page.run(SHOWN)
    assert 0 < near < every
    page.key("0")
    assert page.run(SHOWN) == every
    x, y = page.point("document.querySelector('#timeline')")
    for _ in range(4):
        page.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=-100)
    page.wait(f"{SHOWN} < {every}")
    assert page.errors == []


def test_a_report_of_a_data_directory_is_refused(tmp_path: Path, fixtures: Path) -> None:
    """It would have no frames."""
    folder = tmp_path / "t-none-0"
    folder.mkdir()
    shutil.copy(fixtures / "kafka" / "disk" / "0.10.2.2-t-none-0.log", folder / f"{0:020}.log")
    result = CliRunner().invoke(group, ["inspect", str(folder), "--report", str(tmp_path / "report.html")])
    assert result.exit_code == 2
    assert "t-none-0 is the data directory of a broker" in result.stderr
    assert not (tmp_path / "report.html").exists()
