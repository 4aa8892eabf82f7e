# SPDX-License-Identifier: Apache-2.0

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from analysis_records import MS, SECOND, SERIES, array, block, end, fact, record
from doubt_cases import clean, facts, files, said_of
from hypothesis import given
from hypothesis import strategies as st
from report_cases import system_file
from system_records import NO_COKERNEL, XENOMAI_2, XENOMAI_3, missing, target

from rtproof.judge.doubts.registry import CHECKS, doubts_about_run
from rtproof.judge.evidence import Evidence, count_exceedances, end_ns, gather_evidence
from rtproof.record import histogram_bins
from rtproof.record.activations import number_activations, slices_of_views
from rtproof.record.contents import Counter, EndReason, Event, Level, Moment, Record, Top, View
from rtproof.record.requirement import Requirement
from rtproof.summary.measured_kernel import (
    cokernel_of,
    counts_mode_switches,
    mode_switches,
    parse_kernel_config,
)
from rtproof.summary.recorded_facts import (
    agent_time_ns,
)
from rtproof.summary.series import pooled, summarise
from rtproof.summary.summary_model import Severity

NO = array()
HOURLY = Requirement(MS, 3_600 * SECOND)


def evidence_of(made: Record, asked: Requirement | None = HOURLY) -> Evidence:
    summaries = summarise(made)
    return gather_evidence(made, asked, summaries, pooled(summaries), ())


def test_the_figures_of_a_run() -> None:
    other = replace(SERIES, id=1, thread=4, cpu=-1)
    blocks = [block([10, 20, 2 * MS + 1], {2: 2}), block([30] * 7 + [3_000_000], series=other)]
    made = record(blocks, [SERIES, other], facts=(fact("duration_ns", 10 * MS), fact("loads", "sched cpu")))
    found = evidence_of(made)
    assert (found.obtained, found.missed, found.expected, found.lost) == (11, 2, 13, 0)
    assert (found.exceedances_observed, found.exceedances_schedule) == (2, 3)
    assert (found.measured_ns, found.asked_duration_ns, found.ended_as_asked) == (8 * MS, 10 * MS, True)
    assert (found.kernel, found.loads, len(found.episodes)) == ("6.1.0-rt", "sched cpu", 1)
    assert found.worst is not None
    assert (found.worst.value_ns, found.worst.thread, found.worst.cpu, found.worst.due_ns) == (3 * MS, 4, -1, 7 * MS)
    assert found.worst.at == "2023-11-14 22:13:20.007 UTC"


@pytest.mark.parametrize("reason", list(EndReason))
def test_only_an_end_as_asked_is_one(reason: EndReason) -> None:
    blocks = [block([10])]
    found = evidence_of(record(blocks, end=end(blocks, reason)), None)
    assert found.ended_as_asked is (reason is EndReason.AS_ASKED)


def test_a_thread_that_stalled_was_watched_until_the_end() -> None:
    made = record([block([10] * 5)], events=(Event(90 * SECOND, 0, "stalled", "since_ns=5000000"),))
    found = evidence_of(made)
    assert found.measured_ns == 90 * SECOND
    assert found.episodes[0].worst_ns == 90 * SECOND - 5_000_000


def test_of_a_record_that_was_cut_off_only_what_all_threads_left_is_watched() -> None:
    """The thread with less may have hung, so that what the other one has beyond that tells nothing."""
    other = replace(SERIES, id=1, thread=1)
    made = record([block([10] * 9), block([10] * 5, series=other)], [SERIES, other], end=None)
    found = evidence_of(made)
    assert (found.measured_ns, found.cut_off) == (5 * MS, True)


def test_of_a_record_that_was_cut_off_an_episode_beyond_what_is_watched_is_in_no_rate() -> None:
    """It was told as if it had come within the 5 s."""
    other = replace(SERIES, id=1, thread=1)
    late = [10] * 9_000
    late[4_000] = late[7_000] = 2 * MS
    blocks = [block(late), block([10] * 5_000, series=other)]
    made = record(blocks, [SERIES, other], end=None)
    wanted = Requirement(MS, 3_600 * SECOND, gap_ns=SECOND)
    found = evidence_of(made, wanted)
    assert [each.first_second for each in found.episodes] == [4]
    assert (found.measured_ns, found.exceedances_observed) == (5 * SECOND, 2)
    whole = replace(made, end=record(blocks, [SERIES, other]).end)
    assert len(evidence_of(whole, wanted).episodes) == 2


def test_the_last_instant_known() -> None:
    tick = Counter(0, True, "load.cpu", "loops", array(SECOND, 7 * SECOND), array(1, 2))
    made = record([block([10])], end=None, counters=(tick,))
    assert end_ns(made, pooled(summarise(made))) == 7 * SECOND


def test_the_largest_values_tell_what_a_wide_bin_does_not() -> None:
    """A limit in the middle of a bin of the record's scale."""
    low, high = (int(edge) for edge in histogram_bins.bin_edges(histogram_bins.bin_of(5 * MS)))
    values = np.array([10, low, low + 1, high, high], np.int64)
    parts = tuple(slices_of_views(SERIES, number_activations(SERIES, 0, 0, values, np.zeros_like(values))))
    top = Top(3, array(3, 4, 2), array(3 * MS, 4 * MS, 2 * MS), array(high, high, low + 1))
    bare = replace(record([]), slices=parts)
    (summary,) = summarise(bare)
    assert count_exceedances(summary, low + 1) == (4, 4)
    (summary,) = summarise(replace(bare, top={0: top}))
    assert count_exceedances(summary, low + 1) == (2, 2)
    assert count_exceedances(summary, low) == (4, 4)
    assert parts[0].view is View.OBSERVED


def told(limit_ns: int, ran: list[int], missed: list[int]) -> Level:
    seconds = np.arange(len(ran))
    return Level(0, limit_ns, False, 0, 0.0, 0, seconds, array(*ran), array(*missed), NO, NO, NO, True)


def test_the_agent_tells_how_many_were_above_its_limit() -> None:
    """More in a bin than the largest values can tell apart: the agent counted them, also the missed ones."""
    low, high = (int(edge) for edge in histogram_bins.bin_edges(histogram_bins.bin_of(5 * MS)))
    values = np.array([10] * 4 + [high] * 300 + [low] * 700, np.int64)
    parts = tuple(slices_of_views(SERIES, number_activations(SERIES, 0, 0, values, np.zeros_like(values))))
    bare = replace(record([]), slices=parts)
    for level, expected in (
        (told(low, [200, 100], [0, 0]), (300, 300)),
        (told(low, [200, 100], [0, 7]), (300, 307)),
        (told(low + 1, [200, 100], [0, 0]), (1000, 1000)),
    ):
        found = evidence_of(replace(bare, levels={SERIES.id: (level,)}), Requirement(low, 3_600 * SECOND))
        assert (found.exceedances_observed, found.exceedances_schedule) == expected


def test_counts_that_lack_some_are_not_believed() -> None:
    values = np.array([10] * 4 + [5 * MS] * 3, np.int64)
    parts = tuple(slices_of_views(SERIES, number_activations(SERIES, 0, 0, values, np.zeros_like(values))))
    made = replace(record([]), slices=parts, levels={SERIES.id: (told(MS, [1, 1], [0, 0]),)})
    found = evidence_of(made)
    assert (found.exceedances_observed, found.exceedances_schedule) == (3, 3)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        *(("0s", 0), ("1.5ms", 1_500_000), (".5ms", 500_000), ("2.s", 2 * 10**9), ("0.0000000019s", 1)),
        *(("1min", 60 * 10**9), ("2d", 172_800 * 10**9), ("1day", 86_400 * 10**9)),
        *((text, None) for text in (None, "", "5", "ms", ".ms", "1.2.3ms", "-1ms", "1 ms", "1m", "1sec")),
    ],
)
def test_times_are_read_as_the_agent_reads_them(text: str | None, ns: int | None) -> None:
    """The cases of agent/tests/test_text.c."""
    assert agent_time_ns(text) == ns


# The list of doubts as a whole: a clean run has none, the page names all, the grave ones come first.


ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src" / "rtproof"


def test_a_clean_run_leaves_no_doubt() -> None:
    assert said_of(clean()) == {}
    assert said_of(clean(), limit_ns=None) == {}


def test_every_code_is_on_the_page_and_no_other() -> None:
    sources = "".join(path.read_text() for path in SOURCES.rglob("*.py"))
    codes = set(re.findall(r'Doubt\(\s*"([a-z-]+)"', sources))
    doubts = (ROOT / "docs" / "json-schema.md").read_text().partition("## Doubts")[2].partition("\n## ")[0]
    tables = doubts + (ROOT / "docs" / "objections.md").read_text()
    assert codes == set(re.findall(r"^\| `([a-z-]+)` \|", tables, re.MULTILINE))
    assert len(CHECKS) == len(set(CHECKS))


def test_what_makes_a_run_invalid_comes_first() -> None:
    made = clean(
        facts=facts({("warmup_ns", Moment.ASKED): "0", ("cpu", Moment.END): "1"}),
        files=files({("/proc/cpuinfo", Moment.START): "flags : hypervisor"}),
    )
    found = doubts_about_run(made, summarise(made), None)
    assert [d.code for d in found] == ["cpu", "warm-up", "guest"]
    assert [d.severity for d in found] == [Severity.INVALID, Severity.WARNING, Severity.WARNING]
    assert all(d.what and d.remedy for d in found)


def test_what_nobody_looked_for_or_does_not_show_is_unknown() -> None:
    assert cokernel_of(target("x"), None, "").value is None
    assert cokernel_of(target("x", *NO_COKERNEL[1:], missing("/proc/xenomai", 13)), None, "").value is None
    built = parse_kernel_config("/proc/config.gz", "CONFIG_EVL=y\n")
    assert cokernel_of(target("x", *NO_COKERNEL), built, "").value is None


def test_mode_switches_are_those_of_both_ends() -> None:
    """Article 5's task fell back to Linux by a printf, which only this count shows."""
    path = "/proc/xenomai/sched/stat"
    files = (system_file(path, XENOMAI_3.format(3)), system_file(path, XENOMAI_3.format(90), Moment.END))
    assert mode_switches(target("x", *files))["817 sampling-817"] == (3, 90)
    old = (system_file("/proc/xenomai/stat", XENOMAI_2.format(1)),)
    assert mode_switches(target("x", *old))["411 latency"] == (1, None)
    assert mode_switches(target("x")) == {}


def test_in_band_switches_are_those_that_evl_counts() -> None:
    place = "/sys/devices/virtual/thread/{}/stats"
    files = (
        system_file(place.format("lat-sampler:2136"), "1 200 310 0 5000 1\n"),
        system_file(place.format("lat-sampler:2136"), "41 900 999 0 9000 1\n", Moment.END),
        system_file(place.format("late:7"), "2 1 1 0 1 0\n", Moment.END),
        missing(place.format("gone:9")),
    )
    assert mode_switches(target("x", *files)) == {
        "lat-sampler:2136": (1, 41),
        "late:7": (None, 2),
        "gone:9": (None, None),
    }


def test_a_name_may_have_blanks() -> None:
    assert counts_mode_switches(XENOMAI_3.format(7))["0 [IRQ4355: [timer]]"] == 0


@given(st.text())
def test_no_text_is_too_strange(text: str) -> None:
    assert all(number >= 0 for number in counts_mode_switches(f"CPU PID MSW NAME\n{text}").values())
