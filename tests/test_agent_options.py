# SPDX-License-Identifier: Apache-2.0
"""The desk's options that go to the agent, held to the agent's own table of options, which its ``help`` prints."""

import re
import subprocess
from pathlib import Path

import agent_process
import click
import pytest
import recompute

from rtproof.cli import shared_options
from rtproof.cli.shared_options import with_options

OPTION = re.compile(r"^ +(?:-\w, )?--(?P<name>[a-z-]+)(?P<value> [A-Z]\S*(?: [A-Z]+)?)?  +(?P<help>.*)$")


@pytest.fixture(scope="module")
def table() -> dict[str, re.Match[str]]:
    """Each option of the agent by its name."""
    said = subprocess.run([agent_process.agent(), "help"], capture_output=True, text=True, check=True).stdout
    found = [match for line in said.splitlines() if (match := OPTION.match(line))]
    assert len(found) == said.count("\n  -") + said.count("\n      --")
    return {match["name"]: match for match in found}


def desk_options() -> list[click.Option]:
    """``AGENT_OPTIONS`` as a command has them."""

    @click.command()
    @with_options(*shared_options.AGENT_OPTIONS)
    def command() -> None: ...

    return [parameter for parameter in command.params if isinstance(parameter, click.Option)]


@pytest.mark.parametrize("option", desk_options(), ids=lambda option: str(option.name))
def test_the_agent_has_every_option_of_the_desk_and_takes_a_value_where_the_desk_does(
    option: click.Option, table: dict[str, re.Match[str]]
) -> None:
    entry = table[option.opts[0].removeprefix("--")]
    assert bool(entry["value"]) is not option.is_flag


# What the agent makes of the user's limits.


NEVER_NS = 3_600_000_000_000
ALWAYS_NS = 1
OVER = re.compile(
    r"over thread=(\d+) limit_ns=(\d+) second=(\d+) worst_ns=(\d+) begin_ns=(\d+) end_ns=(\d+) count=(\d+)$"
)
PROGRESS = re.compile(
    r"progress .*thread=(\d+) .*obtained=(\d+) .*max_ns=(\d+) due_ns=(\d+) first_due_ns=\d+( recent\S*)*$"
)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A run of two threads over 2.2 s with a limit that everything is above and one that nothing is; what it said."""
    record = tmp_path_factory.mktemp("limits") / "record.rtrec"
    # Nobody wakes later than an hour or within a nanosecond of the due time, whatever this machine does meanwhile.
    limits = ("--limit", "1h", "--limit", "1ns", "--limit", "3600s")
    length = ("--warmup", "20ms", "--duration", "2200ms", "--period", "5ms", "--threads", "2")
    done = agent_process.run(
        "run", "-o", record, *agent_process.policy(), *length, *limits, "--progress", "200ms", "--record", "summary"
    )
    assert done.returncode == 0
    return record, done.stderr.splitlines()


def test_a_time_above_the_limit_is_told_before_the_progress_that_covers_it(
    told: tuple[Path, list[str]],
) -> None:
    counts: dict[tuple[int, int], int] = {}
    covered_ns = [0, 0]
    for line in told[1]:
        if over := OVER.match(line):
            thread, limit, second, worst, begin, end, count = map(int, over.groups())
            assert limit == ALWAYS_NS
            assert (second + 1) * 1_000_000_000 > covered_ns[thread]
            assert begin // 1_000_000_000 == second
            assert end >= begin + worst - limit
            assert count > counts.get((thread, begin), 0)
            counts[thread, begin] = count
        elif progress := PROGRESS.match(line):
            covered_ns[int(progress[1])] = int(progress[4])
    record = agent_process.whole(told[0])
    expected = {
        (series.thread, int(second))
        for series in record.series
        for second, obtained in zip(record.seconds[series.id].second, record.seconds[series.id].obtained, strict=True)
        if obtained
    }
    assert {(thread, begin // 1_000_000_000) for thread, begin in counts} == expected
    for series in record.series:
        level = record.exceeded(series.id, ALWAYS_NS)
        assert level is not None
        told_of = sum(count for (thread, _), count in counts.items() if thread == series.thread)
        assert told_of == int(level.ran.sum() + level.missed.sum())


def test_the_last_progress_covers_the_whole_run(told: tuple[Path, list[str]]) -> None:
    record = agent_process.whole(told[0])
    last = {int(m[1]): m for line in told[1] if (m := PROGRESS.match(line))}
    assert record.end is not None
    for series, totals in zip(record.series, record.end.totals, strict=True):
        assert int(last[series.thread][2]) == totals.obtained
        assert int(last[series.thread][4]) >= series.first_due_ns + 2_200_000_000
        assert int(last[series.thread][3]) == max(part.max for part in record.slices if part.series == series.id)


def test_what_is_above_is_that_of_the_samples(tmp_path: Path) -> None:
    """A limit that nearly everything is above, one in the middle and one that nothing is."""
    limits = ("--limit", "1ns", "--limit", "30us", "--limit", "1h")
    record = agent_process.measured(
        tmp_path / "r", *agent_process.policy(), *limits, "--duration", "1300ms", "--checkpoint", "300ms"
    )
    recompute.check(record)
    for series in record.series:
        always, _, never = record.levels[series.id]
        assert (always.value, never.value) == (ALWAYS_NS, NEVER_NS)
        assert always.index.size == sum(block.values.size for block in record.blocks(series.id)) > 0
        assert (never.second.size, never.index.size) == (0, 0)
