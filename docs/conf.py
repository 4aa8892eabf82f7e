# SPDX-License-Identifier: Apache-2.0
"""How Sphinx makes the pages and the man pages of rtproof (``make docs``, ``make man``). Nothing is fetched."""

import logging
import re
import sys
from pathlib import Path

_docs = Path(__file__).parent
sys.path[:0] = [str(_docs / "extensions"), str(_docs.parent / "src")]

project = "rtproof"
author = "the rtproof developers"
_source = _docs.parent / "src" / "rtproof" / "__init__.py"
release = re.search(r'__version__ = "(.*)"', _source.read_text(encoding="utf-8"))[1]  # type: ignore[index]
version = release

extensions = ["myst_parser", "reference_pages"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
nitpicky = True
# The pages are about options such as --limit: two hyphens stay two hyphens.
smartquotes = False
# A folder of pages may be empty. The warning has no type by which suppress_warnings could name it.
logging.getLogger("sphinx.sphinx.directives.other").addFilter(lambda record: "glob pattern" not in str(record.msg))
exclude_patterns: list[str] = []
linkcheck_anchors = False
html_theme = "furo"
html_title = f"rtproof {release}"
html_copy_source = False
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]

man_pages = [
    ("rtproof", "rtproof", "measure, judge and explain how late a Linux system reacts", [author], 1),
    ("rtproof-agent", "rtproof-agent", "measure on the target how late a Linux system reacts", [author], 1),
]
