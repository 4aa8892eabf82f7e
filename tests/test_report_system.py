# SPDX-License-Identifier: Apache-2.0

from collections.abc import Callable
from dataclasses import replace
from errno import ENOENT

import numpy as np
import pytest
from analysis_records import block, record
from hypothesis import given
from hypothesis import strategies as st
from report_cases import cut_off, interrupts, normal, nothing, pairs, row, sections_of, system_file, tables, words, work
from system_records import TOLD, config, target
from test_summary_trace import made, run
from trace_cases import FILES, TEXT

from rtproof import report
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis
from rtproof.record.contents import WHOLE_RUN, Counter, Damage, End, EndReason, Fact, Moment, Record
from rtproof.report.blocks import Block, Table, Text
from rtproof.report.sections import evidence, system
from rtproof.report.sections.tracing import observer_section, trace_section
from rtproof.summary import cpu_counts
from rtproof.summary.cpu_counts import CountRise


def test_machine_kernel_and_processor_are_named_once() -> None:
    assert tables(system.system_section(normal()))["Machine and kernel"].rows == (
        ("machine", "x86_64"),
        ("kernel", "6.1.0-rt #1 SMP PREEMPT_RT"),
        ("processor", "A processor"),
    )


def test_files_of_one_line_are_shown_and_a_change_is_named() -> None:
    analysis = normal()
    files = (
        system_file("/proc/loadavg", "1.00\n"),
        system_file("/proc/loadavg", "2.00\n", Moment.END),
        system_file("/sys/x/clocksource", "tsc\n"),
        system_file("/sys/x/clocksource", "tsc\n", Moment.END),
        system_file("/sys/x/isolated", "\n"),
    )
    found = tables(system.system_section(replace(analysis, record=replace(analysis.record, files=files))))
    assert found["Settings of the kernel"].rows == (
        ("/proc/loadavg", "1.00; at the end: 2.00"),
        ("/sys/x/clocksource", "tsc"),
        ("/sys/x/isolated", "(empty)"),
    )


def test_files_of_the_trace_are_no_settings() -> None:
    analysis = normal()
    files = (system_file("trace/trace_clock", "[mono]\n", Moment.END), system_file("threads", "one line\n"))
    found = tables(system.system_section(replace(analysis, record=replace(analysis.record, files=files))))
    assert "Settings of the kernel" not in found


def test_options_of_the_configuration_are_told_as_far_as_it_names_them() -> None:
    """What article 1 tells to switch on for its board."""
    text = "CONFIG_HIGH_RES_TIMERS=y\nCONFIG_HZ=128\n# CONFIG_ATMEL_TCLIB is not set\nCONFIG_DRM=m\nCONFIG_OTHER=y\n"
    analysis = replace(normal(), record=replace(normal().record, files=(config(text),)))
    found = tables(system.system_section(analysis))
    (table,) = (table for caption, table in found.items() if "configuration" in caption)
    assert table.caption == "The kernel's configuration, by /proc/config.gz: what articles tell to look at"
    assert table.rows == (
        ("CONFIG_HIGH_RES_TIMERS", "built in"),
        ("CONFIG_HZ", "128"),
        ("CONFIG_ATMEL_TCLIB", "left out"),
        ("CONFIG_DRM", "a module"),
    )


def test_every_file_is_listed_with_its_size_or_why_it_was_not_read() -> None:
    table = tables(system.system_section(normal()))["Files kept in the record"]
    assert table.folded
    assert ("/proc/modules", "start", "not read: No such file or directory") in table.rows
    assert ("/proc/cmdline", "start", "17 bytes") in table.rows
    assert len(table.rows) == len(normal().record.files)


def test_a_file_in_parts_is_one_row() -> None:
    parts = (system_file("trace/text", "abc", Moment.END), system_file("trace/text", "de", Moment.END))
    analysis = replace(normal(), record=replace(normal().record, files=(*parts, system_file("trace/text", "f"))))
    table = tables(system.system_section(analysis))["Files kept in the record"]
    assert table.rows == (("trace/text", "end", "5 bytes in 2 parts"), ("trace/text", "start", "1 bytes"))


def test_what_the_host_told_is_listed_but_not_the_command() -> None:
    sections = report.compose(normal(), {"target": "ssh board7"}, "rtproof run")
    (section,) = (section for section in sections if section.name == "system")
    rows = tables(section.blocks)["Machine and kernel"].rows
    assert ("target", "ssh board7") in rows
    assert not any("rtproof run" in cell for row in rows for cell in row)


def test_a_record_without_files_names_what_it_knows_of_the_kernel() -> None:
    assert list(tables(system.system_section(nothing()))) == ["Machine and kernel", "Preemption model"]


def test_no_kernel_beside_linux_is_called_none() -> None:
    """In the JSON form it is "linux", which as an answer to what runs beside Linux reads like a riddle."""
    files = tuple(
        replace(system_file(path, ""), errno=ENOENT) for path in ("/proc/xenomai", "/sys/class/evl", "/proc/rtai")
    )
    analysis = normal()
    for kept, value in ((files, "none"), ((), "unknown")):
        found = tables(system.system_section(replace(analysis, record=replace(analysis.record, files=kept))))
        rows = {row[0]: row[1] for row in found["Preemption model"].rows}
        assert rows["kernel beside Linux"] == value


# The sections trace and observer.


def rendered(section: Callable[[Analysis], list[Block]], of: Record) -> tuple[list[str], list[Table]]:
    """Paragraphs and tables."""
    blocks = section(analyse(of))
    texts = [paragraph for each in blocks if isinstance(each, Text) for paragraph in each.paragraphs]
    return texts, [each for each in blocks if isinstance(each, Table)]


def test_a_run_that_was_not_traced_has_neither() -> None:
    plain = record([block([1_000])])
    assert (rendered(trace_section, plain), rendered(observer_section, plain)) == (([], []), ([], []))


def test_what_was_lost_is_told() -> None:
    texts, (table,) = rendered(trace_section, made())
    assert table.rows[0] == ("sched_waking", "2")
    assert texts[0].startswith("5 events by the clock mono; 4 were overwritten by later ones and 1 was dropped.")
    assert texts[0].endswith("About buffer_kib=192 would have held all.")
    assert texts[1].endswith("from 0.000 s to 0.001 s of the run's time; what is left is without gaps from 0.000 s on.")
    assert texts[2] == "This kernel has no events spi_*, sys_enter_nanosleep*."


def test_a_text_that_is_not_whole_is_told() -> None:
    short = "\n".join(TEXT.splitlines()[:4])
    texts, _ = rendered(trace_section, replace(made(text=short), events=()))
    assert texts[1].startswith("The text has 1 event, which is not what the buffers had")


def test_nothing_lost_and_nothing_missing_is_said_in_short() -> None:
    whole = {"cpu1/stats": FILES["cpu0/stats"].replace("3", "2"), "about": "endian little\nmissing\n"}
    texts, _ = rendered(trace_section, replace(made(**whole), events=()))
    assert texts[0] == "5 events by the clock mono, and none was lost."
    assert texts[1] == "Recorded from an unknown time to the end of the run's time."
    assert len(texts) == 3


def test_an_effect_is_told_with_its_interval() -> None:
    texts, (table,) = rendered(observer_section, run(1, 2_000))
    assert [row[0] for row in table.rows] == ["mean", "median", "maximum"]
    assert texts[0].startswith("n = 10 sets of four blocks of 100 ms, of whose beginning 13 ms are left out")
    assert any(text.startswith("With tracing the median was higher by ") for text in texts)


def test_the_effect_is_in_the_short_form_that_a_run_prints() -> None:
    short = [section.name for section in report.compose(analyse(run(1, 2_000)), short=True)]
    assert "observer" in short


def test_no_effect_is_told_with_what_it_could_be_at_most() -> None:
    texts, _ = rendered(observer_section, run(4, 0))
    assert any(
        text.startswith("The median shows no effect of tracing; if there is one, it is below ") for text in texts
    )


def test_a_comparison_that_is_refused_says_why() -> None:
    texts, tables = rendered(observer_section, run(1, 0, blocks=4))
    assert tables == []
    assert texts == ["No comparison: it takes 8 sets of four whole blocks and there are 1: measure for longer."]


WORK = "Work done while measuring; a load that stands still is no load"


def with_counters(*counters: Counter) -> Analysis:
    analysis = normal()
    return replace(analysis, record=replace(analysis.record, counters=counters))


def test_work_is_counted_between_readings_and_per_second() -> None:
    done = row(tables(evidence.loads_section(normal()))[WORK], "load.sched")
    assert list(done.values())[1:] == ["messages", "3,000", "1,500", "1,000", "2,000"]


def test_a_load_that_stands_still_shows() -> None:
    done = row(tables(evidence.loads_section(with_counters(work(5, 5, 5))))[WORK], "load.sched")
    assert (done["work done"], done["per second"]) == ("0", "0")


def test_a_last_reading_that_comes_at_once_is_no_second() -> None:
    counter = replace(work(0, 1_000, 1_000), time_ns=np.array([0, 1_000_000_000, 1_000_000_100]))
    assert row(tables(evidence.loads_section(with_counters(counter)))[WORK], "load.sched")["slowest second"] == "1,000"


def test_a_load_says_how_it_runs_here() -> None:
    analysis = with_counters(work(0, 1))
    note = Fact(0, WHOLE_RUN, Moment.START, "load.sched.lack", "over 127.0.0.1: the kernel has no veth devices")
    noted = replace(analysis, record=replace(analysis.record, facts=(note,)))
    assert "load.sched: over 127.0.0.1: the kernel has no veth devices." in words(evidence.loads_section(noted))
    assert "load.sched:" not in words(evidence.loads_section(analysis))


@pytest.mark.parametrize("counter", [work(7), replace(work(7, 9), time_ns=np.array([5, 5]))])
def test_readings_that_give_no_rate(counter: Counter) -> None:
    assert row(tables(evidence.loads_section(with_counters(counter)))[WORK], "load.sched")["per second"] == "unknown"


def test_gauges_have_smallest_mean_and_largest() -> None:
    gauge = replace(work(40_000, 50_000, 45_000), grows=False, name="temperature.0", unit="millidegree")
    blocks = evidence.loads_section(with_counters(gauge))
    read = row(tables(blocks)["Readings, one a second"], "temperature.0")
    assert list(read.values())[1:] == ["millidegree", "3", "40,000", "45,000", "50,000"]
    assert "No load of rtproof's own ran" in words(blocks)


def test_without_counters_it_is_said_that_no_load_ran() -> None:
    assert words(evidence.loads_section(nothing())).strip() == evidence.NONE


CAPTION = "Interrupts that rose between start and end"


def test_what_rose_is_listed_with_its_rate() -> None:
    table = tables(evidence.interrupts_section(normal()))[CAPTION]
    assert table.rows == (
        ("LOC", "3,000", "1,000", "3,000", "Local timer interrupts"),
        ("0", "7", "2.33", "7", "IO-APIC 2-edge timer"),
    )


def test_only_cpus_that_were_measured_count_as_such() -> None:
    analysis = normal()
    files = (
        system_file("/proc/interrupts", "CPU1 CPU9\n5: 0 0 x"),
        system_file("/proc/interrupts", "CPU1 CPU9\n5: 3 40 x", Moment.END),
    )
    table = tables(evidence.interrupts_section(replace(analysis, record=replace(analysis.record, files=files))))[
        CAPTION
    ]
    assert table.rows[0][:4] == ("5", "43", "14.3", "3")
    unbound = tuple(replace(each, series=replace(each.series, cpu=-1)) for each in analysis.summaries)
    free = replace(analysis, summaries=unbound, record=replace(analysis.record, files=files))
    assert tables(evidence.interrupts_section(free))[CAPTION].rows[0][3] == "unknown"


def test_a_long_list_is_cut_and_says_so() -> None:
    analysis = normal()
    before = "CPU0\n" + "".join(f"{at}: 0 x\n" for at in range(40))
    after = "CPU0\n" + "".join(f"{at}: {at} x\n" for at in range(40))
    files = (system_file("/proc/softirqs", before), system_file("/proc/softirqs", after, Moment.END))
    found = evidence.interrupts_section(replace(analysis, record=replace(analysis.record, files=files)))
    (table,) = tables(found).values()
    assert table.caption.endswith(", the 15 most frequent of 39")
    assert [each[0] for each in table.rows[:2]] == ["39", "38"]


def test_what_is_missing_is_said() -> None:
    said = words(evidence.interrupts_section(nothing()))
    assert "the record does not have /proc/interrupts of both start and end" in said
    assert "/proc/softirqs" in said


def test_what_stood_still_is_said() -> None:
    analysis = normal()
    files = tuple(system_file("/proc/interrupts", "CPU0\n1: 5 x", moment) for moment in (Moment.START, Moment.END))
    said = words(evidence.interrupts_section(replace(analysis, record=replace(analysis.record, files=files))))
    assert "Interrupts: none rose between start and end." in said


def code(blocks: object) -> list[tuple[str, ...]]:
    assert isinstance(blocks, list | tuple)
    return [block.paragraphs for block in blocks if isinstance(block, Text) and block.kind == "code"]


def test_the_command_of_the_user_comes_before_that_of_the_agent() -> None:
    commands = code(sections_of(normal(), "rtproof run --limit 500us --load sched")["repeat"].blocks)
    assert commands[:2] == [
        ("rtproof run --limit 500us --load sched",),
        ("rtproof-agent run -o run.rtrec --duration 20s",),
    ]


def test_without_a_command_the_agent_s_own_is_left() -> None:
    assert code(evidence.repeat_section(normal()))[0] == ("rtproof-agent run -o run.rtrec --duration 20s",)
    assert code(evidence.repeat_section(nothing())) == [
        ("rtproof show RUN", "rtproof report RUN", "rtproof export RUN --help")
    ]


def test_paths_are_quoted_for_the_shell() -> None:
    analysis = normal()
    odd = replace(analysis, record=replace(analysis.record, path="/tmp/my run/it's.rtrec"))
    assert code(evidence.repeat_section(odd))[-1][0] == "rtproof show '/tmp/my run/it'\"'\"'s.rtrec'"
    assert pairs(tables(evidence.repeat_section(odd))["The record"])["file"].startswith("it's.rtrec, ")


def test_a_record_that_was_cut_off_or_damaged_says_so() -> None:
    analysis = cut_off()
    hurt = replace(analysis, record=replace(analysis.record, damage=(Damage(4, 8, "8 bytes at 4 are no chunk"),)))
    rows = tables(evidence.repeat_section(hurt))["The record"].rows
    assert ("damage", "8 bytes at 4 are no chunk") in rows
    assert any(what == "ended" and value.startswith("cut off: ") for what, value in rows)


@pytest.mark.parametrize("reason", EndReason)
def test_every_way_to_end_has_words(reason: EndReason) -> None:
    analysis = normal()
    ended = replace(analysis, record=replace(analysis.record, end=End(5 * 10**9, reason, "so it was", ())))
    rows = pairs(tables(evidence.repeat_section(ended))["The record"])
    assert rows["ended"] == f"{evidence.REASONS[reason]} (so it was), 5.000 s after measuring began"


PATH = "/proc/interrupts"


def test_what_rose_most_comes_first_and_what_did_not_is_left_out() -> None:
    files = (interrupts(100, 1_000, 0, moment=Moment.START), interrupts(107, 4_000, 2, moment=Moment.END))
    assert cpu_counts.count_rises(record([], files=files), PATH) == [
        CountRise("LOC", {0: 3_000, 1: 0}, "Local timer interrupts"),
        CountRise("0", {0: 7, 1: 0}, "IO-APIC 2-edge timer"),
        CountRise("ERR", {cpu_counts.WHOLE_MACHINE: 2}, ""),
    ]


def test_without_both_readings_nothing_is_said() -> None:
    assert cpu_counts.count_rises(record([], files=(interrupts(1, 1, 1, moment=Moment.START),)), PATH) is None


def test_an_interrupt_that_came_up_during_the_run_counts_from_zero() -> None:
    files = (system_file(PATH, "CPU0\n"), system_file(PATH, "CPU0\n 9: 5 new\n", Moment.END))
    assert cpu_counts.count_rises(record([], files=files), PATH) == [CountRise("9", {0: 5}, "new")]


def test_a_counter_of_32_bits_goes_round() -> None:
    files = (system_file(PATH, "CPU0\n 9: 4294967290 x\n"), system_file(PATH, "CPU0\n 9: 4 x\n", Moment.END))
    assert cpu_counts.count_rises(record([], files=files), PATH) == [CountRise("9", {0: 10}, "x")]


def test_cpus_that_are_offline_leave_gaps_in_the_numbers() -> None:
    rows = cpu_counts.per_cpu_counts("     CPU0   CPU2\n LOC: 5 6 Local timer\n")
    assert rows["LOC"].counts == {0: 5, 2: 6}


@given(st.text(), st.text())
def test_no_text_is_too_strange(before: str, after: str) -> None:
    files = (system_file(PATH, before), system_file(PATH, after, Moment.END))
    rises = cpu_counts.count_rises(record([], files=files), PATH)
    assert rises is not None
    assert all(rise.total > 0 for rise in rises)


BLOCKS = system.threads_section(analyse(TOLD))


def test_the_most_urgent_comes_first_and_all_are_folded() -> None:
    urgent, every = (block for block in BLOCKS if isinstance(block, Table))
    assert [row[-1] for row in urgent.rows] == [
        *("a (strange) name", "rtproof-0", "[irq/24-eth0]", "[irq/25-mmc0]", "[ktimers/0]"),
    ]
    assert (urgent.folded, every.folded) == (False, True)
    assert len(every.rows) == 7
    assert ("70", "70", "TS", "-", "-20", "1", "[kworker/1:0H-kblockd]") in every.rows


def test_handlers_of_interrupts_are_counted_with_their_priorities() -> None:
    assert words(BLOCKS) == (
        "\n7 threads, 5 of them with a real-time policy; 2 are handlers of interrupts, with priority 50, 40."
    )


def test_without_a_list_there_is_no_section() -> None:
    assert system.threads_section(nothing()) == []


def test_the_system_section_has_model_facts_and_the_log() -> None:
    found = tables(system.system_section(analyse(TOLD)))
    built, effective, core = found["Preemption model"].rows
    assert (built[1], effective[1], core[1]) == ("rt", "rt", "none")
    assert "threads that only PREEMPT_RT has: ktimers/0" in built[3]
    assert len(found["What the target says of itself"].rows) == 11
    assert len(found["The kernel's log before the run"].rows) == 2


def test_disagreements_are_said_under_the_table() -> None:
    blocks = system.system_section(analyse(target("#1 PREEMPT x", release="6.6.1-rt3")))
    assert "the release is called 6.6.1-rt3" in words(blocks)


THREADS = "What each thread really ran as; a change is shown as start > end"
INSIDE = "Counted inside the measured loop"


def test_what_was_asked_stands_above_what_was_so() -> None:
    table = tables(evidence.evidence_section(normal()))[THREADS.split(":", maxsplit=1)[0]]
    assert table.header[:3] == ("thread", "policy (asked: fifo)", "priority (asked: 80)")
    assert table.rows[0][:2] == ("thread 0", "fifo > other")
    assert table.rows[1][:2] == ("thread 1", "unknown")


def test_counts_of_the_loop_are_given_per_thread_with_units() -> None:
    table = tables(evidence.evidence_section(normal()))[INSIDE]
    thread = row(table, "thread 0")
    assert (thread["minor faults"], thread["CPU time"], thread["migrations"]) == ("1,234,567", "139.415 ms", "unknown")


def test_facts_of_the_run_are_in_words() -> None:
    found = tables(evidence.evidence_section(normal()))
    asked = pairs(found["Asked of the whole run"])
    assert (asked["period"], asked["phase"], asked["policy"]) == ("1ms", "even: spread over a period", "fifo")
    assert "args" not in asked
    assert found["In force during the run"].rows == (("memory locked", "yes"),)


def test_events_are_listed_with_their_time() -> None:
    table = tables(evidence.evidence_section(normal()))["What happened during the run"]
    assert table.rows == (
        ("1.000", "thread 0", "kernel", "a line of the log"),
        ("2.000", "whole run", "clock_stepped", "by 1 s"),
    )


def test_a_record_without_facts_has_no_evidence() -> None:
    assert evidence.evidence_section(nothing()) == []
