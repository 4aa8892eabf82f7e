# SPDX-License-Identifier: Apache-2.0
"""The advice of the audit: it names this machine's CPUs, and nothing that is so already or cannot be."""

import re
from collections.abc import Mapping

import pytest
from audit_cases import MISSING, REFUSED, judged, made_facts
from audit_checks import rules_of
from audit_systems import stored_names, stored_record

from rtproof.audit import check_file, judgement
from rtproof.audit.check import Audit, Change, Check, Outcome, Severity
from rtproof.audit.facts import AuditRequest, Facts
from rtproof.audit.fitted_advice import fitted
from rtproof.report.pages import audit_page
from rtproof.report.pages.audit_page import audit_junit
from rtproof.report.text_table import fitted_to_terminal
from rtproof.schema.encoder import json_bytes
from rtproof.schema.published import audit_dict

CPU = "/sys/devices/system/cpu"
LEFT_OPEN = re.compile(
    r"\{[a-z]+\}|(?:cpu|state|machinecheck|=)[MN]\b"
    r"|\b(?:CPUS|OTHERS|MASK|LIST|CPUSET|NUMBER|PID|TID|NAME|DEVICE|DRIVER|PROGRAM|PRIORITY|RELEASE|NODE|TIMER|GROUP|STATE)\b"
)
"""What stands for something that a user would have to look up."""
REQUESTS = {"none": AuditRequest(), "CPU 1": AuditRequest(frozenset({1}))}


def audited(name: str, request: AuditRequest) -> Audit:
    return judgement.audit(Facts(stored_record(name), request))


@pytest.mark.parametrize("request_name", REQUESTS)
@pytest.mark.parametrize("name", stored_names())
def test_no_output_has_a_word_that_the_machine_would_fill(name: str, request_name: str) -> None:
    found = audited(name, REQUESTS[request_name])
    outputs = [audit_page.audit_text(found), audit_page.audit_text(found, verbose=True)]
    outputs += [json_bytes(audit_dict(found, Severity.HIGH)).decode(), audit_junit(found, Severity.HIGH).decode()]
    for text in outputs:
        own = re.sub(r"PID\s+TID.{0,60}COMM", "", text, flags=re.DOTALL)  # what was read has such titles
        assert LEFT_OPEN.findall(own) == []


def changes(files: Mapping[str, str | int], request: AuditRequest | None = None) -> dict[str, Change]:
    """The changes that each check advises, by its id."""
    return {one.check.id: one.check.change for one in judgement.audit(made_facts(files, request=request)).results}


def test_advice_names_the_cpus_of_the_machine() -> None:
    two = {f"{CPU}/online": "0-1\n", f"{CPU}/isolated": "\n"}
    assert changes(two)["iso.declared"].boot == "isolcpus=managed_irq,domain,1"
    named = changes(two, AuditRequest(frozenset({0})))
    assert named["iso.irq.default"] == Change(
        "echo 2 > /proc/irq/default_smp_affinity", "irqaffinity=1", risk="The other CPUs serve all interrupts."
    )
    many = changes({f"{CPU}/online": "0-63\n", f"{CPU}/isolated": "2-63\n"})
    assert many["wd.soft"].now == "echo 0-1 > /proc/sys/kernel/watchdog_cpumask"
    low = changes({f"{CPU}/online": "0-63\n", f"{CPU}/isolated": "0-1\n"})
    assert low["iso.wq"].now.startswith("echo ffffffff,fffffffc > ")


@pytest.mark.parametrize("online", ["0\n", "\n"])
def test_where_no_cpu_is_left_nothing_is_isolated(online: str) -> None:
    advised = changes({f"{CPU}/online": online, f"{CPU}/isolated": "\n"}, AuditRequest(frozenset({0})))
    assert [name for name, change in advised.items() if "isolcpus=managed" in change.boot] == []


def test_all_cpus_cannot_be_isolated() -> None:
    files = {f"{CPU}/online": "0-1\n", f"{CPU}/isolated": "\n"}
    facts = made_facts(files, request=AuditRequest(frozenset({0, 1})))
    found = {one.check.id: one for one in judgement.audit(facts).results}
    assert found["iso.declared"].outcome is Outcome.FINDING
    assert found["iso.partition"].outcome is Outcome.NOT_APPLICABLE


def in_files(irq: int) -> dict[str, str]:
    return {f"/proc/irq/{irq}/smp_affinity_list": "0-1\n", f"/sys/kernel/irq/{irq}/actions": f"eth{irq}\n"}


@pytest.mark.parametrize(
    ("irqs", "command"),
    [
        ((24,), "echo 0 > /proc/irq/24/smp_affinity_list"),
        ((24, 31), "for irq in 24 31; do echo 0 > /proc/irq/$irq/smp_affinity_list; done"),
    ],
)
def test_advice_names_the_interrupts_of_the_finding(irqs: tuple[int, ...], command: str) -> None:
    files = {f"{CPU}/online": "0-1\n", f"{CPU}/isolated": "1\n"}
    for irq in irqs:
        files |= in_files(irq)
    assert changes(files)["iso.irq.eff"].now == command


def test_no_name_of_a_hostile_file_gets_into_a_command() -> None:
    assert "ethtool -C eth0 " in changes({"net-devices": "eth0 rx-usecs=50\n"})["pm.nic"].now
    assert changes({"net-devices": "eth0;reboot rx-usecs=50\n"})["pm.nic"].now == ""


def test_a_taint_by_a_module_names_the_module_and_one_by_a_warning_names_none() -> None:
    files: dict[str, str | int] = {"/proc/sys/kernel/tainted": "4096\n", "/sys/module/vivante/taint": "OE\n"}
    assert changes(files)["kern.taint"].application == "Boot without vivante."
    assert changes({"/proc/sys/kernel/tainted": "512\n"})["kern.taint"].application == ""


def advised(change: Change, files: Mapping[str, str | int], kernel: str = "6.12.0") -> Change:
    """What is left of a change of a check of one file on a machine."""
    check = Check(
        "mem.knob", "A knob", ("/proc/sys/vm/knob",), Severity.LOW, "Why.", ("source",), "Advice.",
        rule=rules_of("/proc/sys/vm/knob", "1"), if_absent=Outcome.FINDING, change=change, subject="memory",
    )  # fmt: skip
    facts = made_facts(files, kernel=(kernel, "#1 SMP"))
    (found,) = judgement.audit(facts, [check]).results
    return found.check.change


@pytest.mark.parametrize(
    ("content", "command", "left"),
    [
        ("0\n", "echo 5 > {path}", "echo 5 > /proc/sys/vm/knob"),
        ("5\n", "echo 5 > {path}", ""),
        ("5\n", "sysctl vm.knob=5", ""),
        ("always [never]\n", "echo never > {path}", ""),
        (MISSING, "echo 5 > {path}", ""),
        ("5\n", "echo 5 > {path}; systemctl stop it", "systemctl stop it"),
    ],
)
def test_a_file_is_written_only_where_it_is_and_holds_something_else(
    content: str | int, command: str, left: str
) -> None:
    assert advised(Change(now=command), {"/proc/sys/vm/knob": content}).now == left


@pytest.mark.parametrize("root", ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"])
def test_the_change_names_the_instances_that_trace(root: str) -> None:
    """Also where tracefs is below debugfs only."""
    files: dict[str, str | int] = {f"{root}/current_tracer": "nop\n", f"{root}/set_event": ""}
    left, mine = f"{root}/instances/rtproof-7_9-trace", f"{root}/instances/mine"
    for instances, expected in (
        ([left], f"echo > {left}/set_event"),
        ([left, mine], f"for folder in {mine} {left}; do "),
    ):
        traced = made_facts({**files, **{f"{each}/set_event": "sched:sched_switch\n" for each in instances}})
        assert expected in fitted(traced, judged("trace.active", traced)).check.change.now


def test_a_clock_source_that_the_kernel_does_not_offer_is_not_advised() -> None:
    folder = "/sys/devices/system/clocksource/clocksource0"
    files: dict[str, str | int] = {
        f"{folder}/current_clocksource": "hpet\n",
        f"{folder}/available_clocksource": "hpet acpi_pm\n",
    }
    assert changes(files)["clk.source"].now == ""
    files[f"{folder}/available_clocksource"] = "tsc hpet\n"
    assert changes(files)["clk.source"].now == f"echo tsc > {folder}/current_clocksource"
    files[f"{folder}/available_clocksource"] = REFUSED
    assert changes(files)["clk.source"].now == ""


@pytest.mark.parametrize(
    ("line", "kernel", "words", "left"),
    [
        ("quiet", "6.12.0", "quiet loglevel=1", "loglevel=1"),
        ("nohz=off", "6.12.0", "nohz=off", ""),
        ("nohz=on", "6.12.0", "nohz=off", "nohz=off"),
        ("quiet", "6.12.0", "rt_group_sched=0", ""),
        ("quiet", "6.16.0", "rt_group_sched=0", "rt_group_sched=0"),
        ("quiet", "5.4.0", "sysctl.vm.knob=1", ""),
        ("quiet", "5.10.0", "sysctl.vm.knob=1", "sysctl.vm.knob=1"),
    ],
)
def test_the_command_line_gets_only_words_that_it_lacks_and_the_kernel_obeys(
    line: str, kernel: str, words: str, left: str
) -> None:
    assert advised(Change(boot=words), {"/proc/cmdline": line, "/proc/sys/vm/knob": "0\n"}, kernel).boot == left


@pytest.mark.parametrize("check", check_file.all_checks(), ids=lambda check: check.id)
def test_the_first_of_checks_with_one_cause_says_as_much_as_the_others(check: Check) -> None:
    for name in check.told_by:
        first = check_file.find_check(name)
        assert all({told, told.partition(":")[0]} & set(first.explains) for told in check.explains)
        assert first.severity.rank <= check.severity.rank


def listed(screen: str) -> tuple[int, int]:
    """The findings that a screen has, and how many it says that it leaves out."""
    severities = "|".join(severity.value for severity in Severity)
    more = re.search(r"and (\d+) more finding", screen)
    return len(re.findall(rf"(?m)^(?:{severities}) +[a-z]+\.", screen)), int(more[1]) if more else 0


@pytest.mark.parametrize("name", stored_names())
def test_the_screen_has_forty_lines_of_eighty_columns_and_counts_what_it_leaves_out(name: str) -> None:
    found = audited(name, AuditRequest(frozenset({1})))
    with fitted_to_terminal(80):
        screen = audit_page.audit_text(found)
    assert max(map(len, screen.splitlines())) <= 80
    assert len(screen.splitlines()) <= 40
    shown, left_out = listed(screen)
    assert shown + left_out == len(found.of(Outcome.FINDING))
