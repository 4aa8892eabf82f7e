# SPDX-License-Identifier: Apache-2.0
"""Checks of the command line: misspelt words, contradictions, lost words, single parameters."""

from collections.abc import Mapping

import pytest
from audit_cases import MISSING, REFUSED, judged, made_facts
from audit_systems import stored_names, stored_record

from rtproof.audit import boot_words, check_file
from rtproof.audit.audit_model import CheckResult, Outcome
from rtproof.audit.boot_lists import read_cpu_word
from rtproof.audit.check import Check
from rtproof.audit.facts import AuditRequest, Facts, KernelVersion, split_command_line, split_word
from rtproof.audit.fitted_advice import fitted

CPU = "/sys/devices/system/cpu"
FOUR: dict[str, str | int] = {f"{CPU}/online": "0-3\n", f"{CPU}/present": "0-3\n", f"{CPU}/possible": "0-3\n"}
GOOD, FINDING, UNKNOWN = Outcome.GOOD, Outcome.FINDING, Outcome.UNKNOWN
NOT_APPLICABLE, CONFLICTING = Outcome.NOT_APPLICABLE, Outcome.CONFLICTING
ISOLATED = AuditRequest(cpus=frozenset({2, 3}))
GRUB, BLS = "/etc/default/grub", "/boot/loader/entries/fedora.conf"
LOADERS: dict[str, str | int] = {
    GRUB: MISSING,
    "/etc/default/grub.d/*.cfg": MISSING,
    "/etc/kernel/cmdline": MISSING,
    "/boot/loader/entries/*.conf": MISSING,
    "/boot/efi/loader/entries/*.conf": MISSING,
    "/efi/loader/entries/*.conf": MISSING,
    "/boot/extlinux/extlinux.conf": MISSING,
    "/boot/firmware/cmdline.txt": MISSING,
    "/boot/cmdline.txt": MISSING,
}


def booted(
    check: str, words: str | int, files: Mapping[str, str | int] | None = None, request: AuditRequest | None = None
) -> CheckResult:
    """The result of a check on a machine with four CPUs and this command line."""
    line = words if isinstance(words, int) else f"{words}\n"
    return judged(check, made_facts({**FOUR, "/proc/cmdline": line, **(files or {})}, request=request))


@pytest.mark.parametrize(
    "words",
    [
        "BOOT_IMAGE=/vmlinuz-6.12.0 root=UUID=1 ro quiet splash vt.handoff=7",
        "console=ttyS0,115200 console=tty1 root=PARTUUID=1-02 rootfstype=ext4 fsck.repair=yes rootwait",
        "rd.lvm.lv=rhel/root crashkernel=1G-4G:192M isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=2-3 nosmt",
        'root=/dev/sda1 dyndbg="file a.c +p; isolcpu=3" nosmp notsc maxcpus=2 mem=1G',
        "root=/dev/sda1 -- irq_affinity=0",
        "coherent_pool=1M 8250.nr_uarts=1 snd_bcm2835.enable_hdmi=1 smsc95xx.macaddr=D8:3A:DD",
        "x" * 4000,
    ],
)
def test_words_of_distributions_are_no_misspelt_ones(words: str) -> None:
    assert booted("boot.unknown", words).outcome is GOOD


def test_no_known_name_is_taken_for_another() -> None:
    words = boot_words.boot_words()
    for name in (*words.real_time, *words.other):
        assert boot_words.meant_name(name) is None, name


@pytest.mark.parametrize(
    ("a", "b", "letters"), [("psi", "psi", 0), ("isolcpu", "isolcpus", 1), ("ab", "ba", 1), ("", "abc", 3)]
)
def test_distance_counts_changed_letters(a: str, b: str, letters: int) -> None:
    assert boot_words.distance(a, b) == boot_words.distance(b, a) == letters


def test_a_line_that_fills_the_buffer_may_have_lost_its_end() -> None:
    long = "quiet " + "a" * 2041
    assert len(long) == 2047
    assert "may be lost" in booted("boot.conflict", long).sentence
    assert booted("boot.conflict", long[:-1]).outcome is GOOD


def test_lists_of_cpus_as_the_kernel_reads_them() -> None:
    four, now = frozenset(range(4)), KernelVersion(6, 12)
    assert read_cpu_word("nohz_full", "0-3:1/2", four, now).cpus == frozenset({0, 2})
    assert read_cpu_word("nohz_full", "1-N", four, now).cpus == frozenset({1, 2, 3})
    assert read_cpu_word("nohz_full", "1-N", None, now).cpus is None
    assert read_cpu_word("isolcpus", "nohz,domain,1", four, now).flags == ("nohz", "domain")
    assert read_cpu_word("nohz_full", "0-99999999999", four, now).trouble


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('a="b c" d', ["a=b c", "d"]),
        ('"a=b c" d', ["a=b c", "d"]),
        ("a='b c'", ["a='b", "c'"]),
        ('a="b c', ["a=b c"]),
        (r"BOOT_IMAGE=\EFI\vmlinuz  quiet", [r"BOOT_IMAGE=\EFI\vmlinuz", "quiet"]),
        ("", []),
    ],
)
def test_the_line_is_split_as_the_kernel_does(text: str, words: list[str]) -> None:
    assert split_command_line(text) == words


UBUNTU = 'GRUB_CMDLINE_LINUX_DEFAULT="quiet splash"\nGRUB_CMDLINE_LINUX="isolcpus=2-3"\n'
FEDORA = "title Fedora\nversion 6.12.0\nlinux /vmlinuz-6.12.0\noptions root=UUID=1 ro quiet isolcpus=2-3\n"
PI = "console=serial0,115200 root=PARTUUID=1 rootwait isolcpus=3\n"
EXTLINUX = "LABEL a\n  KERNEL /Image\n  APPEND root=/dev/mmcblk0p1 rw isolcpus=3\n"


@pytest.mark.parametrize(
    ("words", "files", "outcome"),
    [
        ("BOOT_IMAGE=/x root=UUID=1 ro quiet splash isolcpus=2-3", {GRUB: UBUNTU}, GOOD),
        ("BOOT_IMAGE=/x root=UUID=1 ro quiet splash", {GRUB: UBUNTU}, FINDING),
        ("root=1 quiet splash isolcpus=2-3 nohz_full=2-3", {GRUB: UBUNTU}, FINDING),
        ("quiet splash isolcpus=2-3n", {GRUB: UBUNTU}, FINDING),
        ("quiet isolcpus=2-3 tsc=reliable", {GRUB: 'GRUB_CMDLINE_LINUX="quiet $tuned"\n'}, UNKNOWN),
        (
            "quiet splash isolcpus=2-3 psi=0",
            {GRUB: UBUNTU, "/etc/default/grub.d/90.cfg": 'GRUB_CMDLINE_LINUX="${GRUB_CMDLINE_LINUX} psi=0"\n'},
            GOOD,
        ),
        ("quiet splash", {GRUB: UBUNTU, "/etc/default/grub.d/90.cfg": "GRUB_CMDLINE_LINUX=\n"}, GOOD),
        ("BOOT_IMAGE=/x root=UUID=1 ro quiet isolcpus=2-3", {BLS: FEDORA}, GOOD),
        ("root=UUID=1 ro quiet", {BLS: FEDORA}, FINDING),
        ("root=UUID=1 ro quiet", {BLS: FEDORA.replace("6.12.0", "6.11.0")}, NOT_APPLICABLE),
        (
            "coherent_pool=1M console=ttyAMA0 root=PARTUUID=1 rootwait isolcpus=3",
            {"/boot/firmware/cmdline.txt": PI},
            GOOD,
        ),
        ("console=ttyAMA0 root=PARTUUID=1 rootwait", {"/boot/firmware/cmdline.txt": PI}, FINDING),
        ("root=/dev/mmcblk0p1 rw isolcpus=3", {"/boot/extlinux/extlinux.conf": EXTLINUX}, GOOD),
        ("root=/dev/mmcblk0p1 rw", {"/boot/extlinux/extlinux.conf": EXTLINUX}, FINDING),
        ("quiet", {"/etc/kernel/cmdline": "root=UUID=1 quiet\n"}, GOOD),
        ('quiet dyndbg="file a.c +p"', {GRUB: 'GRUB_CMDLINE_LINUX="quiet dyndbg=\\"file a.c +p\\""\n'}, GOOD),
        ("quiet", {}, NOT_APPLICABLE),
        ("quiet", {GRUB: REFUSED}, UNKNOWN),
        (REFUSED, {GRUB: UBUNTU}, UNKNOWN),
    ],
)
def test_the_line_is_compared_with_what_boot_loaders_have(
    words: str | int, files: dict[str, str | int], outcome: Outcome
) -> None:
    found = booted("boot.drift", words, {**LOADERS, **files})
    assert found.outcome is outcome, found.sentence


@pytest.mark.parametrize("check", check_file.check_files()["boot"].check, ids=lambda check: check.id)
def test_nothing_read_is_never_good(check: Check) -> None:
    facts = made_facts({"/proc/cmdline": REFUSED}, kernel=("", ""), request=ISOLATED)
    assert judged(check.id, facts).outcome in (UNKNOWN, NOT_APPLICABLE)


X86_WORDS = (
    *("idle", "intel_idle.max_cstate", "intel_pstate", "kvm.kvmclock_periodic_sync", "kvm_intel.ple_gap", "mce"),
    *("nosmt", "processor.max_cstate", "tsc"),
)
"""Parameters of checks and guides that no kernel of Arm obeyed when the stored systems were new."""


def boot_advice(facts: Facts) -> dict[str, list[str]]:
    """The names of the boot words of each check, as if the system failed it."""
    checks = [check for file in check_file.check_files().values() for check in file.check]
    results = [CheckResult(check, FINDING, check.severity, "", (), ()) for check in checks]
    return {
        result.check.id: [split_word(word)[0] for word in fitted(facts, result).check.change.boot.split()]
        for result in results
    }


@pytest.mark.parametrize("name", stored_names())
def test_no_system_is_advised_a_boot_word_that_its_architecture_does_not_parse(name: str) -> None:
    facts = Facts(stored_record(name), AuditRequest())
    advice = boot_advice(facts)
    words = {word for names in advice.values() for word in names}
    if facts.record.begin.machine == "x86_64":
        assert "nohlt" not in words
        assert advice["pm.cstate"] == ["intel_idle.max_cstate", "processor.max_cstate"]
        assert advice["clk.watchdog"] == ["tsc"]
    else:
        assert words.isdisjoint(X86_WORDS)
        assert advice["pm.vm.haltpoll"] == ["nohlt"]
        assert advice["pm.cstate"] == advice["clk.watchdog"] == []


@pytest.mark.parametrize(("machine", "word"), [("x86_64", "idle"), ("i686", "idle"), ("aarch64", "nohlt")])
def test_the_word_that_keeps_idle_cpus_awake_is_that_of_the_architecture(machine: str, word: str) -> None:
    assert boot_advice(made_facts(machine=machine))["pm.vm.haltpoll"] == [word]
