# SPDX-License-Identifier: Apache-2.0

import os
import shutil
from pathlib import Path

import pytest
import vm_cases
from test_vm_places import Usage

from rtproof.core.errors import TargetError
from rtproof.vm import guest

KIB = 1024


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = guest.snapshot_folder()
    folder.mkdir(parents=True)
    return folder


def stored(place: Path, name: str, age: int) -> Path:
    state = place / f"{name}.state"
    state.write_bytes(bytes(KIB))
    state.with_suffix(".console").write_text("Linux\n")
    os.utime(state, (1_000_000 - age, 1_000_000 - age))
    return state


def test_a_snapshot_that_is_there_is_used_and_counts_as_new(place: Path, tmp_path: Path) -> None:
    state = stored(place, "abc", age=500)
    before = state.stat().st_mtime
    file, said = guest.open_snapshot(vm_cases.machine(tmp_path), "abc", tmp_path / "log", 1)
    with file:
        assert (file.read(), said) == (bytes(KIB), b"Linux\n")
    assert state.stat().st_mtime > before
    assert not (tmp_path / "log").exists()


def test_those_not_used_for_longest_go_first_and_the_newest_stays(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest, "MOST_SNAPSHOT_BYTES", 2 * KIB)
    states = [stored(place, f"s{age}", age) for age in range(4)]
    with states[3].open("rb") as in_use:
        guest._forget_oldest(states[0])
        assert in_use.read() == bytes(KIB)
    assert [state.exists() for state in states] == [True, True, False, False]
    assert [state.with_suffix(".console").exists() for state in states] == [True, True, False, False]
    monkeypatch.setattr(guest, "MOST_SNAPSHOT_BYTES", 0)
    guest._forget_oldest(states[0])
    assert [state.exists() for state in states] == [True, False, False, False]


def test_too_little_room_is_said_before_booting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1 << 40, 1 << 40, 200 << 20))
    with pytest.raises(
        TargetError, match=r"a snapshot of the guest may need 512 MiB of disk in .*, and 200 MiB are free"
    ):
        guest.open_snapshot(vm_cases.machine(tmp_path), "abc", tmp_path / "log", 1)
