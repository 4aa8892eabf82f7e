# SPDX-License-Identifier: Apache-2.0
"""The checks of memory: what makes each good, a finding, not applicable, or unknown."""

import pytest
from audit_cases import MISSING, REFUSED, judged, made_facts

from rtproof.audit.audit_model import Outcome
from rtproof.audit.check import Severity
from rtproof.audit.facts import AuditRequest

GOOD, FINDING, UNKNOWN, CONFLICTING = Outcome.GOOD, Outcome.FINDING, Outcome.UNKNOWN, Outcome.CONFLICTING
NOT_APPLICABLE = Outcome.NOT_APPLICABLE
THP = "/sys/kernel/mm/transparent_hugepage"
SIZES = f"{THP}/hugepages-*/enabled"
KSM = "/sys/kernel/mm/ksm"
VM = "/proc/sys/vm"
SWAPS = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
DISK = SWAPS + "/dev/sda2                               partition\t999420\t\t0\t\t-2\n"
MEMINFO = "MemTotal:        8000000 kB\nCommitLimit:     4000000 kB\nCommitted_AS:    {} kB\n"
VMSTAT = "nr_free_pages 5\npgmajfault {}\ncompact_stall {}\npgmigrate_success 7\n"
SINGLE = {
    "mem.compact.unevict": (f"{VM}/compact_unevictable_allowed", "0", "1", GOOD),
    "mem.compact.pro": (f"{VM}/compaction_proactiveness", "0", "20", GOOD),
    "mem.stat": (f"{VM}/stat_interval", "10", "1", NOT_APPLICABLE),
    "mem.zone_reclaim": (f"{VM}/zone_reclaim_mode", "0", "1", NOT_APPLICABLE),
    "mem.swap": ("/proc/swaps", SWAPS, DISK, GOOD),
    "mem.overcommit": (f"{VM}/overcommit_memory", "2", "0", UNKNOWN),
    "mem.thp": (f"{THP}/enabled", "always [madvise] never", "[always] madvise never", GOOD),
}
"""Of each check that rests on one file: the file, a good value, a bad one, and the outcome if there is none."""


@pytest.mark.parametrize("check", SINGLE)
def test_one_file_decides(check: str) -> None:
    path, good, bad, absent = SINGLE[check]
    assert judged(check, made_facts({path: f"{good}\n"})).outcome is GOOD
    found = judged(check, made_facts({path: f"{bad}\n"}))
    assert found.outcome is FINDING
    assert path in [value.path for value in found.read]
    assert judged(check, made_facts({path: MISSING})).outcome is absent


def test_huge_pages_of_one_size_may_be_made_although_the_main_switch_is_off() -> None:
    files: dict[str, str | int] = {f"{THP}/enabled": "always madvise [never]\n"}
    one = f"{THP}/hugepages-2048kB/enabled"
    assert judged("mem.thp", made_facts({**files, one: "[always] inherit madvise never\n"})).outcome is FINDING
    assert judged("mem.thp", made_facts({**files, one: "always [inherit] madvise never\n"})).outcome is GOOD
    assert judged("mem.thp", made_facts({**files, one: REFUSED})).outcome is UNKNOWN
    assert judged("mem.thp", made_facts({**files, SIZES: MISSING})).outcome is GOOD


def test_the_background_thread_matters_only_where_huge_pages_are_made() -> None:
    enabled, defrag = f"{THP}/enabled", f"{THP}/khugepaged/defrag"
    always = "[always] madvise never\n"
    assert judged("mem.khugepaged", made_facts({enabled: always, defrag: "1\n"})).outcome is FINDING
    assert judged("mem.khugepaged", made_facts({enabled: always, defrag: "0\n"})).outcome is GOOD
    assert judged("mem.khugepaged", made_facts({enabled: always, defrag: REFUSED})).outcome is UNKNOWN
    assert judged("mem.khugepaged", made_facts({enabled: always, defrag: "x\n"})).outcome is UNKNOWN
    off = made_facts({enabled: "always madvise [never]\n", defrag: "1\n"})
    assert judged("mem.khugepaged", off).outcome is NOT_APPLICABLE
    assert judged("mem.khugepaged", made_facts({enabled: MISSING, defrag: MISSING})).outcome is GOOD


@pytest.mark.parametrize(
    ("run", "sharing", "outcome"),
    [
        ("0", "0", GOOD),
        ("1", "0", FINDING),
        ("0", "812", FINDING),
        ("2", REFUSED, GOOD),
        ("3", "0", UNKNOWN),
        (MISSING, MISSING, GOOD),
    ],
)
def test_merged_pages(run: str | int, sharing: str | int, outcome: Outcome) -> None:
    found = judged("mem.ksm", made_facts({f"{KSM}/run": run, f"{KSM}/pages_sharing": sharing}))
    assert found.outcome is outcome
    if sharing == "812":
        assert found.severity is Severity.LOW
        assert "812" in found.sentence


@pytest.mark.parametrize(
    ("locked", "swapped", "severity"), [(4000, 0, Severity.LOW), (100, 0, Severity.HIGH), (4000, 12, Severity.HIGH)]
)
def test_swap_weighs_by_what_the_application_has_locked(locked: int, swapped: int, severity: Severity) -> None:
    status = f"Name:\tctl\nVmLck:\t    {locked} kB\nVmRSS:\t    3000 kB\nVmSwap:\t       {swapped} kB\n"
    facts = made_facts({"/proc/swaps": DISK, "process/status": status}, request=AuditRequest(pid=7))
    found = judged("mem.swap", facts)
    assert (found.outcome, found.severity) == (FINDING, severity)


def test_a_new_kernel_leaves_isolated_cpus_alone() -> None:
    files: dict[str, str | int] = {
        f"{VM}/stat_interval": "1\n",
        "/sys/devices/system/cpu/isolated": "2-3\n",
        "/sys/devices/system/cpu/nohz_full": "\n",
    }
    new, old = ("6.12.1", "#1 SMP"), ("6.1.0", "#1 SMP")
    assert judged("mem.stat", made_facts(files, kernel=new)).outcome is GOOD
    assert judged("mem.stat", made_facts(files, kernel=old)).outcome is FINDING
    more = made_facts(files, kernel=new, request=AuditRequest(cpus=frozenset({1, 2})))
    assert judged("mem.stat", more).outcome is FINDING


@pytest.mark.parametrize(
    ("size", "ratio", "outcome"),
    [
        ("0", "10", GOOD),
        ("0", "20", FINDING),
        ("67108864", "0", GOOD),
        ("68719476736", "0", FINDING),
        ("67108864", "20", CONFLICTING),
        ("many", "0", UNKNOWN),
        ("0", MISSING, UNKNOWN),
    ],
)
def test_of_a_pair_only_one_is_set(size: str, ratio: str | int, outcome: Outcome) -> None:
    facts = made_facts({f"{VM}/dirty_bytes": size, f"{VM}/dirty_ratio": ratio})
    assert judged("mem.dirty", facts).outcome is outcome


@pytest.mark.parametrize(
    ("least", "boost", "outcome"),
    [
        ("11314", "0", GOOD),
        ("11314", "15000", FINDING),
        ("1000", "0", FINDING),
        ("11314", MISSING, GOOD),
        ("much", "0", UNKNOWN),
    ],
)
def test_the_reserve_is_compared_with_what_the_kernel_would_keep(
    least: str | int, boost: str | int, outcome: Outcome
) -> None:
    files = {f"{VM}/min_free_kbytes": least, f"{VM}/watermark_boost_factor": boost}
    assert judged("mem.minfree", made_facts({**files, "/proc/meminfo": MEMINFO.format(1)})).outcome is outcome


def test_only_a_change_of_a_count_is_a_finding() -> None:
    start: dict[str, str | int] = {"/proc/vmstat": VMSTAT.format(2028, 3)}
    still = judged("mem.evid", made_facts(start, end={"/proc/vmstat": VMSTAT.format(2028, 3)}))
    assert still.outcome is GOOD
    moved = judged("mem.evid", made_facts(start, end={"/proc/vmstat": VMSTAT.format(2031, 4)}))
    assert moved.outcome is FINDING
    assert "pgmajfault +3, compact_stall +1" in moved.sentence
