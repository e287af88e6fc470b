"""``wirekit inspect``: summarises captures, and compares the files of a broker's directory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import click

from wirekit.capture.files import Capture, Damaged, Skipped, open_capture
from wirekit.capture.files.fragments import Fragments
from wirekit.capture.follow import follow
from wirekit.capture.links import Choice
from wirekit.capture.tcp import Segment
from wirekit.cli.captures import (
    CUT,
    Unread,
    allow_cut_option,
    by_time,
    captures_of,
    choice_options,
    expanded,
    no_capture,
    parse_choice,
    read_segments,
    reopenable_files,
    road_option,
    separate_option,
)
from wirekit.cli.common import COLUMNS, check_page, console, need, on_terminal, print_json, say
from wirekit.cli.connections import show_connections
from wirekit.cli.directory_report import show_report
from wirekit.cli.filters import Selection, decided, selection_options
from wirekit.cli.numbered import numbered
from wirekit.cli.overview import Overview
from wirekit.cli.overview_objects import CallRows
from wirekit.cli.report import Report, write
from wirekit.cli.rule_checks import RuleChecks
from wirekit.cli.rules import check_captures, list_rules
from wirekit.cli.selected_names import Names
from wirekit.cli.where import WhereFrames
from wirekit.errors import Misuse, WireError, plural
from wirekit.pipeline.inputs import CAPTURE, Input, find_inputs, is_input, stored_kind
from wirekit.pipeline.roads import LEAST_FOR_COLUMNS, by_columns, unpacked_size
from wirekit.pipeline.summary import FileSummary, Summary, show
from wirekit.registry import load_object, registry
from wirekit.stored import Report as DirectoryReport


@click.command("inspect")
@click.argument("paths", nargs=-1, type=click.Path(readable=False), metavar="CAPTURE|DIRECTORY...")
@choice_options
@selection_options
@click.option("--connections", is_flag=True, help="Show producers, consumers and clients of each connection.")
@click.option("--rules", is_flag=True, help="List the violations of protocol rules.")
@click.option("--list", "listed", is_flag=True, help="With --rules: list the rules of --protocol, or of all protocols.")
@click.option(
    "--report",
    "page",
    type=click.Path(),
    metavar="FILE.html",
    help="Write a self-contained HTML page of the captures.",
)
@click.option(
    "--payloads", is_flag=True, help="With --report: include application data and other strings, not only their sizes."
)
@click.option("--output", type=click.Choice(["text", "json"]), help="Default: text on a terminal, else json.")
@road_option
@separate_option
@allow_cut_option
def command(
    paths: tuple[str, ...],
    protocol: str,
    ports: tuple[str, ...],
    selection: Selection,
    connections: bool,
    rules: bool,
    listed: bool,
    page: str | None,
    payloads: bool,
    output: str | None,
    road: str,
    separate: bool,
    allow_cut: bool,
) -> int:
    """Summarise captures, or check the data directory of a broker.

    For CAPTURE (- is standard input), print clients, topics, groups, calls with errors and latencies, the slowest
    calls, failed checks, and undecoded bytes. Selection options restrict the summary to the frames that match, and to
    their calls; times and segments remain those of the capture. Violations of rules are counted for captures below 16
    MiB, or with --road objects.

    DIRECTORY is the data directory of a broker, or of one partition: its segments, indexes and checkpoints are
    compared, and each inconsistency is reported with file, entry and byte. In another directory, the captures are
    summarised.

    `wirekit sql groups`, `wirekit sql members` and `wirekit sql lag` show the consumer groups of captures.
    """
    _check_options(paths, connections=connections, rules=rules, listed=listed)
    if selection.active and (connections or rules):
        raise click.UsageError("selection options apply to the summary; leave out --connections and --rules")
    if page is not None and (connections or rules):
        raise click.UsageError("--report shows the summary; leave out --connections and --rules")
    if allow_cut and (connections or rules):
        raise click.UsageError("--allow-cut applies to the summary; leave out --connections and --rules")
    if payloads and page is None:
        raise click.UsageError("--payloads needs --report")
    check_page(page, paths)
    paths = expanded(paths)
    if listed:
        return list_rules(protocol, _form(output))
    if road == "columns":
        need("--road columns", "pyarrow", "numba")
    choice = parse_choice(protocol, ports)
    unread = Unread()
    directories = [] if connections or rules else [path for path in paths if os.path.isdir(path)]
    reports = {path: report for path in directories if (report := _checked(path, protocol, unread)) is not None}
    captures = captures_of([path for path in paths if path not in reports], unread, separate=separate)
    if page is not None and not captures:
        raise click.UsageError(f"--report shows captures; {next(iter(reports))} is the data directory of a broker")
    if connections:
        return show_connections(captures, choice, _form(output)) or unread.status
    if rules:
        return check_captures(captures, choice, _form(output), road) or unread.status
    summary = Summary()
    overviews: dict[str, Overview] = {}
    collected = Report(payloads=payloads) if page is not None else None
    for parts in captures:
        with ExitStack() as copies:
            try:
                files = copies.enter_context(reopenable_files(parts))
            except OSError as error:
                files = ()
                summary.file(parts[0]).unreadable = no_capture(parts[0], error)
            overviews[parts[0]] = _count(parts[0], files, choice, selection, road, summary, collected)
    if page is not None and collected is not None:
        write(collected, page, ", ".join(parts[0] for parts in captures))
        without = "" if payloads else ", without application data (--payloads)"
        say(f"{page}: {plural(collected.frames, 'frame')}{without}")
    if _form(output) == "json":
        counted = {name: each | overviews[name].to_json() for name, each in summary.to_json().items()}
        print_json({**counted, **{report.directory: report.to_json() for report in reports.values()}})
    else:
        show(summary, console(), {name: each.lines() for name, each in overviews.items()})
        for report in reports.values():
            show_report(report, console())
    undecoded = {kind for each in summary.files.values() for kind, _ in each.quarantine}
    wrong = undecoded - (CUT if allow_cut else set()) or summary.unreadable or summary.incomplete
    return 1 if wrong or unread.status or not all(report.clean for report in reports.values()) else 0


def _check_options(paths: tuple[str, ...], *, connections: bool, rules: bool, listed: bool) -> None:
    if listed and not rules:
        raise click.UsageError("--list needs --rules")
    if connections and rules:
        raise click.UsageError("give --rules or --connections, not both")
    if listed and paths:
        raise click.UsageError("--list prints the rules without reading a capture; leave it out to check one")
    if not paths and not listed:
        raise click.UsageError("name a capture or a directory; - is standard input")


def _form(output: str | None) -> str:
    return output or ("text" if on_terminal() else "json")


def _checked(path: str, protocol: str, unread: Unread) -> DirectoryReport | None:
    """The report of the first protocol that recognises the directory; None for a directory of captures."""
    need("inspecting a directory", *COLUMNS)
    names = [name for *_, files in os.walk(path) for name in files]
    if any(map(is_input, names)) and all(stored_kind(name, messages=False) == CAPTURE for name in names):
        return None  # even if its name, such as 2026-01-31, could be that of a partition
    for name in [protocol] if protocol else registry.protocols():
        place = registry.protocol(name).directory
        if place:
            report: DirectoryReport | None = load_object(place)(path)
            if report is not None:
                return report
    inputs = find_inputs([path], unread=unread)
    if not any(each.kind == CAPTURE for each in inputs):
        broker = os.path.dirname(os.path.dirname(inputs[0].name))
        is_inside = os.path.dirname(broker).startswith(path.rstrip("/"))
        hint = f"; name those in it, such as {broker}" if is_inside else ""
        raise Misuse(f"{path} has no captures, and is not the directory of a broker or partition{hint}")
    return None


def _count(
    name: str,
    files: Sequence[Input],
    choice: Choice,
    selection: Selection,
    road: str,
    summary: Summary,
    collected: Report | None,
) -> Overview:
    """Counts the matching items of a capture, and the connections that have any.

    Violations are not counted if only some frames are, or in large captures.
    """
    selecting, by_objects = selection.active, collected is not None or road == "objects"
    size = 0 if by_objects else unpacked_size(files)
    takes_columns = files and not by_objects and by_columns(size, road)
    if takes_columns:
        from wirekit.cli.connection_names import with_names

        selection, _ = with_names(selection, tuple(files), choice)
    large = size >= LEAST_FOR_COLUMNS and not (by_objects or selecting)
    overview = Overview(name, large=large)
    checks = None if large or selecting else RuleChecks()
    if takes_columns:
        from wirekit.cli.filters_columns import selected_by_columns
        from wirekit.cli.overview_columns import Matching, OverviewWindows

        selected = selected_by_columns(selection)
        matching = None if selected is None else Matching(selected)
        if matching is not None and OverviewWindows(tuple(files), choice, summary, overview, matching, checks).read():
            if selecting and not matching.any_matched and not summary.file(name).unread:
                say(f"{name}: no frame matches; {matching.selected.names.text()}")
            return overview
    count = summary.file(name)
    fitting: set[int] = set()
    where = None if selection.where is None else WhereFrames(selection.where)
    rows = CallRows(overview)
    described = selecting or collected is not None
    items = numbered(follow(by_time(_segments(files, count)), choice), describe=described)
    names = Names(selection)
    items = rows.counting(names.counted(items) if selecting else items)
    for each, matches in decided(items, selection, where, live=False):
        rows.decide(each, chosen=matches)
        ends_counted = each.item is None and (each.connection in fitting or not selecting)
        if not (matches or ends_counted):
            continue
        fitting.add(each.connection)
        count.count(each.link, each.item)
        if collected is not None:
            collected.take(each)
        for violation in checks.take(each.link, each.item) if checks is not None else ():
            overview.violation(each.link, violation)
    if selecting and not fitting and not count.unread:
        say(f"{name}: no frame matches; {names.text()}")
    if collected is not None:
        collected.end(name, count, overview)
    return overview


def _segments(files: Sequence[Input], count: FileSummary) -> Iterator[Segment]:
    fragments = Fragments()
    for each in files:
        try:
            capture = open_capture(each.path, name=each.name)
        except (WireError, OSError) as error:
            reason = no_capture(each.path, error)
            if len(files) > 1:
                count.damage(f"{each.name}: {reason}")
            else:
                count.unreadable = reason
            continue
        with capture:
            yield from _of_file(capture, each.number, count, fragments)
            damage = capture.damage
            if damage is not None:
                count.damage(f"{each.name}: {damage}" if len(files) > 1 else str(damage))
                count.quarantined(damage.reason, damage.path, max(capture.size - (damage.offset or 0), 0))
    count.skipped.update(each.reason for each in fragments.end())


def _of_file(capture: Capture, number: int, count: FileSummary, fragments: Fragments) -> Iterator[Segment]:
    for each in read_segments(capture, number, fragments):
        if isinstance(each, Damaged):
            count.quarantined(each.error.reason, each.error.path, each.length)
        elif isinstance(each, Skipped) and each.problem:
            count.quarantined(each.problem, "", each.length)
        elif isinstance(each, Segment):
            count.count_segment(each.time_us)
            yield each
    count.skipped.update(capture.skipped)
