# SPDX-License-Identifier: Apache-2.0
"""``rtproof tune``: try settings of a target, and say which ones help."""

from typing import Any

import click

from rtproof.cli import shared_options as kinds
from rtproof.cli.shared_options import (
    JSON_OPTION,
    METHOD_OPTION,
    MOST_SEED,
    POLICY_OPTIONS,
    GroupedCommand,
    count_up_to,
    option,
    target_options,
    with_options,
)

NAMES = 20
"""Columns of a knob's name in the list."""


def _list_knobs(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if not wanted:
        return
    from rtproof.tune.knobs import all_knobs

    for knob in all_knobs():
        cost = knob.cost + (" Tried only if --knobs names it." if knob.danger else "")
        click.echo(f"{knob.name:{NAMES}} {knob.title}\n{'':{NAMES}} {cost}")
    ctx.exit(0)


@click.command(
    "tune",
    cls=GroupedCommand,
    most_used=("--knobs", "--budget", "--load", "--limit", "--cpus", "--target", "--output", "--list", "--help"),
)
@option("--knobs NAME,...", "Try only these (see --list).")
@option("--budget", "How long it may take (default 30min).", kinds.LENGTH_NS, default="30min")
@option("--run-length", "How long each run measures (default: as fits).", kinds.LENGTH_NS)
@option("--limit", "Compare the share of latencies above this, too.", kinds.LENGTH_NS)
@option("--load LOAD ...", "Disturb by this load (see 'rtproof loads'); repeatable.", complete="loads")
@option("--cpus", "Measure on these CPUs (default: all but the first).", kinds.CPUS)
@option("--period", "Time between activations (default 1ms).", kinds.LENGTH)
@option("--probe PROBE", "What to measure (default timer).", complete="probes")
@with_options(METHOD_OPTION, *POLICY_OPTIONS)
@option("--reboot", "Boot a board, many times, for knobs of its command line.")
@option("--warmup", "Run this long before measuring (default 1s).", kinds.SPAN, default="1s")
@option("--seed N", "Draw the order of the runs from N.", count_up_to(MOST_SEED))
@kinds.folder_option("the tuning")
@JSON_OPTION
@target_options("tune")
@option("--list", "List all knobs, and end.", is_eager=True, expose_value=False, callback=_list_knobs)
@click.pass_context
def command(ctx: click.Context, /, **values: Any) -> None:
    """Try settings of a target, and say which ones help.

    A knob is a setting that may make the system react earlier; --list names all of them. Each run has some knobs on.
    When the run ends, every setting is as before, also after a crash or a cut link. rtproof makes nothing permanent.
    The folder has files that do.

    First all knobs are screened: each run has half of them on. Then the most promising ones are tried alone and
    together. The page says which ones to keep. 'rtproof show FOLDER' prints it again.

    A dangerous knob is tried only if --knobs names it. A knob of the kernel's command line needs a boot. A guest boots
    for each run. A board boots with --reboot, many times, by kexec: all that runs on it ends. No file that it boots
    from changes, so a reset brings back its own command line, also after a kill of rtproof.

    The exit code is 0, 2 for an error, or 130 if you interrupt it: what was measured until then is kept.

    \b
    rtproof tune --budget 20min --load sched
    rtproof tune --cpus 2-3 --limit 100us --budget 2h
    rtproof tune --knobs governor,idle-latency,printk --budget 10min
    """
    from rtproof.experiment import tuning_report

    ctx.exit(tuning_report.run_tuning(values, ctx.obj or ("rtproof", "tune")))
