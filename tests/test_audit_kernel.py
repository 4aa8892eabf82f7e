# SPDX-License-Identifier: Apache-2.0
"""Checks of the kernel's build: what makes each of them a finding, good, unknown or conflicting."""

import gzip
import re
from pathlib import Path

import pytest
from audit_cases import judged, made_facts

from rtproof.audit import check_file
from rtproof.audit.audit_model import Outcome
from rtproof.audit.check import Severity
from rtproof.audit.facts import Facts, State
from rtproof.audit.functions.kernel import Bug, exact_version, has_bug
from rtproof.record.contents import Moment, SystemFile

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
