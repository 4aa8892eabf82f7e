# SPDX-License-Identifier: Apache-2.0
"""How Sphinx makes the pages and the man pages of rtproof (``make docs``). Nothing is fetched from a network."""

import re
from pathlib import Path

project = "rtproof"
author = "the rtproof developers"
_source = Path(__file__).parents[1] / "src" / "rtproof" / "__init__.py"
release = re.search(r'__version__ = "(.*)"', _source.read_text(encoding="utf-8"))[1]  # type: ignore[index]
version = release

extensions = ["myst_parser"]
myst_heading_anchors = 4
exclude_patterns: list[str] = []
html_theme = "furo"
html_title = f"rtproof {release}"
html_copy_source = False
html_show_copyright = False
man_pages: list[tuple[str, str, str, list[str], int]] = []
