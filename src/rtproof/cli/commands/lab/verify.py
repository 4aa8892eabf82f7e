# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab verify``: would this machine make a stored comparison from the same inputs?"""

import json
from pathlib import Path

import click

DIFFERS = 1


@click.command("verify")
@click.argument("result", type=click.Path(path_type=Path), metavar="RESULT.json")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option(
    "--qemu",
    default="",
    metavar="system|fetched|PATH",
    help="The QEMU to use (default: that of the result).",
)
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
