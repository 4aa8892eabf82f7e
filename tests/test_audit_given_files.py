# SPDX-License-Identifier: Apache-2.0
"""The audit of what people have at hand: a command line, a configuration, the output of sysctl."""

import gzip
import io
import sys
import tomllib
from collections.abc import Callable
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


def audited(*given: Any, **files: Any) -> Audit:
    return judgement.audit(Facts(record_of(*given, **files)))


def folded(text: str) -> str:
    return " ".join(text.split())


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
    "con.printk": (Outcome.FINDING, Outcome.GOOD),
    "kern.preempt.mode": (Outcome.NOT_APPLICABLE, Outcome.GOOD),
    "sched.rt_share": (Outcome.GOOD, Outcome.NOT_APPLICABLE),
}
"""Without debugfs a PREEMPT_RT kernel shows no choice of models; a feature that is off is off, throttled or not; and
without /proc/consoles a serial console is one that prints with interrupts off."""


@pytest.mark.parametrize("name", stored_names())
def test_what_was_given_says_what_the_agent_said_or_nothing(name: str, tmp_path: Path) -> None:
    """Of the files that an agent read one is given, or all: some checks are unknown, none is another."""
    record = stored_record(name)
    texts = {
        file.path: file.content.decode(errors="replace")
        for file in record.files
        if file.moment is Moment.START and not file.errno and not file.cut
    }
    settings = {path.removeprefix("/proc/sys/"): text for path, text in texts.items() if path.startswith("/proc/sys/")}
    settings |= {"kernel/osrelease": record.begin.kernel_release, "kernel/version": record.begin.kernel_version}
    lines = (f"{key} = {line}\n" for key, text in settings.items() for line in text.splitlines())
    (tmp_path / "sysctl").write_text("".join(lines) + f"kernel/arch = {record.begin.machine}\n")
    given: dict[str, Any] = {"sysctl": tmp_path / "sysctl"}
    if config := next((text for path, text in texts.items() if path.startswith("/boot/config")), ""):
        given["kernel_config"] = tmp_path / "config"
        given["kernel_config"].write_text(config)
    if line := texts.get("/proc/cmdline", "").strip():
        given["command_line"] = line
    theirs = {one.check.id: one.outcome for one in judgement.audit(Facts(record)).results}
    for some in (*({key: each} for key, each in given.items()), given):
        other = {
            one.check.id: (one.outcome, theirs[one.check.id])
            for one in audited(**some).results
            if one.outcome not in (Outcome.UNKNOWN, theirs[one.check.id]) and not one.check.id.startswith("sched.app.")
        }
        other = {check_id: both for check_id, both in other.items() if NARROWER.get(check_id) != both}
        assert (list(some), other) == (list(some), {})


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


ASKED = tomllib.loads((Path(__file__).parent / "data" / "public" / "asked.toml").read_text())["asked"]


@pytest.mark.parametrize("asked", ASKED, ids=[asked["source"].removeprefix("https://github.com/") for asked in ASKED])
def test_what_people_posted_when_they_asked(asked: dict[str, Any], tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("kernel_config", "sysctl") if name in asked}
    for name, path in files.items():
        path.write_text(asked[name])
    results = {one.check.id: one for one in audited(asked.get("command_line"), **files).results}
    for check_id, expected, words in asked["says"]:
        assert (results[check_id].outcome, words in results[check_id].sentence) == (Outcome(expected), True)
    assert {one.check.id for one in results.values() if one.outcome is Outcome.CONFLICTING} == set()


BAD = {
    "empty": b"", "binary": bytes(range(256)) * 40, "words.txt": b"no setting here\n", "huge": b"a" * (9 << 20),
    "torn.gz": gzip.compress(CONFIG.encode())[:-9],
}  # fmt: skip


@pytest.mark.parametrize("option", ["--cmdline", "--kernel-config", "--sysctl"])
@pytest.mark.parametrize("name", [*BAD, "folder", "nowhere/x"])
def test_bad_input_is_refused_in_one_sentence(
    option: str, name: str, tmp_path: Path, refused: Callable[..., str]
) -> None:
    (tmp_path / "folder").mkdir()
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
    assert "give it with --cmdline, --kernel-config or --sysctl" in folded(audit_text(audited("quiet"), full=True))
