# SPDX-License-Identifier: Apache-2.0
"""``rtproof show``: what a run says."""

from pathlib import Path
from typing import Any, NoReturn

import click
from click.core import ParameterSource

from rtproof.cli import shared_options
from rtproof.cli.shared_options import PATH, GroupedCommand, option, with_options


@click.command("show", cls=GroupedCommand)
@click.argument("run", type=PATH)
@with_options(*shared_options.LIMIT_OPTIONS, shared_options.HORIZON_OPTION, shared_options.PERCENTILE_OPTION)
@shared_options.SECTION_OPTION
@shared_options.UNIT_OPTION
@option("--all whole", "Print every section.")
@shared_options.JSON_OPTION
@click.pass_context
def command(
    ctx: click.Context, /, run: Path, percentiles: tuple[float, ...], sections: tuple[str, ...], **values: Any
) -> None:
    """Print what a run says on one screen, or its sections.

    RUN is a run folder, a record that was copied from a target, or a histogram that another tool printed (cyclictest),
    which has no order of time. RUN may also be the folder of 'rtproof run' with --profile, --repeat or --abba: then the
    worst verdict comes first, with a row for each run. The exit code is that of the verdict. A --limit with --at-most
    that was not given to rtproof run was chosen after the data, so it decides nothing. RUN may be the folder of
    'rtproof tune', too, which takes no option but --json.
    """
    from rtproof.cli import option_values
    from rtproof.core.errors import UserError
    from rtproof.experiment import printed_runs, stored_runs

    whole, as_json, unit = values.pop("whole"), values.pop("as_json"), values.pop("unit")
    if stored_runs.is_tuning(run):
        _show_tuning(ctx, run, as_json)
    if bool(sections) + whole + as_json > 1:
        raise click.UsageError("give one of --section, --all and --json")
    later, horizon = option_values.take_requirements(values), values.pop("horizon")
    if stored_runs.is_campaign(run):
        from rtproof.experiment import campaign_folder, printed_several

        campaign_folder.refuse_options_of_one_run(later=later, horizon=horizon)
        found = campaign_folder.read_campaign(run, percentiles, without_lost_cells=True)
        if as_json:
            click.echo(found.encoded, nl=False)
        elif whole or sections:
            printed_several.print_campaign_sections(found, sections)
        else:
            printed_several.print_campaign_screen(found, run)
        ctx.exit(found.exit_code)
    printed_runs.refuse_unknown_sections(sections)
    if stored_runs.is_series(run):
        if horizon or percentiles or sections or whole or as_json:
            raise UserError(
                f"{run} holds several runs: of these options only --limit is for all of them, so give the folder of one"
            )
        from rtproof.experiment import printed_several

        ctx.exit(printed_several.print_series_screen(run, later))
    result = stored_runs.read_run(run, later, percentiles, horizon=horizon, unit=unit)
    if sections:
        printed_runs.print_sections(result, sections)
    elif whole or as_json:
        printed_runs.print_run(result, as_json)
    else:
        printed_runs.print_screen(result, run)
    ctx.exit(result.exit_code)


def _show_tuning(ctx: click.Context, folder: Path, as_json: bool) -> NoReturn:
    """Print a tuning, and end. UsageError for an option that only runs have."""
    from rtproof.experiment import tuning_report

    for name in ctx.params:
        if name not in ("run", "as_json") and ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{folder} is a tuning, and takes no option but --json", ctx)
    tuning_report.print_tuning(folder, as_json=as_json)
    ctx.exit(0)
