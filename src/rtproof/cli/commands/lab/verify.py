# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab verify``: would this machine make a stored comparison from the same inputs?"""

import json
from pathlib import Path

import click

from rtproof.cli.shared_options import JSON_OPTION, PATH, option

DIFFERS = 1


@click.command("verify")
@click.argument("result", type=PATH, metavar="RESULT.json")
@JSON_OPTION
@option("--qemu system|fetched|PATH", "The QEMU to use (default: that of the result).", default="")
@click.pass_context
def command(ctx: click.Context, /, result: Path, as_json: bool, qemu: str) -> None:
    """Compare the inputs of a result with those used here now.

    The inputs are the compiler, the agent, QEMU and its options, the kernels, and what the first file system holds.
    Guests with the same inputs give the same bytes. Nothing is fetched or booted. A kernel that is not in the cache
    differs.

    Exit codes: 0 all inputs are those of the result; 1 at least one differs; 2 usage or tool error.

    \b
    rtproof lab verify runs/lab/result.json
    """
    from rtproof.core.printable import clean
    from rtproof.lab import verify_inputs

    pairs = verify_inputs.compare_inputs(verify_inputs.read_comparison(result), qemu)
    if as_json:
        click.echo(json.dumps([vars(pair) | {"differs": pair.differs} for pair in pairs], indent=2))
    else:
        click.echo("\n".join(map(clean, verify_inputs.verification_sentences(pairs))))
    ctx.exit(DIFFERS if any(pair.differs for pair in pairs) else 0)
