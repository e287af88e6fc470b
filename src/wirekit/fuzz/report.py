"""The result of a run, as JSON for programs and as JUnit's XML for continuous integration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import wirekit
from wirekit.fuzz.running import Summary
from wirekit.values import printable


def report(summary: Summary, key: str, target: str, seed: int) -> dict[str, Any]:
    """The report in the JSON form (docs/fuzzing.md)."""
    return {
        "wirekit": wirekit.__version__,
        "schema": key,
        "target": target,
        "seed": seed,
        "first": summary.first,
        "cases": summary.cases,
        "seconds": round(summary.seconds, 3),
        "kinds": dict(sorted(summary.kinds.items())),
        "outcomes": dict(sorted(summary.outcomes.items())),
        "findings": [finding.to_json() for finding in summary.findings],
        "known": dict(summary.known),
    }


def junit(summary: Summary, key: str, target: str) -> ElementTree.Element:
    """A suite with a test for each kind of damage, which fails for each finding of such a case."""
    suite = ElementTree.Element("testsuite", name=f"wirekit fuzz {key}", time=f"{summary.seconds:.3f}")
    failures = 0
    for kind, cases in sorted(summary.kinds.items()):
        test = ElementTree.SubElement(suite, "testcase", classname=f"{key} {printable(target)}", name=kind)
        test.set("assertions", str(cases))
        of_kind = [finding for finding in summary.findings if finding.original.kind == kind]
        if of_kind:
            failures += 1
            text = "\n\n".join(f"{each.kind}: {each.says}\n{each.file}\n{each.log}" for each in of_kind)
            failure = ElementTree.SubElement(test, "failure", type=of_kind[0].kind, message=printable(of_kind[0].says))
            failure.text = "\n".join(map(printable, text.split("\n")))
    suite.set("tests", str(len(summary.kinds)))
    suite.set("failures", str(failures))
    return suite


def write(path: str, summary: Summary, key: str, target: str, seed: int) -> None:
    """Writes the report: JUnit XML to a file that ends in ``.xml``, otherwise JSON."""
    file = Path(path)
    if file.suffix == ".xml":
        ElementTree.ElementTree(junit(summary, key, target)).write(file, encoding="utf-8", xml_declaration=True)
    else:
        file.write_text(json.dumps(report(summary, key, target, seed), indent=1) + "\n")
