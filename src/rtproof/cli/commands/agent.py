# SPDX-License-Identifier: Apache-2.0
"""``rtproof agent``: the program that measures on the target."""

import hashlib
import shutil
from collections.abc import Iterator

import click

from rtproof.agents import build as agent_build
from rtproof.agents.architectures import ARCHITECTURES, Architecture, architecture, host_architecture
from rtproof.cli.main import GroupThatNamesItsCommand
from rtproof.cli.shared_options import option
from rtproof.core.errors import UserError

_NAMES = [arch.name for arch in ARCHITECTURES]
_ARCH = option("--arch ARCH", "Architecture (default: this machine's).", click.Choice([*_NAMES, ""]), default="")


@click.group("agent", cls=GroupThatNamesItsCommand)
def command() -> None:
    """Build or find the agent, the program on the target."""


@command.command()
@option("--arch archs ARCH ...", "Architecture (default: this machine's); repeatable.", click.Choice(_NAMES))
@option("--all every", "Build for every architecture (needs zig).")
@option("--compiler COMMAND", "Compiler: auto, zig, or such as arm-linux-gnueabi-gcc.", default="auto")
def build(archs: tuple[str, ...], every: bool, compiler: str) -> None:
    """Build the agent, static and stripped, and print its path. A finished build is kept."""
    for name in _NAMES if every else archs or [host_architecture().name]:
        click.echo(f"building the agent for {name}", err=True)
        click.echo(agent_build.build_agent(name, compiler))


@command.command()
@_ARCH
def path(arch: str) -> None:
    """Print the path of the agent; build it if it is not there."""
    click.echo(agent_build.find_agent(arch))


@command.command()
@_ARCH
def version(arch: str) -> None:
    """Print the agent's version. An agent for another architecture runs under QEMU's user-mode emulator."""
    wanted = architecture(arch) if arch else host_architecture()
    emulator = () if wanted == host_architecture() else _emulator(wanted)
    click.echo(agent_build.agent_version(agent_build.find_agent(wanted.name), emulator))


@command.command("list")
def list_() -> None:
    """List the probes, methods and loads of the agent for this machine."""
    listed = agent_build.agent_prints(agent_build.find_agent(), "list")
    for kind, *names, words in agent_build.listed_rows(listed):
        click.echo(f"{kind.replace('_', ' '):12} {' '.join(names):32} {words}")


@command.command()
def files() -> None:
    """List the programs that this installation brings.

    The columns: architecture, program, bytes, SHA-256. For an architecture without a program, a line says how it is
    built.
    """
    for arch in ARCHITECTURES:
        for line in _program_lines(arch):
            click.echo(f"{arch.name:12} {line}")


def _program_lines(arch: Architecture) -> Iterator[str]:
    here = agent_build.packaged_programs(arch)
    for program in here:
        content = program.read_bytes()
        yield f"{program.name:14} {len(content):>9,} {hashlib.sha256(content).hexdigest()}"
    if not any(program.name == agent_build.AGENT_NAME for program in here):
        try:
            compiler = agent_build.choose_compiler(arch)
        except UserError:
            yield f"{agent_build.AGENT_NAME:14} not here, and nothing here can build it"
        else:
            name = "zig" if "-target" in compiler.command else compiler.command[0]
            yield f"{agent_build.AGENT_NAME:14} not here; built when it is needed, by {name}"


def _emulator(arch: Architecture) -> tuple[str, ...]:
    for program in (arch.qemu[0], f"{arch.qemu[0]}-static"):
        if shutil.which(program):
            return (program, *arch.qemu[1:])
    raise UserError(
        f"an agent for {arch.name} runs here only under {arch.qemu[0]} (Debian: apt-get install qemu-user-static)"
    )
