# SPDX-License-Identifier: Apache-2.0
"""Words that a shell may complete. They come from what is there; nothing is built or measured to find them."""

import subprocess
from pathlib import Path
from types import ModuleType

import click
from click.shell_completion import CompletionItem

from rtproof import plugins

LONGEST_WAIT_S = 2


def methods(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Methods of the agent's probes."""
    return [CompletionItem(row[2], help=row[-1]) for row in _rows("method") if row[2].startswith(incomplete)]


def loads(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Definitions, and loads of the agent."""
    from rtproof import loads as package

    rows = [(name, "") for name in package.names()] + [(row[1], row[-1]) for row in _rows("load")]
    return [CompletionItem(name, help=text) for name, text in rows if name.startswith(incomplete)]


def export_formats(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Formats of ``rtproof export``."""
    from rtproof import exporters

    return _names(exporters, incomplete)


def report_formats(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Formats of ``rtproof report``."""
    from rtproof.report import formats

    return _names(formats, incomplete)


def profiles(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Profiles that come with the program."""
    from rtproof import profiles as package

    return [name for name in package.names() if name.startswith(incomplete)]


def targets(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Targets of ``rtproof run``."""
    from rtproof import targets as package

    return _names(package, incomplete)


def _names(package: ModuleType, incomplete: str) -> list[str]:
    return [name for name in plugins.names(package) if name.startswith(incomplete)]


def _rows(kind: str) -> list[list[str]]:
    """What the newest agent that was ever built for this machine lists; nothing if there is none."""
    from rtproof.agents import listing

    agent = _built_agent()
    if agent is None:
        return []
    try:
        listed = subprocess.run(
            [str(agent), "list"], capture_output=True, text=True, timeout=LONGEST_WAIT_S, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return listing.rows(listed, kind)


def _built_agent() -> Path | None:
    from rtproof.agents.architectures import host
    from rtproof.agents.build import NAME, cache_dir
    from rtproof.agents.find import packaged

    name = host().name
    if packaged(name).exists():
        return packaged(name)
    built = sorted(cache_dir().glob(f"{name}-*/{NAME}"), key=lambda path: path.stat().st_mtime)
    return built[-1] if built else None
