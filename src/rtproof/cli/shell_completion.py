# SPDX-License-Identifier: Apache-2.0
"""What a shell offers when the user completes a word: methods, loads, formats, profiles, targets and checks.

Completion must be quick and silent. So it asks an agent only if one has been built.
"""

import os
import subprocess
from types import ModuleType

import click
from click.shell_completion import CompletionItem

from rtproof import exporters, targets
from rtproof.agents import build
from rtproof.core import plugins

LIST_TIMEOUT_S = 2


def complete_methods(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Methods of the agent's probes."""
    return [CompletionItem(row[2], help=row[-1]) for row in _agent_rows("method") if row[2].startswith(incomplete)]


def complete_probes(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The agent's probes."""
    return [CompletionItem(row[1], help=row[-1]) for row in _agent_rows("probe") if row[1].startswith(incomplete)]


def complete_loads(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Loads that are defined in files, and the agent's own loads; behind an @ the CPUs of this machine or guest."""
    if "@" in incomplete:
        numbers = (f"{incomplete.rpartition('@')[0]}@{cpu}" for cpu in range(_cpu_count(context)))
        return [CompletionItem(text, help="bound to this CPU") for text in numbers if text.startswith(incomplete)]
    from rtproof import loads

    rows = [(name, "") for name in loads.names()] + [(row[1], row[-1]) for row in _agent_rows("load")]
    return [CompletionItem(name, help=text) for name, text in rows if name.startswith(incomplete)]


def _cpu_count(context: click.Context) -> int:
    """Of the guest, if the command boots one, or else of this machine."""
    asked = context.params.get("cpus", 0)
    return asked if isinstance(asked, int) and asked else os.cpu_count() or 1


def complete_emulators(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The QEMUs that have names, and files."""
    named = {"system": "of this machine", "fetched": "of 'rtproof lab qemu --fetch'"}
    found = [CompletionItem(name, help=text) for name, text in named.items() if name.startswith(incomplete)]
    return found or [CompletionItem(incomplete, type="file")]


def complete_export_formats(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Formats of ``rtproof export``."""
    return _matching_names(exporters, incomplete)


def complete_report_formats(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Formats of ``rtproof report``."""
    from rtproof.report import formats

    return _matching_names(formats, incomplete)


def complete_sections(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Sections of a run's report."""
    from rtproof.report.section_list import SECTIONS

    return [CompletionItem(one.name, help=one.title) for one in SECTIONS if one.name.startswith(incomplete)]


def complete_profiles(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Profiles that come with the program."""
    from rtproof import profiles

    return [name for name in profiles.names() if name.startswith(incomplete)]


def complete_targets(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Targets of ``rtproof run``."""
    return _matching_names(targets, incomplete)


def complete_checks(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Checks of ``rtproof audit``."""
    from rtproof.audit.check_file import all_checks

    return [CompletionItem(one.id, help=one.title) for one in all_checks() if one.id.startswith(incomplete)]


def _matching_names(package: ModuleType, incomplete: str) -> list[str]:
    return [name for name in plugins.plugin_names(package) if name.startswith(incomplete)]


def _agent_rows(kind: str) -> list[list[str]]:
    """Rows of one kind from the list of the newest agent built for this machine; no rows without an agent."""
    agent = build.built_agent()
    if agent is None:
        return []
    try:
        listed = subprocess.run(
            [str(agent), "list"], capture_output=True, text=True, timeout=LIST_TIMEOUT_S, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return build.listed_rows(listed, kind)
