# SPDX-License-Identifier: Apache-2.0
"""A group of commands that is a folder: each of its modules is one command, imported when it is needed."""

from types import ModuleType

import click

from rtproof import plugins


def group_of(package: ModuleType) -> type[click.Group]:
    """The class of a click group whose commands are the plug-ins of a package, by the names of their files."""

    class CommandFolder(click.Group):
        def list_commands(self, ctx: click.Context) -> list[str]:
            return plugins.names(package)

        def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
            if cmd_name not in plugins.names(package):
                return None
            command: click.Command = plugins.load(package, cmd_name).command
            return command

    return CommandFolder
