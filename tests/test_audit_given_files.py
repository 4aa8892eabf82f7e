# SPDX-License-Identifier: Apache-2.0
"""The audit of what people have at hand: a command line, a configuration, the output of sysctl, copies of files."""

import gzip
import io
import os
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from audit_systems import stored_names, stored_record

from rtproof.audit import judgement
from rtproof.audit.check import Audit, Outcome
from rtproof.audit.facts import Facts
from rtproof.cli.main import main
from rtproof.experiment.given_files import record_of
from rtproof.record.contents import Moment
from rtproof.report.pages.audit_page import audit_text

SEAPATH = (
    "BOOT_IMAGE=/boot/vmlinuz-6.12.48+deb13-rt-amd64 root=/dev/mapper/vg1-root ro skew_tick=1 tsc=reliable"
    " isolcpus=managed_irq,domain,4-N nohz=on nohz_full=4-N rcu_nocbs=4-N"
    " irqaffinity=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15 processor.max_cstate=1"
)
"""Asked in https://github.com/seapath/ansible/issues/865."""
CONFIG = (
    "#\n# Linux/x86 6.8.12 Kernel Configuration\n#\nCONFIG_X86_64=y\n# CONFIG_PREEMPT_RT is not set\nCONFIG_HZ=250\n"
)
SYSCTL = "kernel.timer_migration = 1\nvm.stat_interval = 1\nkernel.sched_rt_runtime_us = 950000\n"
STAT = "{pid} ({name}) S 1 1 1 0 -1 {flags} 1 0 0 0 0 0 0 0 20 0 1 0 99 " + "0 " * 15 + "17 1 {rt} {policy} 0 0 0\n"
"""A file of proc(5)."""


def audited(*given: Any, **files: Any) -> Audit:
    return judgement.audit(Facts(record_of(*given, **files)))


def outcome(found: Audit, check_id: str) -> Outcome:
    return next(one.outcome for one in found.results if one.check.id == check_id)


def folded(text: str) -> str:
    return " ".join(text.split())


def copied(folder: Path, files: Mapping[str, str]) -> Path:
    """A folder with copies of files at their paths."""
    for path, text in files.items():
        place = folder / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return folder


def thread(pid: int, name: str, *, rt: int = 0, flags: int = 0x400000) -> dict[str, str]:
    text = STAT.format(pid=pid, name=name, flags=flags, rt=rt, policy=2 if rt else 0)
    return {f"/proc/{pid}/task/{pid}/stat": text}


def test_the_screen_says_first_what_was_given(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "--cmdline", SEAPATH]) == 1
    said = folded(capsys.readouterr().out)
    found = audited(SEAPATH)
    answered = sum(one.outcome in (Outcome.GOOD, Outcome.FINDING, Outcome.CONFLICTING) for one in found.results)
    assert said.startswith("Audit of x86_64, Linux 6.12.48+deb13-rt-amd64, purpose: default Given: a command line of")
    assert f"This answers {answered} of {len(found.results)} checks." in said
    assert "irqaffinity sends interrupts to isolated CPUs: 4-15" in said


def test_nothing_is_good_that_was_not_given(tmp_path: Path) -> None:
    """Each good check read one of the given files."""
    config, sysctl = tmp_path / "config", tmp_path / "sysctl"
    config.write_text(CONFIG)
    sysctl.write_text(SYSCTL)
    for given, of in (
        ({"command_line": "quiet"}, ("/proc/cmdline",)),
        ({"kernel_config": config}, ("/boot/config-6.8.12", "uname -rv")),
        ({"sysctl": sysctl}, ("/proc/sys/",)),
    ):
        good = audited(**given).of(Outcome.GOOD)
        read = {one.check.id: [value.path for value in one.read] for one in good}
        assert [name for name, paths in read.items() if not any(each in path for path in paths for each in of)] == []
        assert len(good) < 10


NARROWER = {
    "kern.preempt.mode": (Outcome.NOT_APPLICABLE, Outcome.GOOD),
    "sched.rt_share": (Outcome.GOOD, Outcome.NOT_APPLICABLE),
}
"""Without debugfs a PREEMPT_RT kernel shows no choice of models; and a feature that is off is off, throttled or not."""
PARTS = ("/", "/proc/", "/sys/", "/proc/sys/", "/proc/cmdline", "/boot/config")


@pytest.mark.parametrize("name", stored_names())
def test_a_copy_says_what_the_agent_said_or_nothing(name: str, tmp_path: Path) -> None:
    """The files that an agent read, or a part of them, copied to a folder: some checks are unknown, none is another."""
    record = stored_record(name)
    files = {
        file.path: file.content.decode(errors="replace")
        for file in record.files
        if file.moment is Moment.START and not file.errno and not file.cut and file.path.startswith("/")
    }
    files |= {"/proc/sys/kernel/osrelease": record.begin.kernel_release}
    files |= {"/proc/sys/kernel/version": record.begin.kernel_version, "/proc/sys/kernel/arch": record.begin.machine}
    folders = {str(parent) for path in files for parent in Path(path).parents}  # Links to devices are among these.
    files = {path: text for path, text in files.items() if not path.endswith("/") and path not in folders}
    theirs = {one.check.id: one.outcome for one in judgement.audit(Facts(record)).results}
    for number, part in enumerate(PARTS):
        folder = copied(tmp_path / str(number), {path: text for path, text in files.items() if path.startswith(part)})
        found = audited(proc_dump=folder) if part != "/boot/config" else audited(**_config_of(folder))
        other = {
            one.check.id: (one.outcome, theirs[one.check.id])
            for one in found.results
            if one.outcome not in (Outcome.UNKNOWN, theirs[one.check.id]) and not one.check.id.startswith("sched.app.")
        }
        other = {check_id: both for check_id, both in other.items() if NARROWER.get(check_id) != both}
        assert (part, other) == (part, {})
        assert part != "/" or len(found.of(Outcome.UNKNOWN)) < 80


def _config_of(folder: Path) -> dict[str, Any]:
    """The configuration in a folder; without one, as that of a container, the command line."""
    found = list(folder.glob("boot/config*"))
    return {"kernel_config": found[0]} if found else {"command_line": "quiet"}


def test_words_of_the_line_isolate_cpus_but_no_word_does_not_mean_none() -> None:
    isolated = {
        line: Facts(record_of(line)).kernel_isolated
        for line in ("isolcpus=domain,2", "isolcpus=2 nohz_full=3", "isolcpus=2-N", "quiet")
    }
    assert list(isolated.values()) == [frozenset({2}), frozenset({2, 3}), None, None]


@pytest.mark.parametrize(
    "text",
    [
        "isolcpus=2-3 quiet\n",
        "[    0.000000] Kernel command line: isolcpus=2-3 quiet\n",
        "root@box:~# cat /proc/cmdline\nisolcpus=2-3\nquiet\n",
        'GRUB_CMDLINE_LINUX_DEFAULT="isolcpus=2-3 quiet"\n',
        "> isolcpus=2-3 quiet\n",
    ],
)
def test_command_lines_as_people_paste_them(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "pasted"
    path.write_text(text)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    for given in (str(path), "-"):
        assert Facts(record_of(given)).read("/proc/cmdline").text == "isolcpus=2-3 quiet\n"


def test_a_configuration_with_gaps_does_not_mean_that_options_are_off(tmp_path: Path) -> None:
    path = tmp_path / "config.gz"
    path.write_bytes(gzip.compress(CONFIG.encode()))
    facts = Facts(record_of(kernel_config=path))
    assert facts.option("HZ").text == "250"
    assert facts.option("PREEMPT_RT").absent
    assert not facts.option("KASAN").absent  # The configuration does not go to its end.
    assert facts.record.begin.machine == "x86_64"


def test_a_configuration_of_another_kernel_counts_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(CONFIG)
    (tmp_path / "sysctl").write_text("kernel.osrelease = 6.12.1-rt\n")
    facts = Facts(record_of(kernel_config=tmp_path / "config", sysctl=tmp_path / "sysctl"))
    assert "is for 6.8.12, and 6.12.1-rt runs" in facts.option("HZ").reason


def test_lines_of_sysctl_that_are_no_setting_are_counted_and_named(tmp_path: Path) -> None:
    path = tmp_path / "sysctl"
    path.write_text(
        f"{SYSCTL}sysctl: permission denied on key 'kernel.watchdog'\nhello\nnet.ipv4.conf.eth0/1.rp_filter = 2\n"
        "kernel/panic = 3\nvm.swappiness = 6"
    )
    facts = Facts(record_of(sysctl=path))
    notes = [fact.value for fact in facts.record.facts if fact.key == "given.note"]
    assert any("1 line of" in note and "'hello'" in note for note in notes)
    assert any("no end" in note and "vm.swappiness" in note for note in notes)
    assert not facts.read("/proc/sys/vm/swappiness").here
    assert "Permission denied" in facts.read("/proc/sys/kernel/watchdog").reason
    assert facts.read("/proc/sys/net/ipv4/conf/eth0.1/rp_filter").word == "2"
    assert facts.read("/proc/sys/kernel/panic").word == "3"


def test_a_copy_made_by_tar_is_padded_or_empty(tmp_path: Path) -> None:
    isolated = "/sys/devices/system/cpu/isolated"
    copied(tmp_path, {isolated: "2-3\n" + "\0" * 4092, "/proc/cmdline": "", "/proc/swaps": "Filename\n"})
    record = record_of(proc_dump=tmp_path)
    assert Facts(record).read(isolated).text == "2-3\n"
    assert not Facts(record).read("/proc/cmdline").here
    assert any("1 file of" in fact.value and "empty" in fact.value for fact in record.facts)


def test_no_link_leads_out_of_a_copy(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("isolcpus=9\n")
    folder = copied(tmp_path / "copy", {"/proc/swaps": "Filename\n", "/proc/one": "quiet\n"})
    (folder / "proc" / "cmdline").symlink_to(tmp_path / "secret")
    (folder / "proc" / "version").symlink_to("version")
    os.mkfifo(folder / "proc" / "mounts")
    record = record_of(proc_dump=folder)
    assert [file.path for file in record.files] == ["/proc/swaps"]
    assert any("1 link of" in fact.value for fact in record.facts)


def test_files_of_some_cpus_do_not_speak_for_all(tmp_path: Path) -> None:
    state = "/sys/devices/system/cpu/cpu{}/power/pm_qos_resume_latency_us"
    files = {"/sys/devices/system/cpu/online": "0-1\n", state.format(0): "n/a\n"}
    pattern = state.format("[0-9]*")
    assert "every CPU" in Facts(record_of(proc_dump=copied(tmp_path, files))).match(pattern)[-1].reason
    copied(tmp_path, {state.format(1): "n/a\n"})
    assert all(one.here for one in Facts(record_of(proc_dump=tmp_path)).match(pattern))


def test_threads_of_a_copy(tmp_path: Path) -> None:
    kernel = thread(12, "migration/0", rt=99, flags=0x208040)
    copied(tmp_path, {**kernel, **thread(400, "ssh (d) x")})
    assert outcome(audited(proc_dump=tmp_path), "sched.prio99") is Outcome.UNKNOWN
    copied(tmp_path, {"/proc/loadavg": "0.1 0.1 0.1 1/2 400\n"})
    assert outcome(audited(proc_dump=tmp_path), "sched.prio99") is Outcome.GOOD
    copied(tmp_path, {"/proc/loadavg": "0.1 0.1 0.1 1/3 400\n"})
    few = next(one for one in audited(proc_dump=tmp_path).results if one.check.id == "sched.prio99")
    assert (few.outcome, "2 of 3 threads" in few.sentence) == (Outcome.UNKNOWN, True)
    copied(tmp_path, thread(500, "multipathd", rt=99))
    found = next(one for one in audited(proc_dump=tmp_path).results if one.check.id == "sched.prio99")
    assert (found.outcome, "multipathd/500" in found.sentence) == (Outcome.FINDING, True)


ASKED = tomllib.loads((Path(__file__).parent / "data" / "public" / "asked.toml").read_text())["asked"]


@pytest.mark.parametrize("asked", ASKED, ids=[asked["source"].removeprefix("https://github.com/") for asked in ASKED])
def test_what_people_posted_when_they_asked(asked: dict[str, Any], tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("kernel_config", "sysctl") if name in asked}
    for name, path in files.items():
        path.write_text(asked[name])
    for number, (name, rt) in enumerate(asked.get("threads", ()), 400):
        copied(tmp_path / "copy", thread(number, name, rt=rt, flags=0x208040 if "/" in name else 0x400000))
    dump = tmp_path / "copy" if "threads" in asked else None
    results = {one.check.id: one for one in audited(asked.get("command_line"), proc_dump=dump, **files).results}
    for check_id, expected, words in asked["says"]:
        assert (results[check_id].outcome, words in results[check_id].sentence) == (Outcome(expected), True)
    assert {one.check.id for one in results.values() if one.outcome is Outcome.CONFLICTING} == set()


BAD = {
    "empty": b"", "binary": bytes(range(256)) * 40, "words.txt": b"no setting here\n", "huge": b"a" * (9 << 20),
    "torn.gz": gzip.compress(CONFIG.encode())[:-9],
}  # fmt: skip


@pytest.mark.parametrize("option", ["--cmdline", "--kernel-config", "--sysctl", "--proc-dump"])
@pytest.mark.parametrize("name", [*BAD, "folder", "nowhere/x"])
def test_bad_input_is_refused_in_one_sentence(
    option: str, name: str, tmp_path: Path, refused: Callable[..., str]
) -> None:
    (tmp_path / "folder" / "proc").mkdir(parents=True)
    for each, content in BAD.items():
        (tmp_path / each).write_bytes(content)
    if (option, name) == ("--cmdline", "words.txt"):
        return  # Any words are a command line.
    said = refused("audit", option, tmp_path / name)
    assert option in said or name in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["facts.rtrec"], "FILE has all facts of one system, and --cmdline adds to no file"),
        (["--target", "ssh"], "--target is for facts that are collected, and --cmdline has them already"),
        (["-o", "x"], "--output is for facts that are collected, and --cmdline has them already"),
        (["--pid", "1"], "--pid is for facts that are collected"),
        (["--sysctl", "-", "--kernel-config", "-"], "standard input is one file"),
        (["--cpus", "x"], "--cpus"),
    ],
)
def test_what_does_not_go_together(words: list[str], said: str, refused: Callable[..., str]) -> None:
    assert said in folded(refused("audit", "--cmdline", "quiet", *words))


def test_a_hint_names_the_options() -> None:
    assert "give it with --cmdline, --kernel-config, --sysctl or --proc-dump" in folded(
        audit_text(audited("quiet"), full=True)
    )
