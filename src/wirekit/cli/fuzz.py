"""``wirekit fuzz``: sends sound and damaged inputs of a layout to a parser, a server or a client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from wirekit.cli.arguments import Bytes, KeyType, Seconds, is_schema
from wirekit.cli.common import check_report, console, need, print_json, say
from wirekit.cli.context import check_context, context_option, parse_context
from wirekit.encoding import built_key
from wirekit.errors import plural
from wirekit.registry import registry
from wirekit.values import printable

if TYPE_CHECKING:
    from wirekit.fuzz import Case, Finding, Summary, Target
    from wirekit.fuzz.corpus import Corpus
    from wirekit.fuzz.targets import Bounds

DEFAULT_COUNT = 5000
DEFAULT_PLAYS = 100
DEFAULT_VECTORS = 1000


@click.command("fuzz")
@click.argument("schema", metavar="[KEY]", required=False, type=KeyType())
@click.option(
    "--target", help="python:module:function, 'command:./parser {file}', 'client:./client {port}' or tcp:host:port."
)
@click.option(
    "--count",
    type=click.IntRange(1),
    help=f"Number of cases. Default without --time: {DEFAULT_COUNT}; {DEFAULT_PLAYS} for a client: target or "
    f"--conversation; {DEFAULT_VECTORS} for --export.",
)
@click.option("--time", "seconds", type=Seconds(0, min_open=True), help="Run for this many seconds.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the generated cases.")
@click.option(
    "--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="Number of targets that run at once."
)
@click.option("--kind", "kinds", multiple=True, help="Use only this kind of damage; may be repeated.")
@click.option(
    "--corpus", type=click.Path(file_okay=False), help="Read inputs from this directory, and store findings in it."
)
@click.option(
    "--explore",
    type=Seconds(0, min_open=True),
    metavar="SECONDS",
    help="First search for inputs that reach new code of a python: target, with atheris.",
)
@click.option(
    "--replay",
    type=click.Path(exists=True, dir_okay=False),
    help="Run only this case (.bin or .json); KEY may be omitted.",
)
@click.option("--compare", is_flag=True, help="Compare values: the result of a function, or JSON output of a command.")
@click.option("--timeout", type=Seconds(0, min_open=True), default=5.0, show_default=True, help="Seconds per case.")
@click.option(
    "--memory",
    type=Bytes("m", least=1 << 20),
    default="512m",
    show_default=True,
    help="Memory limit of a target; MiB without a unit.",
)
@click.option(
    "--allow",
    multiple=True,
    metavar="NAME",
    help="Another exception that means refusal, besides ValueError and EOFError.",
)
@click.option(
    "--exit-status", default="0,1", show_default=True, help="Allowed exit statuses of a command; 0 accepts an input."
)
@click.option("--allow-remote", is_flag=True, help="Allow a tcp: target on another machine.")
@click.option(
    "--field", "fields", multiple=True, metavar="NAME=VALUE", help="Set a field in all responses to a client: target."
)
@click.option("--conversation", is_flag=True, help="Send whole conversations to a tcp: target.")
@click.option("--no-opening", is_flag=True, help="Do not send the opening frames of the protocol.")
@click.option(
    "--export", type=click.Path(dir_okay=False), help="Write golden vectors (JSONL) instead of running a target."
)
@click.option("--report", type=click.Path(dir_okay=False), help="Write a report: JUnit to *.xml, else JSON.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@context_option
def command(schema: str | None, context_pairs: tuple[str, ...], **options: Any) -> int:
    """Send valid and damaged inputs of a layout to a parser or a server, and report wrong behaviour.

    KEY is a schema key, or a protocol for the frames of its clients. A Python target refuses an input by raising
    ValueError or EOFError. Exit status: 0 no findings, 1 findings, 2 wrong usage.

    \b
    wirekit fuzz kafka.fetch.response.v2 --target python:mylib.codec:decode --compare
    wirekit fuzz pulsar --target 'command:./parser {file}' --time 60 --jobs 2 --corpus corpus
    wirekit fuzz kafka.metadata.request.v0 --target tcp:127.0.0.1:9092 --count 500 --report fuzz.xml
    wirekit fuzz pulsar --target 'client:./client pulsar://127.0.0.1:{port}' --count 100
    """
    need("wirekit fuzz", "hypothesis")
    check_report(options["report"])
    context = parse_context(context_pairs)
    if schema is not None:
        if not is_schema(schema):
            registry[schema]  # refuses the name with advice
        check_context(schema, context)
    elif options["replay"] is None:
        raise click.UsageError("name a layout or a protocol: wirekit fuzz KEY --target ...")
    if options["export"] is not None:
        if options["target"] is not None:
            raise click.UsageError("--export runs no target; leave out --target")
        if options["replay"] is not None:
            raise click.UsageError("--export runs no case; leave out --replay")
        from wirekit.testing import export_vectors

        if schema is None:
            raise click.UsageError("name a layout or a protocol: wirekit fuzz KEY --export FILE")
        count = options["count"] or DEFAULT_VECTORS
        kinds = options["kinds"] or None
        export_vectors(schema, options["export"], count=count, seed=options["seed"], context=context, kinds=kinds)
        return 0
    if options["target"] is None:
        raise click.UsageError("name a target, as in --target python:module:function")
    if options["replay"] is not None:
        return _replay(schema, context, options)
    assert schema is not None
    return _run(schema, context, options)


def _run(schema: str, context: dict[str, Any], options: dict[str, Any]) -> int:
    from wirekit.fuzz.corpus import Corpus
    from wirekit.fuzz.numbered_cases import NumberedCases
    from wirekit.fuzz.plays import PLAYS, QUESTIONS, Plays
    from wirekit.fuzz.report import report, write
    from wirekit.fuzz.running import Fuzzer, Options, default_folder

    plays = options["conversation"] or options["target"].startswith("client:")
    key = registry.protocol(schema).name if plays else built_key(schema)
    corpus = Corpus(options["corpus"] or default_folder(key))
    if options["explore"] is not None:
        _explore(key, context, corpus, options)
    kinds = options["kinds"] or None
    cases: NumberedCases | Plays
    if plays:
        offered = QUESTIONS if options["conversation"] else PLAYS
        cases = Plays(key, options["seed"], kinds=kinds, offered=offered)
    else:
        originals = corpus.originals() if options["corpus"] or options["explore"] else []
        cases = NumberedCases(key, options["seed"], context=context, kinds=kinds, originals=originals)
    count = options["count"] or (None if options["seconds"] else DEFAULT_PLAYS if plays else DEFAULT_COUNT)
    how = Options(count, options["seconds"], options["jobs"], options["compare"], minimise=not plays)
    fuzzer = Fuzzer(cases, _target(options, key), how, corpus=corpus, resume=bool(options["corpus"]))
    with _progress(count, options["seconds"]) as show:
        summary = fuzzer.run(show)
    if options["report"]:
        write(options["report"], summary, key, options["target"], options["seed"])
    if options["output"] == "json":
        print_json(report(summary, key, options["target"], options["seed"]))
    else:
        _show(summary, key)
    return 1 if summary.findings else 0


def _explore(key: str, context: dict[str, Any], corpus: Corpus, options: dict[str, Any]) -> None:
    """Runs a coverage-guided search for inputs, which are the first cases of the run."""
    from wirekit.fuzz.coverage import explore
    from wirekit.fuzz.numbered_cases import NumberedCases
    from wirekit.fuzz.running import QUEUE_FRAMES
    from wirekit.fuzz.targets import parse_target

    place = parse_target(options["target"])
    if place.form != "python":
        raise click.UsageError(
            "--explore applies to python: targets; other fuzzers can start from the queue of a --corpus"
        )
    corpus.queue_frames(NumberedCases(key, options["seed"], context=context).sound(QUEUE_FRAMES))
    added = explore(corpus, place.parts[0], place.parts[1], options["explore"], _bounds(options))
    say(f"atheris added {plural(added, 'input')}")


def _replay(schema: str | None, context: dict[str, Any], options: dict[str, Any]) -> int:
    from wirekit.fuzz.corpus import load
    from wirekit.fuzz.plays import Play
    from wirekit.fuzz.running import replayed

    case = load(options["replay"], None if schema is None else built_key(schema), context)
    if isinstance(case, Play) and not options["conversation"] and not options["target"].startswith("client:"):
        raise click.UsageError(f"{options['replay']} is a conversation; add --conversation, or name a client: target")
    outcome, finding = replayed(case, _target(options, case.key)(), compare=options["compare"])
    if options["output"] == "json":
        print_json({"outcome": outcome, "finding": finding.to_json() if finding is not None else None})
    elif finding is not None:
        _show_finding(finding)
    else:
        console().print(f"{outcome}: {_described(case)}", markup=False, soft_wrap=True)
    return 1 if finding is not None else 0


def _target(options: dict[str, Any], key: str) -> Callable[[], Target]:
    """Returns a function that creates the target."""
    from wirekit.fuzz.clients import ClientTarget
    from wirekit.fuzz.network import TcpTarget
    from wirekit.fuzz.scripted_client import ConversationTarget
    from wirekit.fuzz.targets import CommandTarget, PythonTarget, parse_target

    place = parse_target(options["target"])
    if place.form in ("tcp", "client") and options["compare"]:
        raise click.UsageError(
            "--compare applies to python: and command: targets; responses of servers and clients are always decoded"
        )
    if options["conversation"] and place.form != "tcp":
        raise click.UsageError("--conversation applies to tcp: targets; a client: target always has a conversation")
    if options["fields"] and place.form != "client":
        raise click.UsageError("--field applies to client: targets")
    if place.form == "client":
        protocol, fields = registry.protocol(key).name, parse_context(options["fields"], "--field topic=t")
        return lambda: ClientTarget(place.text, protocol, _bounds(options), fields=fields)
    if place.form == "tcp":
        name, bounds = registry.protocol(key).name, _bounds(options)
        host, port, remote = place.parts[0], int(place.parts[1]), options["allow_remote"]
        if options["conversation"]:
            return lambda: ConversationTarget(host, port, name, bounds, allow_remote=remote)
        opening = not options["no_opening"]
        return lambda: TcpTarget(host, port, name, bounds, opening=opening, allow_remote=remote)
    if place.form == "python":
        return lambda: PythonTarget(place.parts[0], place.parts[1], _bounds(options))
    return lambda: CommandTarget(place.text, _bounds(options))


def _bounds(options: dict[str, Any]) -> Bounds:
    from wirekit.fuzz.targets import Bounds

    try:
        statuses = frozenset(map(int, options["exit_status"].split(",")))
    except ValueError:
        raise click.UsageError(f"--exit-status must be numbers, such as 0,1, not {options['exit_status']!r}") from None
    return Bounds(
        seconds=options["timeout"],
        memory=options["memory"],
        allowed=Bounds().allowed | frozenset(options["allow"]),
        statuses=statuses,
        want_values=options["compare"],
    )


@contextmanager
def _progress(count: int | None, seconds: float | None) -> Iterator[Callable[[Summary], None]]:
    """Shows the progress of a run on a terminal."""
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield lambda summary: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    with Progress(
        TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=screen, transient=True
    ) as bar:
        task = bar.add_task("starting", total=count or seconds)

        def show(summary: Summary) -> None:
            rate = summary.cases / summary.seconds if summary.seconds else 0
            text = f"{summary.cases:,} cases, {rate:,.0f}/s, {plural(len(summary.findings), 'finding')}"
            bar.update(task, completed=summary.cases if count else summary.seconds, description=text)

        yield show


def _show(summary: Summary, key: str) -> None:
    screen = console()
    for finding in summary.findings:
        _show_finding(finding)
    if summary.known:
        say(f"{plural(len(summary.known), 'finding')} of earlier runs occurred again")
    outcomes = ", ".join(f"{name} {count:,}" for name, count in sorted(summary.outcomes.items()))
    screen.print(f"{key}: {plural(summary.cases, 'case')}: {outcomes or 'none'}", markup=False, soft_wrap=True)
    screen.print(plural(len(summary.findings), "finding"), style="red" if summary.findings else "green", markup=False)


def _show_finding(finding: Finding) -> None:
    screen = console()
    again = "" if finding.reproduced else " (not with a fresh target)"
    lines = [
        (f"{finding.kind}: {printable(finding.says)}{again}", "red"),
        (f"  {_described(finding.case)}", None),
        (f"  {finding.file}" if finding.file else "", "dim"),
    ]
    for line, style in lines:
        if line:
            screen.print(line, style=style, markup=False, soft_wrap=True)


def _described(case: Case) -> str:
    """A line that describes a case and wirekit's verdict on it."""
    at = f" at byte {case.offset}" if case.offset is not None else ""
    where = f" in {case.path}" if case.path else ""
    expected = case.expectation
    explanation = f": {expected.says}" if expected.says else ""
    seed = "" if case.data else getattr(case, "seed", "")  # a scripted client sends what its seed says
    size = f"conversation {seed}" if seed else plural(len(case.data), "byte")
    return printable(f"{case.kind}{where}{at}, {size}; wirekit: {expected.verdict}{explanation}")
