# SPDX-License-Identifier: Apache-2.0
"""What a shell offers when the user completes a word: methods, loads, formats, profiles, targets and checks.

Completion must be quick and silent. So it asks an agent only if one has been built.
"""

import os
import subprocess
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module

import click
from click.shell_completion import CompletionItem

from rtproof.agents import build
from rtproof.core import plugins

LIST_TIMEOUT_S = 2
EMULATORS = {"system": "of this machine", "fetched": "of 'rtproof lab qemu --fetch'"}
Offer = Iterable[tuple[str, str]]
"""Words, each with its help."""


def complete(kind: str, context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The words of a kind that begin so."""
    if kind == "loads" and "@" in incomplete:  # the CPUs of the guest, if the command boots one, or of this machine
        asked = context.params.get("cpus", 0)
        cpus = asked if isinstance(asked, int) and asked else os.cpu_count() or 1
        load = incomplete.rpartition("@")[0]
        offered: Offer = [(f"{load}@{cpu}", "bound to this CPU") for cpu in range(cpus)]
    else:
        offered = OFFERS[kind]()
    found = [CompletionItem(word, help=text) for word, text in offered if word.startswith(incomplete)]
    return found or ([CompletionItem(incomplete, type="file")] if kind == "emulators" else [])


def _of_agent(kind: str, at: int = 1) -> Offer:
    """Rows of one kind from the list of the newest agent built for this machine; no rows without an agent."""
    agent = build.built_agent()
    if agent is None:
        return []
    words = [str(agent), "list"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=LIST_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [(row[at], row[-1]) for row in build.listed_rows(done.stdout, kind)]


def _plugins(package: str) -> Offer:
    return [(name, "") for name in plugins.plugin_names(import_module(package))]


def _loads() -> Offer:
    """Those that are defined in files, and the agent's own."""
    from rtproof import loads

    return [*((name, "") for name in loads.names()), *_of_agent("load")]


def _profiles() -> Offer:
    from rtproof import profiles

    return [(name, "") for name in profiles.names()]


def _sections() -> Offer:
    from rtproof.report.section_list import SECTIONS

    return [(one.name, one.title) for one in SECTIONS]


def _checks() -> Offer:
    from rtproof.audit.check_file import all_checks

    return [(one.id, one.title) for one in all_checks()]


OFFERS: dict[str, Callable[[], Offer]] = {
    "methods": partial(_of_agent, "method", 2),
    "probes": partial(_of_agent, "probe"),
    "loads": _loads,
    "emulators": EMULATORS.items,
    "export formats": partial(_plugins, "rtproof.exporters"),
    "report formats": partial(_plugins, "rtproof.report.formats"),
    "targets": partial(_plugins, "rtproof.targets"),
    "profiles": _profiles,
    "sections": _sections,
    "checks": _checks,
}
