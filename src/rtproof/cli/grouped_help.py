# SPDX-License-Identifier: Apache-2.0
"""Help that lists the options of a command under headings. An option has the same heading in every command."""

import re
from typing import Any

import click

HEADINGS = {
    "What to measure": (
        "--probe --method --period --period-step --interval --distance --cpus --affinity --threads --smp --policy "
        "--priority --phase --dma-latency --latency --laptop --no-lock-memory --mlockall --allow-unprivileged "
        "--nanosleep --pid --thread --begin --end --for --aligned --secaligned --clock --default-system --mainaffinity "
        "--priospread --relative --resolution --system --posix_timers"
    ),
    "How long, and when to stop": (
        "--duration --samples --loops --warmup --until-decided --max-duration --keep-mib --breaktrace"
    ),
    "The limit": (
        "--limit --max --at-most --shows --confidence --gap --longest --bunches --fixed-beforehand --measured-for "
        "--unit --horizon --fail-on --explain-at-most --strict --bisect"
    ),
    "Disturb": "--load",
    "Explain": "--explain --stacks --top --trace --trace-blocks --observer",
    "Where": (
        "--target --target-option --agent --detach --stream --generator --generator-option --generator-lines "
        "--kernel --preempt --boot --setup --module --processors --measured-cpus --pace --soakers --qemu --jobs "
        "--cmdline --kernel-config --sysctl --proc-dump"
    ),
    "Repeat and compare": "--profile --set --given --repeat --abba --order-seed --shifts",
    "Output": (
        "--output --json --junit --markdown --verbose --quiet --report --format --section --percentile --histogram "
        "--all --nsecs --record --checkpoint --note --list --help --histofall --histfile --fifo "
        "--refresh_on_max --oscope --spike --spike-nodes --smi --tracemark --unbuffered --dbg_cyclictest"
    ),
}
HEADING_OF = {name: heading for heading, names in HEADINGS.items() for name in names.split()}
MOST_USED = "Most used"
NAME_COLUMNS = 26
"""The texts of all headings begin in one column; a longer name stands on a line of its own."""
_RANGE = re.compile(r"  \[1<=x<=\d+\]$")
"""What click adds for a count. The refusal of a number outside names the range, too."""


class GroupedCommand(click.Command):
    """A command with many options. most_used: those of its options that its help lists first."""

    def __init__(self, *args: Any, most_used: tuple[str, ...] = (), **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.most_used = most_used

    def use(self, option: click.Parameter) -> int:
        """The place of an option among the most used ones; all others have the same place behind these."""
        return next((at for at, name in enumerate(self.most_used) if name in option.opts), len(self.most_used))

    def heading(self, option: click.Parameter) -> str:
        """The heading of an option. StopIteration if it has none."""
        if self.use(option) < len(self.most_used):
            return MOST_USED
        return next(HEADING_OF[name] for name in option.opts if name in HEADING_OF)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows: dict[str, list[tuple[str, str]]] = {heading: [] for heading in (MOST_USED, *HEADINGS)}
        for each in sorted(self.get_params(ctx), key=self.use):
            record = each.get_help_record(ctx)
            if record is not None and isinstance(each, click.Option):
                rows[self.heading(each)].append((record[0].ljust(NAME_COLUMNS), _RANGE.sub("", record[1])))
        for heading, listed in rows.items():
            if listed:
                with formatter.section(heading):
                    formatter.write_dl(listed, col_max=NAME_COLUMNS)
