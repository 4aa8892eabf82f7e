# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab qemu``: fetched from a mirror of our own, with packages whose QEMU is a script."""

import hashlib
from pathlib import Path

import pytest
import vm_cases
from debian_mirror import Mirror, mirror, signing_key

from rtproof.cli.main import main
from rtproof.core.errors import UserError
from rtproof.lab import debian_packages
from rtproof.lab.debian_packages import fetch_qemu
from rtproof.vm.emulators import choose_emulator, emulators, fetched_qemu_folder

__all__ = ["mirror", "signing_key"]

VERSION = "1:10.0.2+ds-2"
PROGRAM = "qemu-system-x86_64"


class Published:
    """A mirror with a QEMU in two packages, and the table that pins them."""

    def __init__(self, mirror: Mirror, table: Path) -> None:
        self.mirror = mirror
        self.table = table

    def publish(self, script: str = vm_cases.says("10.0.2"), version: str = VERSION) -> None:
        """Add the packages, and write the table for them."""
        files = {f"usr/bin/{PROGRAM}": f"#!/bin/sh\n{script}\n".encode(), "usr/share/doc/q/copyright": b"text\n"}
        debs = {
            "qemu-system-x86": self._add("qemu-system-x86", version, files),
            "qemu-system-data": self._add("qemu-system-data", version, {"usr/share/qemu/bios.bin": b"bios"}),
        }
        self.pin({name: hashlib.sha256(deb.read_bytes()).hexdigest() for name, deb in debs.items()}, version)
        self.mirror.publish()

    def _add(self, name: str, version: str, files: dict[str, bytes]) -> Path:
        return self.mirror.add("bookworm", name, version, files)

    def pin(self, digests: dict[str, str], version: str = VERSION) -> None:
        here = debian_packages.debian_architecture()
        rows = [
            f'[[package]]\narchitecture = "{here}"\nname = "{name}"\nversion = "{version}"\nsha256 = "{digest}"\n'
            for name, digest in digests.items()
        ]
        self.table.write_text("\n".join(['suites = ["bookworm"]', "", *rows]))


@pytest.fixture
def published(mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Published:
    found = Published(mirror, tmp_path / "table.toml")
    monkeypatch.setattr(debian_packages, "_TABLE", found.table)
    found.publish()
    return found


def test_it_is_unpacked_beside_the_systems_and_chosen_for_several_processors(
    published: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = fetch_qemu()
    assert (stored.folder, stored.facts["version"]) == (fetched_qemu_folder(), VERSION)
    assert stored.facts["says"] == "QEMU emulator version 10.0.2 (Test)"
    kept = sorted(str(path.relative_to(stored.folder)) for path in stored.folder.rglob("*") if path.is_file())
    assert kept == ["files.json", f"usr/bin/{PROGRAM}", "usr/share/qemu/bios.bin"]
    old = vm_cases.fake_qemu(tmp_path / "bin", monkeypatch, "7.2.22")
    assert choose_emulator(PROGRAM, "qemu-system-x86", cpus_share_time=False).path == str(old)
    assert choose_emulator(PROGRAM, "qemu-system-x86", cpus_share_time=True).origin == "fetched"


def test_a_second_fetch_needs_nothing_of_the_network_or_of_apt(
    published: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = fetch_qemu()
    monkeypatch.setenv("PATH", "/nonexistent")
    assert fetch_qemu() == first


def test_another_version_in_the_table_or_the_wish_fetches_again(published: Published) -> None:
    first = fetch_qemu()
    assert fetch_qemu(again=True) == first
    published.publish(vm_cases.says("10.1.0"), "1:10.1.0+ds-1")
    assert fetch_qemu().facts["says"] == "QEMU emulator version 10.1.0 (Test)"
    assert emulators(PROGRAM)[-1].numbers == (10, 1)


def test_a_fetch_that_fails_leaves_the_old_one(published: Published) -> None:
    stored = fetch_qemu()
    published.pin({"qemu-system-x86": "0" * 64}, "2:1")
    with pytest.raises(UserError):
        fetch_qemu()
    assert emulators(PROGRAM)[-1].path == str(stored.folder / "usr" / "bin" / PROGRAM)


def test_another_file_than_the_pinned_one_is_refused(published: Published) -> None:
    published.pin({"qemu-system-x86": "0" * 64})
    with pytest.raises(UserError, match="is another file than the one that rtproof was tested with"):
        fetch_qemu()
    assert [path.name for path in fetched_qemu_folder().parent.glob("*") if path.suffix != ".lock"] == []


@pytest.fixture
def machine(published: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A machine with an old QEMU; the address of the mirror."""
    vm_cases.fake_qemu(tmp_path / "bin", monkeypatch, "7.2.22")
    for name in ("qemu-system-aarch64", "qemu-system-arm"):
        vm_cases.program(tmp_path / "bin", vm_cases.says("7.2.22", "exit 1"), name)
    monkeypatch.delenv("RTPROOF_MIRROR")
    return published.mirror.uri


def test_the_list_says_which_is_used_for_what(machine: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "qemu", "--fetch", "--mirror", machine]) == 0
    out = capsys.readouterr().out
    rows = [line.split() for line in out.splitlines()]
    assert [PROGRAM, "system", "7.2.22", "one"] in rows
    assert [PROGRAM, "fetched", "10.0.2", "several"] in rows
