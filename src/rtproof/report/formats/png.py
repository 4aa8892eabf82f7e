# SPDX-License-Identifier: Apache-2.0
"""The plots as one picture (PNG, 200 dots per inch), as ``svg`` draws them; needs matplotlib."""

from rtproof.core.printable import clean
from rtproof.report.blocks import Section
from rtproof.report.formats import svg

SUFFIX = ".png"
ONLY_PLOTS = True


def draw(title: str, sections: list[Section]) -> bytes:
    """The plots as a PNG file. UserError without matplotlib, or if there is no plot to draw."""
    return svg.figure_file(title, sections, "png", {"Software": "rtproof", "Title": clean(title)})
