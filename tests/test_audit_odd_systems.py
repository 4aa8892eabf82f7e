# SPDX-License-Identifier: Apache-2.0
"""What the audit says of systems that are rare, and of facts that somebody made to harm."""

import pytest
from audit_cases import MISSING, judged, made_facts

from rtproof.audit import check_file, judgement
from rtproof.audit.audit_model import Outcome
from rtproof.audit.check import Severity
from rtproof.audit.facts import AuditRequest, Facts, KernelVersion, Reading, State, parse_cpu_list
from rtproof.audit.interrupts import read_table

CPU = "/sys/devices/system/cpu"


def _cpus(n: int, **names: str) -> dict[str, str | int]:
    named = {f"{CPU}/{name}": f"0-{n - 1}\n" for name in ("online", "possible", "present")}
    return {**named, **{f"{CPU}/{name}": text for name, text in names.items()}}


def _second_threads_off(request: AuditRequest | None = None) -> Facts:
    files = _cpus(8, online="0-5\n", isolated="2-3,6-7\n") | {
        "/proc/cmdline": "isolcpus=managed_irq,domain,2-3,6-7",
        "/proc/cpuinfo": "flags\t: fpu tsc\n",
        f"{CPU}/smt/active": "1\n",
        f"{CPU}/cpu2/topology/thread_siblings_list": "2\n",
        f"{CPU}/cpu3/topology/thread_siblings_list": "3\n",
        f"{CPU}/cpu6/topology/thread_siblings_list": MISSING,
    }
    return made_facts(files, request=request)


def test_second_hardware_threads_that_were_switched_off_are_no_contradiction() -> None:
    result = judged("boot.conflict", _second_threads_off())
    assert (result.outcome, result.severity) == (Outcome.FINDING, Severity.LOW)
    assert "isolcpus names CPUs that are offline: 6-7" in result.sentence
    assert "does not make sense" not in result.sentence


def test_siblings_of_offline_cpus_are_not_looked_for() -> None:
    assert judged("iso.smt", _second_threads_off()).outcome is Outcome.GOOD


def test_nodes_that_only_divide_the_memory_are_no_nodes() -> None:
    nodes = {f"/sys/devices/system/node/node{n}/cpulist": "0-3\n" for n in range(8)}
    assert judged("iso.numa", made_facts(_cpus(4, isolated="3\n") | nodes)).outcome is Outcome.NOT_APPLICABLE


def test_a_reserve_is_judged_by_low_memory() -> None:
    memory = "MemTotal:        4045312 kB\nLowTotal:         778240 kB\n"
    files: dict[str, str | int] = {
        "/proc/meminfo": memory,
        "/proc/sys/vm/min_free_kbytes": "3528\n",
        "/proc/sys/vm/watermark_boost_factor": "0\n",
    }
    assert judged("mem.minfree", made_facts(files, machine="armv7l")).outcome is Outcome.GOOD


HOSTILE = {
    "escape codes": "\x1b[31mred\x1b[0m\u202e\u2028\n",
    "a line of 1 MiB": "a" * (1 << 20),
    "many words": " ".join(f"w{i:x}" for i in range(150_000)),
    "overlapping lists of CPUs": ",".join(f"{i}-65535" for i in range(0, 65_000, 7)),
    "numbers without end": "9" * (1 << 20),
    "digits that are no ASCII": "\u0663\u00b2\u2167",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_files_are_shown_short_and_clean(text: str) -> None:
    sources = {source for check in check_file.all_checks() for source in check.read if source.startswith("/")}
    paths = {source.replace("[0-9]*", "1").replace("[0-9]", "1").replace("*", "1") for source in sources}
    files: dict[str, str | int] = dict.fromkeys(
        (paths | {"kernel-log", "/proc/cpuinfo", f"{CPU}/possible"}) - {"/proc/mounts"}, text
    )
    found = judgement.audit(made_facts(files, end=files))
    for result in found.results:
        assert len(result.sentence) <= judgement.LONGEST_SENTENCE + 3
        assert result.sentence.isprintable()
        assert all(value.value.isprintable() and value.path.isprintable() for value in result.read)


def test_a_list_that_names_a_cpu_again_and_again_is_no_list() -> None:
    assert parse_cpu_list(",".join(["0-60000"] * 100)) is None
    assert parse_cpu_list(",".join(str(cpu) for cpu in range(0, 8192, 2))) == frozenset(range(0, 8192, 2))
    assert KernelVersion.read("6.18.0-rc1") == KernelVersion(6, 18)


TABLE = "           CPU0       CPU1\n 40:   {}   {}   GICv3 300 Level     eth0\n"


@pytest.mark.parametrize(
    ("check", "path", "texts", "machine"),
    [
        ("iso.irq.flood", "/proc/interrupts", (TABLE.format(1, 27), TABLE.format(1, 5)), "aarch64"),
        ("hw.smi", "smi", ("cpu0 9\n", "cpu0 4\n"), "x86_64"),
        ("hw.edac", "/sys/devices/system/edac/mc/mc0/ce_count", ("9\n", "4\n"), "x86_64"),
        ("pm.thermal", f"{CPU}/cpu0/thermal_throttle/core_throttle_count", ("9\n", "4\n"), "x86_64"),
        (
            "clk.step",
            "clock-adjust",
            ("offset_ns 0\nfrequency_ppb 1\nslept_ns 5000000000\n", "offset_ns 0\nfrequency_ppb 1\nslept_ns 0\n"),
            "x86_64",
        ),
        ("mem.evid", "/proc/vmstat", ("pgmajfault 9\n", "pgmajfault 4\n"), "x86_64"),
    ],
)
def test_counts_that_went_down_are_not_good(check: str, path: str, texts: tuple[str, str], machine: str) -> None:
    others = _cpus(2, isolated="1\n") | {
        "/proc/cpuinfo": "vendor_id\t: GenuineIntel\nflags\t: fpu\n",
        "/proc/softirqs": "   CPU0 CPU1\n NET_RX: 0 0\n",
    }
    start, end = ({**others, path: text} for text in texts)
    result = judged(check, made_facts(start, end=end, machine=machine))
    assert (result.outcome, "went down" in result.sentence) == (Outcome.UNKNOWN, True)


@pytest.mark.parametrize(
    ("governor", "low", "severity"),
    [
        ("performance", "800000", Severity.LOW),
        ("performance", "4700000", Severity.MEDIUM),
        ("schedutil", "800000", Severity.MEDIUM),
    ],
)
def test_a_boost_within_the_limits_is_no_fault_of_the_governor(governor: str, low: str, severity: Severity) -> None:
    policy = f"{CPU}/cpufreq/policy0/scaling_"
    files = {f"{policy}governor": governor, f"{policy}min_freq": low, f"{policy}max_freq": "4700000"}
    start, end = ({**files, f"{policy}cur_freq": text} for text in ("4700000", "4300000"))
    result = judged("pm.freq.fixed", made_facts(start, end=end))
    assert (result.outcome, result.severity) == (Outcome.FINDING, severity)


def test_a_row_with_a_name_of_many_digits_is_no_interrupt() -> None:
    table = "           CPU0\n  1:   5   IO-APIC   1-edge   i8042\n" + "9" * 5000 + ":   5   IO-APIC   2-edge   eth0\n"
    read = read_table(Reading("/proc/interrupts", State.HERE, table))
    assert read is not None
    assert read[1] == {1: ("i8042",)}
