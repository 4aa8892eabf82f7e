# SPDX-License-Identifier: Apache-2.0
"""The blocks of the report as JSON, for programs that draw them in their own way.

One object: ``format`` "rtproof-report", ``version``, ``title``, ``sections``. A section has ``name``, ``title`` and
``blocks``; a block has ``block`` (text, table, plot or heatmap) and the fields of that class in ``report.blocks``.
"""

import json
from dataclasses import asdict

from rtproof.report.blocks import Block, Section

SUFFIX = ".json"

FORMAT = "rtproof-report"
VERSION = 2
"""Grows when a field is renamed or removed. New fields and new kinds of block do not change it."""


def draw(title: str, sections: list[Section]) -> bytes:
    """The report as JSON in UTF-8, indented by two."""
    drawn = {
        "format": FORMAT,
        "version": VERSION,
        "title": title,
        "sections": [_section(section) for section in sections],
    }
    return (json.dumps(drawn, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode(errors="replace")


def _section(section: Section) -> dict[str, object]:
    return {"name": section.name, "title": section.title, "blocks": [_block(block) for block in section.blocks]}


def _block(block: Block) -> dict[str, object]:
    return {"block": type(block).__name__.lower(), **asdict(block)}
