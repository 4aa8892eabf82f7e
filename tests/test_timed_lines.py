# SPDX-License-Identifier: Apache-2.0
"""Lines that another tool printed one after the other: their times, what they refute, and what is drawn of them."""

import numpy as np
import pytest
from test_tool_outputs import output

from rtproof import importers
from rtproof.core.errors import UserError
from rtproof.importers import cyclictest, latmus, linuxcnc, rtai, xenomai
from rtproof.judge import timed_lines
from rtproof.judge.analysis_model import State
from rtproof.judge.histogram_only import analyse_histogram
from rtproof.record.requirement import Requirement
from rtproof.summary.imported_histogram import NEVER, ImportedHistogram, TimedLines

US, S, H = 1_000, 1_000_000_000, 3_600_000_000_000
LIMIT = 100 * US
HEAD = "RTT|  {0:02d}:{1:02d}:{2:02d}  (periodic user-mode task, 100 us period, priority 99)\n"
COLUMNS = "RTH|----lat min|----lat avg|----lat max|-overrun|---msw|---lat best|--lat worst\n"


def lines(most_us: list[float], *, so_far: bool = False, step_s: int = 1, latest: int | None = None) -> TimedLines:
    """A line for each maximum in microseconds, one after each step."""
    end = np.arange(1, len(most_us) + 1, dtype=np.int64) * step_s * S
    last = end + S if latest is None else np.full(end.size, latest)
    most = np.array([round(each * US) for each in most_us], np.int64)
    return TimedLines("", end - step_s * S, end, last, most * 0, most, so_far=so_far)


def asked(at_most_ns: int = H, limit_ns: int = LIMIT) -> Requirement:
    return Requirement(limit_ns, at_most_ns)


def text(most_us: list[float], *, first_s: int = 1, overruns: int = 0, end: bool = True, every: int = 21) -> str:
    """What Xenomai's latency prints with these maxima, one a second."""
    rows = []
    for at, most in enumerate(most_us):
        if at % every == 0:
            t = first_s + at
            rows += [HEAD.format(t // 3600, t // 60 % 60, t % 60), COLUMNS]
        rows.append(f"RTD|{1:11.3f}|{2:11.3f}|{most:11.3f}|{overruns:8d}|{0:6d}|{1:11.3f}|{max(most_us):11.3f}\n")
    n = first_s - 1 + len(most_us)
    clock = f"{n // 3600:02d}:{n // 60 % 60:02d}:{n % 60:02d}"
    last = f"RTS|{1:11.3f}|{2:11.3f}|{max(most_us):11.3f}|{overruns:8d}|{0:6d}|    {clock}/{clock}\n"
    return "".join(rows) + (last if end else "")


def verdict(found: ImportedHistogram, requirement: Requirement) -> tuple[State, str]:
    judged = analyse_histogram(found, (requirement,)).verdict
    return judged.state, judged.reasons[judged.state is not State.INVALID]


def test_the_first_line_above_the_limit_is_one_episode_in_its_second() -> None:
    found = xenomai.read(text([5.0] * 4 + [130.0] + [5.0] * 295))
    state, reason = verdict(found, asked())
    assert state is State.REFUTED
    assert reason.startswith("its lines exceeded the limit in at least 1 episode within the first 6.0 s")


def test_lines_a_gap_apart_are_episodes_and_nearer_ones_are_one() -> None:
    requirement = asked()
    for apart, episodes in ((61, 1), (62, 2)):
        some = (lines([5.0] * 10 + [130.0] + [5.0] * (apart - 1) + [130.0]),)
        late = timed_lines.late_stretches(some, LIMIT)
        assert (len(late), len(timed_lines.separate_episodes(some, requirement, late))) == (2, episodes)


def test_a_chain_of_late_lines_is_one_episode() -> None:
    some = (lines(([130.0] + [5.0] * 39) * 5),)
    late = timed_lines.late_stretches(some, LIMIT)
    assert len(timed_lines.separate_episodes(some, asked(), late)) == 1


def test_late_lines_without_a_pause_refute_by_their_length() -> None:
    some = (lines([130.0] * 603),)
    told = timed_lines.too_long(some, asked())
    assert told is not None
    assert "without a pause of 1 min for more than 10 min" in told
    assert timed_lines.too_long((lines([130.0] * 602),), asked()) is None
    assert timed_lines.too_long((lines(([130.0] + [5.0] * 70) * 20),), asked()) is None


def test_of_a_maximum_so_far_only_a_new_one_is_late() -> None:
    some = (lines([5.0, 130.0, 130.0, 130.0, 140.0], so_far=True),)
    late = timed_lines.late_stretches(some, LIMIT)
    assert [end_ns // S for _, end_ns, _ in late] == [2, 5]
    # Values between the two may be hidden, so only a pause longer than an episode may last parts them.
    assert len(timed_lines.separate_episodes(some, asked(), late)) == 1
    apart = (lines([5.0, *[130.0] * 602, 140.0], so_far=True),)
    assert len(timed_lines.separate_episodes(apart, asked(), timed_lines.late_stretches(apart, LIMIT))) == 2
    assert timed_lines.too_long(apart, asked()) is None


def test_lines_that_are_gone_in_the_middle_make_the_time_uncertain() -> None:
    whole = text([5.0] * 42 + [130.0] + [5.0] * 300, end=False)
    parts = whole.split("RTT|")
    cut = "RTT|".join([*parts[:2], *parts[10:]])
    (some,) = xenomai.read(cut).lines
    assert int(some.latest_ns[0] - some.end_ns[0]) >= 8 * 21 * S


def test_a_run_without_an_exceedance_is_proven_by_its_lines_unless_some_are_gone() -> None:
    whole = text([5.0] * 600)
    assert verdict(xenomai.read(whole), asked(60 * S))[0] is State.PROVEN
    rows = whole.splitlines(keepends=True)
    assert verdict(xenomai.read("".join(rows[:200] + rows[250:])), asked(60 * S))[0] is State.UNDECIDED


def test_rtais_lines_have_times_if_the_head_is_there() -> None:
    (some,) = rtai.read(output("rtai-latency.txt")).lines
    assert (some.end_ns // S).tolist() == [1, 2, 3]
    assert int(some.most_ns.max()) == 53_262
    headless = "\n".join(row for row in output("rtai-latency.txt").splitlines() if not row.startswith("#"))
    assert rtai.read(headless).lines == ()


def test_cyclictests_lines_are_maxima_so_far_in_intervals() -> None:
    found = cyclictest.read(output("cyclictest-live.txt"))
    assert [each.name for each in found.lines] == ["thread 0", "thread 1"]
    for each, part in zip(found.lines, found.parts, strict=True):
        assert each.so_far
        assert part.count is not None
        assert part.period_ns is not None
        assert int(each.end_ns[-1]) == part.count * part.period_ns
        assert (np.diff(each.most_ns) >= 0).all()
    assert ("load average", "11.00 9.09 7.86") in found.facts


def test_behind_a_value_as_long_as_the_interval_cyclictests_time_is_unknown() -> None:
    row = "T: 0 (  812) P:80 I:1000 C:{0:7d} Min:      4 Act:    9 Avg:   12 Max: {1:7d}\n"
    (some,) = cyclictest.read(row.format(100, 20) + row.format(200, 1_500) + row.format(300, 1_500)).lines
    assert some.latest_ns.tolist() == [1_100_000_000, NEVER, NEVER]


def test_linuxcncs_threads_are_two() -> None:
    found = linuxcnc.read(output("linuxcnc.txt"))
    assert [(part.min_ns, part.max_ns) for part in found.parts] == [(-9_200, 9_400), (-10_300, 35_600)]
    assert (found.duration_ns, found.count) == (4 * S, None)
    assert [each.name for each in found.lines] == ["base", "servo"]
    assert verdict(found, asked(limit_ns=20 * US))[0] is State.REFUTED
    assert verdict(found, asked(limit_ns=50 * US))[0] is State.UNDECIDED


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("    4 secs   base", "    1 secs   base", "lines of several runs"),
        ("max:   9.400", "max:   0.400", "lines of several runs"),
        ("4 secs  servo min: -10.300", "4 secs  servo min:  99.300", "minimum of a line is above its maximum"),
        ("2 secs   base", "2 secs   other", "its threads are base and servo"),
        ("max:  35.600", "max:9035600.000", "larger than it can count to"),
    ],
)
def test_linuxcncs_contradictions_are_refused(old: str, new: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        linuxcnc.read(output("linuxcnc.txt").replace(old, new))


@pytest.mark.parametrize("took", ["00:00:00", "00:04:50"])
def test_more_lines_than_its_time_has_seconds_are_a_fault(took: str) -> None:
    whole = text([5.0] * 299 + [130.0])
    assert verdict(xenomai.read(whole.replace("00:05:00/00:05:00", "00:04:58/00:05:00")), asked())[0] is State.UNDECIDED
    state, reason = verdict(xenomai.read(whole.replace("00:05:00/00:05:00", f"{took}/00:05:00")), asked())
    assert state is State.INVALID
    assert reason.startswith("it has 300 lines, and says that all took ")


def test_a_counter_of_overruns_that_wrapped_is_refused() -> None:
    with pytest.raises(UserError, match="the counter has wrapped"):
        xenomai.read(text([5.0] * 299 + [130.0], overruns=-2_147_483_648))
    with pytest.raises(UserError, match="OVERRUNS are fewer than none"):
        latmus.read(output("latmus.txt").replace("# sample count", "# OVERRUNS: -9\n# sample count"))


@pytest.mark.parametrize("cut", [*range(1, 77, 9), 85])
def test_a_line_that_was_cut_off_is_left_out(cut: int) -> None:
    """Wherever: a figure that lacks its last digits is none that was printed."""
    whole = text([5.0] * 20 + [130.0] + [5.0] * 20, end=False)
    last = len(whole.splitlines(keepends=True)[-1])
    some = importers.read_text(whole[:-cut])
    assert some
    assert (some.max_ns, some.lines[0].most_ns.size) == (130_000, 40 if cut <= last else 39)
    assert not some.faults
    assert any("cut off in it" in doubt.what for doubt in some.doubts) is True
    of_rtai = output("rtai-latency.txt").rstrip("\n") + "\n"
    last = len(of_rtai.splitlines()[-1])
    some = importers.read_text(of_rtai[: -min(cut, last - 4)])
    assert some
    assert (some.lines[0].most_ns.size, some.faults) == (2, ())
