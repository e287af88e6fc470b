"""What is exported of layouts drawn at random holds for their values."""

from __future__ import annotations

import ast
import json
from contextlib import suppress

from jsonschema import Draft202012Validator

import wirekit
from tests.agreement.layouts import Task, drawn, drawn_inputs, registered
from tests.agreement.run import Tally
from wirekit.errors import Misuse
from wirekit.exports import export

SEEDS = range(700_090, 700_120)


def test_values_of_drawn_layouts_are_valid() -> None:
    """By JSON Schema; the types are Python, and the other formats are written without an error."""
    compared = 0
    for seed in SEEDS:
        with suppress(Misuse), registered(drawn(seed)) as key:  # registration refuses some
            ast.parse(export([key], "pyi").text)
            for form in ("c", "ksy", "lua", "markdown"):
                assert export([key], form).text
            schema = json.loads(export([key], "jsonschema").text)
            Draft202012Validator.check_schema(schema)
            validator = Draft202012Validator(schema)
            for context, data in drawn_inputs(Task(seed, count=6, sound=2, named=2), key, Tally()):
                decoded = wirekit.decode(data, key, context=context)
                if decoded.error is None and not context:
                    validator.validate(json.loads(json.dumps(wirekit.to_json(decoded.value))))
                    compared += 1
    assert compared > 50
