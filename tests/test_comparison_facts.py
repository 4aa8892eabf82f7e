# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

import pytest
from analysis_records import BEGIN, SERIES, block, fact, file, record

from rtproof.compare.likeness import RANKING, known_fact, ranked_facts
from rtproof.compare.run_metrics import facts_of
from rtproof.record.contents import Fact, Moment, SystemFile

START = Moment.START


def of(facts: tuple[Fact, ...] = (), files: tuple[SystemFile, ...] = ()) -> dict[str, str]:
    return facts_of(record([block([1_000] * 10)], facts=facts, files=files))


def test_the_measurement() -> None:
    facts = (fact("loads", "sched"), fact("policy", "fifo"), fact("priority", "80"), fact("duration_ns", "60000000000"))
    found = of((*facts, fact("policy", "other", START, 0), fact("timer_slack_ns", "50000", START, 0)))
    expected = {
        "probe": "timer",
        "method": "clock_nanosleep",
        "period": "1ms",
        "load": "sched",
        "CPUs": "2",
        "threads": "1",
        "policy": "other",
        "priority": "80",
        "timer slack": "50 us",
        "virtual time": "no",
        "length asked": "1min",
    }
    assert {key: found.get(key) for key in expected} == expected
    assert of((fact("loads", ""),))["load"] == "none of ours"
    assert "load" not in of()


def test_cpus_of_several_threads() -> None:
    series = [replace(SERIES, id=i, thread=i, cpu=i) for i in range(3)]
    blocks = [block([1_000], series=each) for each in series]
    assert facts_of(record(blocks, series))["CPUs"] == "0-2"
    assert facts_of(record([block([1])], (replace(SERIES, cpu=-1),)))["CPUs"] == "not bound"
    assert "CPUs" not in facts_of(record([], ()))


def test_the_system() -> None:
    begin = replace(BEGIN, kernel_release="6.1.0-rt7", machine="armv7l")
    files = (
        file("/proc/cpuinfo", "processor: 0\nmodel name\t: A chip\nprocessor: 1\nmodel name\t: A chip\n"),
        file("frequencies", "cpu0 performance 800 1800 1200\ncpu1 performance 800 1800 900\n"),
        file("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
        file("/proc/modules", "e1000 28672 1 - Live 0xffff\nloop 1 0 - Live 0x0\n"),
        file("/proc/loadavg", "0.1 0.2 0.3"),
        file("/proc/sys/vm/overcommit_memory", "0\n"),
        file("/sys/kernel/realtime", "1", Moment.END),
    )
    found = facts_of(record([block([1])], begin=begin, files=files))
    expected = {
        "kernel release": "6.1.0-rt7",
        "machine": "armv7l",
        "preemption model": "rt",
        "CPU model": "A chip",
        "governor": "performance",
        "frequencies": "800 to 1800 kHz",
        "clock source": "tsc",
        "module e1000": "loaded",
        "module loop": "loaded",
        "/proc/sys/vm/overcommit_memory": "0",
    }
    assert {key: found.get(key) for key in expected} == expected
    assert not {"/proc/loadavg", "/proc/modules", "/sys/kernel/realtime"} & set(found)


def test_words_of_the_command_line() -> None:
    found = of(files=(file("/proc/cmdline", 'quiet isolcpus=1 console=a console=b X="one, two" -- init=3\n'),))
    words = {key: said for key, said in found.items() if key.startswith("cmdline ")}
    assert words == {
        "cmdline quiet": "set",
        "cmdline isolcpus": "1",
        "cmdline console": "a b",
        "cmdline X": '"one, two"',
    }


def test_options_of_kernel_and_probe() -> None:
    config = file("/boot/config-6.1.0-rt", "CONFIG_HZ=250\n# CONFIG_KASAN is not set\nCONFIG_NO_HZ_FULL=y\n")
    found = of((fact("probe_options", "edge=rising,chip=0"),), (config,))
    assert (found["config HZ"], found["config NO_HZ_FULL"]) == ("250", "y")
    assert "config KASAN" not in found
    assert (found["option edge"], found["option chip"]) == ("rising", "0")


def test_what_could_not_be_had_is_not_known() -> None:
    assert "timer slack" not in of((fact("timer_slack_ns", "unavailable: no such file", START, 0),))


@pytest.mark.parametrize(
    ("more", "less"),
    [
        ("preemption model", "kernel release"),
        ("kernel release", "kernel version"),
        ("governor", "agent version"),
        ("config PROVE_LOCKING", "config HZ"),
        ("cmdline isolcpus", "cmdline quiet"),
        ("kernel version", "something new"),
        ("something new", "cmdline quiet"),
        ("cmdline quiet", "/proc/sys/vm/overcommit_memory"),
        ("/proc/sys/vm/overcommit_memory", "config SND"),
        ("config SND", "module snd"),
    ],
)
def test_what_is_known_to_matter_comes_first(more: str, less: str) -> None:
    assert ranked_facts(more) < ranked_facts(less)


def test_each_row_says_why_and_where_that_is_written() -> None:
    assert all(row.why and row.source and not row.why.endswith(".") for row in RANKING)
    found = known_fact("governor")
    assert found is not None
    assert "slowly" in found.why
    assert known_fact("config SND") is None
