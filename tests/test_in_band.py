# SPDX-License-Identifier: Apache-2.0
"""Beside a co-kernel every output says in its first lines that Linux's own threads were measured."""

from dataclasses import replace

import pytest
from analysis_records import fact
from doubt_cases import clean, files, said_of
from report_cases import system_file
from system_records import NO_COKERNEL, XENOMAI_3, config, missing

from rtproof.record.contents import Moment, Record, SystemFile
from rtproof.summary.measured_kernel import core_beside
from rtproof.summary.summary_model import Severity

VERSION = system_file("/proc/xenomai/version", "3.2.1\n")
THERE = missing("/proc/xenomai", 21)
STAT = "/proc/xenomai/sched/stat"


def beside(*more: SystemFile, agent: int = 817) -> Record:
    """A clean run on a kernel with Cobalt. agent: the number of the agent's process."""
    made = clean()
    return replace(
        made, files=(*files({}), VERSION, THERE, *more), facts=(*made.facts, fact("agent_pid", agent, Moment.START))
    )


@pytest.mark.parametrize(
    ("file", "name"),
    [
        (VERSION, "Xenomai 3.2.1 (Cobalt)"),
        (missing("/sys/class/evl", 21), "EVL (Xenomai 4)"),
        (missing("/proc/rtai", 21), "RTAI"),
        (system_file("kernel-log", "[Xenomai] Cobalt v3.2.4\n"), "Xenomai 3.2.4 (Cobalt)"),
    ],
)
def test_each_core_is_the_first_doubt(file: SystemFile, name: str) -> None:
    found = said_of(clean(files=(*files({}), file)))
    assert set(found) == {"in-band"}
    assert found["in-band"].severity is Severity.WARNING
    assert found["in-band"].what == f"in-band: {name} runs beside Linux"


def test_linux_alone_is_no_doubt() -> None:
    assert core_beside(clean()) is None
    assert said_of(clean(files=(*files({}), missing("/proc/xenomai")))) == {}


@pytest.mark.parametrize("option", ["XENOMAI", "EVL"])
def test_a_core_that_was_built_in_but_shows_nowhere_is_the_first_doubt(option: str) -> None:
    hidden = replace(clean(), files=(*files({}), config(f"CONFIG_{option}=y\n"), *NO_COKERNEL))
    found = said_of(hidden)
    assert set(found) == {"core-unseen"}
    assert f"CONFIG_{option} in /proc/config.gz" in found["core-unseen"].detail


def test_a_core_that_shows_is_not_called_hidden_and_one_left_out_is_no_doubt() -> None:
    assert set(said_of(replace(beside(), files=(*beside().files, config("CONFIG_XENOMAI=y\n"))))) == {"in-band"}
    left_out = config("# CONFIG_XENOMAI is not set\nCONFIG_DOVETAIL=y\n")
    assert said_of(clean(files=(*files({}), left_out, *NO_COKERNEL))) == {}


def test_mode_switches_of_a_measured_thread_make_the_run_invalid() -> None:
    ends = (system_file(STAT, XENOMAI_3.format(3)), system_file(STAT, XENOMAI_3.format(90), Moment.END))
    doubt = said_of(beside(*ends))["mode-switches"]
    assert doubt.severity is Severity.INVALID
    assert "817 sampling-817 by 87" in doubt.detail
    assert "mode-switches" not in said_of(beside(*ends, agent=5))
    steady = (ends[0], system_file(STAT, XENOMAI_3.format(3), Moment.END))
    assert "mode-switches" not in said_of(beside(*steady))
