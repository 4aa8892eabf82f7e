# SPDX-License-Identifier: Apache-2.0
"""What a record holds of the system: known, absent, or unknown with the reason."""

import errno
import gzip
import re
from dataclasses import replace
from pathlib import Path

import pytest
from audit_cases import MISSING, MOUNTS, REFUSED, judged, made_facts

from rtproof.audit import check_file, judgement
from rtproof.audit.check import Outcome, Severity
from rtproof.audit.facts import Facts, Reading, State, kernel_version, parse_cpu_list, parse_cpu_mask
from rtproof.audit.functions.kernel import Bug, exact_version, has_bug
from rtproof.audit.system_tables import read_table
from rtproof.record.contents import Damage, Moment, SystemFile

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


# Systems that are rare, and facts that somebody made to harm.


CPU = "/sys/devices/system/cpu"


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
    assert kernel_version("6.18.0-rc1") == (6, 18)


def test_a_row_with_a_name_of_many_digits_is_no_interrupt() -> None:
    table = "           CPU0\n  1:   5   IO-APIC   1-edge   i8042\n" + "9" * 5000 + ":   5   IO-APIC   2-edge   eth0\n"
    read = read_table(Reading("/proc/interrupts", State.HERE, table))
    assert read is not None
    assert read[1] == {1: ("i8042",)}


# How the kernel was built, and what its version says.


CONFIG = "/boot/config-6.12.0"
HEAD = "# Linux/x86 6.12.0 Kernel Configuration\n"
END = "CONFIG_RUNTIME_TESTING_MENU=y\n"
GOOD, FINDING, UNKNOWN = Outcome.GOOD, Outcome.FINDING, Outcome.UNKNOWN
NOT_APPLICABLE, CONFLICTING = Outcome.NOT_APPLICABLE, Outcome.CONFLICTING
DYNAMIC = ("6.12.0", "#1 SMP PREEMPT_DYNAMIC")
PLAIN = ("6.12.0", "#1 SMP")


def test_a_configuration_of_another_kernel_is_never_used() -> None:
    other = {CONFIG: HEAD.replace("6.12.0", "6.1.115") + "CONFIG_HIGH_RES_TIMERS=y\n" + END}
    facts = made_facts(other, kernel=PLAIN)
    assert facts.config is None
    assert "6.1.115" in facts.option("RT_GROUP_SCHED").reason
    for check in check_file.check_files()["kernel"].check:
        if all(source.startswith("config:") for source in check.read):
            assert judged(check.id, facts).outcome is UNKNOWN, check.id
    rt = {CONFIG: HEAD.replace("6.12.0", "6.1.115") + "CONFIG_PREEMPT_RT=y\n" + END}
    assert judged("kern.preempt.rt", made_facts(rt, kernel=PLAIN)).outcome is CONFLICTING
    assert judged("kern.preempt.rt", made_facts(rt, kernel=DYNAMIC)).outcome is not GOOD


def test_the_third_number_of_a_distribution_may_differ() -> None:
    config = {"/boot/config-6.1.0-56-rt-amd64": "# Linux/x86 6.1.192 Kernel Configuration\nCONFIG_HZ=250\n" + END}
    facts = made_facts(config, kernel=("6.1.0-56-rt-amd64", "#1 SMP PREEMPT_RT Debian 6.1.192-1"))
    assert facts.option("HZ").text == "250"


def test_a_cut_configuration_says_nothing_of_what_it_does_not_name() -> None:
    cut = made_facts({CONFIG: HEAD + "CONFIG_HZ=250\n# CONFIG_KASAN is not set\n"})
    assert cut.option("HZ").text == "250"
    assert cut.option("KASAN").absent
    assert cut.option("PROVE_LOCKING").state is State.UNREADABLE
    assert judged("kern.dbg.san", cut).outcome is UNKNOWN


def test_lines_that_an_agent_did_not_keep_are_not_unset() -> None:
    kept = "# rtproof kept lines that begin with: Linux/ CONFIG_HZ CONFIG_RUNTIME\n"
    facts = made_facts({CONFIG: kept + HEAD + END})
    assert facts.option("HZ_PERIODIC").absent
    assert facts.option("KASAN").state is State.UNREADABLE


def compressed(text: str, most: int | None = None) -> Facts:
    """Facts with the kernel's own configuration. most: bytes that are left of it."""
    facts = made_facts(kernel=PLAIN)
    file = SystemFile(0, Moment.START, "/proc/config.gz", 0, False, gzip.compress(text.encode())[:most])
    object.__setattr__(facts.record, "files", (*facts.record.files, file))
    return facts


def test_the_own_configuration_counts_without_its_end_only_if_it_can_be_unpacked() -> None:
    text = HEAD + "CONFIG_HZ=100\n" * 50
    assert compressed(text).option("KASAN").absent
    half = compressed(text, -9)
    assert half.option("KASAN").state is State.UNREADABLE
    assert judged("kern.dbg.san", compressed("", 0)).outcome is UNKNOWN


def test_a_stable_version_with_the_fix_is_not_named() -> None:
    bug = Bug("x", "", "6.12", "6.16", "", Severity.HIGH, "", ("6.12.39",))
    assert [has_bug(bug, (6, 12, patch)) for patch in (38, 39, None)] == [True, False, None]
    debian = exact_version("6.1.0-28-amd64", "#1 SMP Debian 6.1.119-1 (2024)")
    assert debian == (6, 1, 119)


_AGENT = Path(__file__).parent.parent / "agent"
_NAMED = re.compile(r'(?:\boption\(f?"|config:)([A-Z][A-Z0-9_]+)\b')


def _code(subject: str) -> str:
    """The checks and functions of a subject."""
    folder = Path(check_file.__file__).parent
    files = [folder / "checks" / f"{subject}.toml", folder / "functions" / f"{subject}.py"]
    return "\n".join(file.read_text() for file in files if file.exists())


@pytest.mark.parametrize("subject", check_file.SUBJECTS)
def test_the_agent_keeps_every_option_that_a_check_reads(subject: str) -> None:
    table = (_AGENT / "facts" / "machine.c").read_text().partition("options[] = {")[2].partition("};")[0]
    kept = tuple(name.removesuffix("=") for name in re.findall(r'"(CONFIG_[A-Z0-9_]+=?)"', table))
    assert len(kept) > 20
    for name in _NAMED.findall(_code(subject)):
        assert f"CONFIG_{name}".startswith(kept), name
