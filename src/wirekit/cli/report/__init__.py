"""``wirekit inspect --report``: one HTML page about captures, which needs no network and no other file.

``Report`` takes the items of captures, and ``write`` writes the page. The size of a page is bounded: it
has a sample of the frames of a large capture, and says so. Application data and secrets are included only on request.
"""

from __future__ import annotations

from wirekit.cli.report.collecting import Report
from wirekit.cli.report.page import write

__all__ = ["Report", "write"]
