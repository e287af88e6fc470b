"""``wirekit inspect``: what captures hold, counted."""

from __future__ import annotations

import click

from wirekit.cli.captures import FollowedFile, choice_options, parse_choice
from wirekit.cli.common import console, on_terminal, print_json
