# SPDX-License-Identifier: Apache-2.0
"""``rtproof completion``: what a shell needs to complete our words."""

import click
from click.shell_completion import get_completion_class

from rtproof.cli.main import COMPLETION_VARIABLE, cli
from rtproof.core.errors import UserError


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the script with which a shell completes words.

    \b
    bash:  rtproof completion bash > ~/.local/share/bash-completion/completions/rtproof
    zsh:   rtproof completion zsh > a file _rtproof in a folder of $fpath
    fish:  rtproof completion fish > ~/.config/fish/completions/rtproof.fish
    """
    found = get_completion_class(shell)
    if found is None:
        raise UserError(f"this version of click cannot complete in {shell}")
    click.echo(found(cli, {}, "rtproof", COMPLETION_VARIABLE).source())
