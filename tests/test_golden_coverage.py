# SPDX-License-Identifier: Apache-2.0
"""Whatever rtproof has of each kind of plug-in and rule is in some output of the golden corpus, or named here.

A new one needs an input that shows it, in ``tests/golden_outputs/cases.toml``, or a reason here.
"""

import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import pytest
from test_golden_outputs import EXPECTED, cases, read_input

import rtproof
from rtproof import exporters, importers
from rtproof.audit import check_file
from rtproof.cli import commands
from rtproof.cli.commands import lab
from rtproof.core.plugins import load_plugin, plugin_names
from rtproof.explain.causes import Cause
from rtproof.judge.doubts.registry import RULES, SAID_BY_CHECKS
from rtproof.report import formats
from rtproof.report.section_list import SECTIONS

NOT_COVERED = {
    "command": {},
    "exporter": {"parquet": "is binary and needs a package", "trace-dat": "is binary"},
    "importer": {},
    "report format": dict.fromkeys(("svg", "png", "summary"), "needs matplotlib"),
    "section": {},
    "doubt": {
        "limit-stated": "is printed without its code",
        "runs-differ": "only a cell of the lab has it, when no two of its runs are alike",
        "stated": "is printed without its code",
        "sums": "no row of the stored campaign has it any more; test_objections_planted.py plants each kind",
        "tool-ended": "only a run of the probe exec has it",
        "tool-unseen": "only a run of the probe exec has it",
        "trace-lost": "needs a trace that lost events",
    },
    "objection": {},
    "cause": {},
    "audit check": {},
}
"""Of each kind what no input shows, with the reason."""


@cache
def outputs() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(EXPECTED.iterdir()))


@cache
def in_one_line() -> str:
    """A sentence may go on in the next line."""
    return " ".join(outputs().split())


def is_printed(pattern: str) -> bool:
    return re.search(pattern, outputs(), re.M) is not None


def has_code(code: str) -> bool:
    return f"({code})" in outputs() or f'"code": "{code}"' in outputs()


def is_objected(name: str) -> bool:
    """Where a doubt says the same, only the doubt is printed."""
    return any(map(has_code, (name, *SAID_BY_CHECKS.get(name, ()))))


def is_read(importer: str) -> bool:
    texts = (
        read_input(each).decode(errors="replace") for case in cases() for each in case.inputs if is_of_a_tool(each)
    )
    return any(map(load_plugin(importers, importer).looks_like, texts))


def is_of_a_tool(name: str) -> bool:
    return "tool_outputs.zip/" in name or "cyclictest/" in name or name.endswith("results.json")


def doubts() -> set[str]:
    """The codes of all doubts, which have no list: wherever one is made."""
    sources = (path.read_text(encoding="utf-8") for path in Path(rtproof.__file__).parent.rglob("*.py"))
    return {code for source in sources for code in re.findall(r'\bDoubt\(\s*"([a-z-]+)"', source)}


def words_of(cause: str) -> str:
    return next(one for one in Cause if one.value == cause).words.partition("{")[0]


KINDS: dict[str, tuple[Iterable[str], Callable[[str], bool]]] = {
    "command": (
        [*plugin_names(commands), *(f"lab {name}" for name in plugin_names(lab))],
        lambda name: f"$ rtproof {name} --help\nexit code 0\n" in outputs(),
    ),
    "exporter": (
        plugin_names(exporters),
        lambda name: is_printed(rf"^\$ rtproof export .* --format {name}( .*)?\nexit code 0$"),
    ),
    "importer": (plugin_names(importers), is_read),
    "report format": (
        plugin_names(formats),
        lambda name: is_printed(rf"^\$ rtproof .*--format {name}\b"),
    ),
    "section": (
        [section.title for section in SECTIONS],
        lambda title: is_printed(rf"^(###? {re.escape(title)}|{re.escape(title)}\n-+)$"),
    ),
    "doubt": (doubts(), has_code),
    "objection": (RULES, is_objected),
    "cause": ([cause.value for cause in Cause], lambda cause: words_of(cause).lower() in in_one_line().lower()),
    "audit check": ([check.id for check in check_file.all_checks()], lambda name: f'"id": "{name}"' in outputs()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_all_of_a_kind_is_in_some_output(kind: str) -> None:
    names, is_shown = KINDS[kind]
    missing = {name for name in names if not is_shown(name)}
    assert missing == set(NOT_COVERED[kind]), f"of each {kind}"
