# SPDX-License-Identifier: Apache-2.0
"""Planted misconfigurations: the audit finds each by its own id, and nothing else."""

from collections import Counter
from pathlib import Path

import pytest
from audit import outcomes_of_systems, table, try_plant, without_plant
from audit_plants import PLANTS, REAL_PLANTS, SYSTEMS, Plant
from audit_systems import (
    FOLDER,
    System,
    bytes_of_record,
    record_of_bytes,
    stored_bytes,
    stored_names,
    stored_record,
)

from rtproof.audit import check_file, judgement
from rtproof.audit.audit_model import Outcome
from rtproof.audit.facts import Facts

ROOM = 3 << 20
FEWEST_PLANTS, FEWEST_TOGETHER, FEWEST_IN_GUESTS = 60, 5, 12


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_a_planted_misconfiguration_is_found_and_nothing_else(plant: Plant) -> None:
    tried = try_plant(plant)
    assert tried.missed == frozenset()
    assert tried.false == frozenset()
    assert tried.lost == frozenset()


def test_there_are_enough_plants_with_names_and_checks_of_their_own() -> None:
    known = {check.id for check in check_file.all_checks()}
    together = [plant for plant in PLANTS if plant.together and len(plant.expected) > 3]
    assert len(PLANTS) - len(together) >= FEWEST_PLANTS
    assert len(together) >= FEWEST_TOGETHER
    assert len(REAL_PLANTS) >= FEWEST_IN_GUESTS
    assert [name for name, count in Counter(plant.name for plant in PLANTS).items() if count > 1] == []
    expected = [plant.expected for plant in PLANTS] + [plant.expected for plant in REAL_PLANTS]
    assert {name for names in expected for name in names} <= known


def test_the_stored_systems_are_small_and_of_every_lab_kernel() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < ROOM
    kernels = {f"debian-{series}{rt}{arch}" for series in ("6.1", "6.12") for rt in ("", "-rt") for arch in ARCHES}
    assert kernels | {"virtual-machine", "container", "container-user"} <= set(stored_names())


ARCHES = ("", "-arm64", "-armhf")


def test_a_record_that_is_written_again_says_the_same() -> None:
    record = stored_record("debian-6.12-rt")
    again = record_of_bytes(bytes_of_record(record))
    assert (again.begin, again.facts, again.files, again.end) == (record.begin, record.facts, record.files, record.end)
    assert record_of_bytes(stored_bytes("debian-6.12-rt")).files == record.files


@pytest.mark.parametrize("name", stored_names())
def test_every_stored_system_is_judged_whole_and_twice_alike(name: str) -> None:
    audits = [judgement.audit(Facts(stored_record(name))) for _ in range(2)]
    assert audits[0] == audits[1]
    assert audits[0].collected
    assert [result.check for result in audits[0].results] == list(check_file.all_checks())


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_sound_system_has_no_finding_above_low_but_those_that_hold(name: str) -> None:
    above_low = outcomes_of_systems()[name]["above_low"]
    assert set(above_low) - _OF_ANY_GUEST - HOLDS.get(name, set()) == set()


_OF_ANY_GUEST = {"hw.virt", "clk.tsc", "clk.source", "kern.dmesg.bugs"}
"""What holds of an emulator on a busy host: no constant counter, and interrupts that come late."""
HOLDS = {
    "stock": {"kern.preempt.rt"},
    "application": {"pm.qos.dma"},
}
"""Findings above low that hold of systems that plants are put into, as a person judged. The agent holds the request."""


def test_a_wrong_application_has_a_finding_of_each_kind() -> None:
    found = {result.check.id for result in System("wrong-application").audit().of(Outcome.FINDING)}
    kinds = ("policy", "lock", "heap", "faults", "affinity", "slack")
    assert {f"sched.app.{kind}" for kind in kinds} <= found


def test_the_table_counts_found_missed_and_false() -> None:
    plants = [plant for plant in PLANTS if "mem.thp" in plant.expected][:1]
    tried = [try_plant(plant) for plant in plants]
    assert table(tried)["mem.thp"] == {"found": 1, "missed": 0, "false": 0}
    wrong = [try_plant(Plant("wrong", plants[0].system, plants[0].edits, ("mem.ksm",)))]
    assert table(wrong)["mem.thp"] == {"found": 0, "missed": 0, "false": 1}
    assert table(wrong)["mem.ksm"] == {"found": 0, "missed": 1, "false": 0}
    assert not wrong[0].right


def test_every_check_has_a_plant() -> None:
    assert without_plant() == []


def test_the_systems_of_the_bench_are_all_there(tmp_path: Path) -> None:
    found = outcomes_of_systems()
    assert set(found) == {*stored_names(), *SYSTEMS}
    assert all(sum(each["outcomes"].values()) == len(check_file.all_checks()) for each in found.values())
