# SPDX-License-Identifier: Apache-2.0
"""What a record holds of the system: known, absent, or unknown with the reason."""

import errno
from dataclasses import replace

import pytest
from audit_cases import MISSING, MOUNTS, REFUSED, judged, made_facts

from rtproof.audit.audit_model import Outcome
from rtproof.audit.facts import Facts, State, parse_cpu_list, parse_cpu_mask
from rtproof.record.contents import Damage

THP = "/sys/kernel/mm/transparent_hugepage/enabled"


def test_a_missing_file_is_absent_only_if_its_file_system_is_mounted() -> None:
    assert made_facts({THP: MISSING}).read(THP).state is State.ABSENT
    hidden = made_facts({THP: MISSING, "/proc/mounts": MOUNTS.replace("sysfs /sys sysfs rw 0 0\n", "")}).read(THP)
    assert (hidden.state, hidden.reason) == (State.UNREADABLE, "sysfs is not mounted")


def test_a_file_behind_a_mount_of_a_container_is_not_known() -> None:
    covered = made_facts({THP: "never\n", "/proc/mounts": MOUNTS + "tmpfs /sys/kernel/mm tmpfs ro 0 0\n"}).read(THP)
    assert covered.state is State.UNREADABLE
    assert "/sys/kernel/mm" in covered.reason


@pytest.mark.parametrize("number", [errno.EPERM, errno.EACCES, errno.EIO, errno.ETIMEDOUT])
def test_a_refused_file_is_unknown_and_never_good(number: int) -> None:
    found = judged("mem.thp", made_facts({THP: number}))
    assert found.outcome is Outcome.UNKNOWN
    assert errno.errorcode[number] in found.sentence


def test_values_are_judged() -> None:
    assert judged("mem.thp", made_facts({THP: "always madvise [never]\n"})).outcome is Outcome.GOOD
    bad = judged("mem.thp", made_facts({THP: "[always] madvise never\n"}))
    assert bad.outcome is Outcome.FINDING
    assert bad.read[0].path == THP


def test_the_last_of_a_parameter_counts_and_words_of_init_do_not() -> None:
    facts = made_facts({"/proc/cmdline": "isolcpus=1 a-b=2 isolcpus=2-3 -- isolcpus=4\n"})
    assert facts.parameter("isolcpus").text == "2-3"
    assert facts.parameter("a_b").text == "2"
    assert facts.parameter("nohz_full").absent
    assert not made_facts({"/proc/cmdline": REFUSED}).parameter("isolcpus").absent


def test_lists_and_masks_of_cpus() -> None:
    assert parse_cpu_list("0-2,8\n") == frozenset({0, 1, 2, 8})
    assert parse_cpu_list("  (null)\n") == frozenset()
    assert parse_cpu_mask("00000001,0000000f\n") == frozenset({0, 1, 2, 3, 32})
    assert parse_cpu_mask("many") is None
    assert parse_cpu_list("many") is None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("17\n", 17),
        ("-1", -1),
        ("0xff", 255),
        ("", None),
        ("1 2", None),
        ("1_000", None),
        ("\u0663", None),
        ("9" * 5000, None),
        ("0x" + "f" * 5000, None),
    ],
)
def test_a_number_is_what_a_kernel_writes(text: str, number: int | None) -> None:
    assert made_facts({THP: text}).read(THP).number() == number


def test_a_pattern_of_which_files_were_left_out_is_not_good() -> None:
    pattern = "/sys/kernel/mm/transparent_hugepage/hugepages-*/enabled"
    one = pattern.replace("*", "64kB")
    whole = {THP: "never [madvise]\n", one: "always inherit madvise [never]\n"}
    assert judged("mem.thp", made_facts(whole)).outcome is Outcome.GOOD
    assert judged("mem.thp", made_facts({**whole, pattern: errno.E2BIG})).outcome is Outcome.UNKNOWN
    assert judged("mem.thp", made_facts({**whole, pattern: MISSING})).outcome is Outcome.GOOD


def test_a_damaged_record_may_lack_files_of_a_pattern() -> None:
    pattern = "/sys/kernel/mm/transparent_hugepage/hugepages-*/enabled"
    files = {THP: "never [madvise]\n", pattern.replace("*", "64kB"): "always inherit madvise [never]\n"}
    whole = made_facts(files)
    torn = Facts(replace(whole.record, damage=(Damage(100, 64, "64 bytes are no chunk"),)), whole.request)
    assert judged("mem.thp", whole).outcome is Outcome.GOOD
    assert judged("mem.thp", torn).outcome is Outcome.UNKNOWN


CPUS = "/sys/devices/system/cpu"
ISOLATED = f"{CPUS}/isolated"


def test_the_kernel_isolates_by_boot_words_and_partitions() -> None:
    old = made_facts({ISOLATED: MISSING, "/proc/cmdline": "isolcpus=managed_irq,domain,2-3\n"})
    assert old.kernel_isolated == frozenset({2, 3})
    partition = {ISOLATED: "\n", "/sys/fs/cgroup/cpuset.cpus.isolated": "1\n", f"{CPUS}/nohz_full": "70\n"}
    assert made_facts(partition).kernel_isolated == frozenset({1, 70})
    assert made_facts({ISOLATED: REFUSED}).kernel_isolated is None


def test_a_tmpfs_of_control_groups_hides_nothing() -> None:
    mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n"
    path = "/sys/fs/cgroup/cpuset/cpuset.sched_load_balance"
    facts = made_facts({"/proc/mounts": MOUNTS.replace("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", mounts), path: "1\n"})
    assert facts.read(path).here
    none = made_facts({"/proc/mounts": MOUNTS + "tmpfs /sys/kernel tmpfs rw 0 0\n", "/sys/kernel/x": MISSING})
    assert not none.read("/sys/kernel/x").absent
