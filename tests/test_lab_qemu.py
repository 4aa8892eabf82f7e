# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab qemu``: fetched from a mirror of our own, with packages whose QEMU is a script."""

import hashlib
import json
import shutil
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import lab_cases
import pytest
import vm_cases
from debian_mirror import Mirror, mirror, signing_key

from rtproof.cli.main import main
from rtproof.core.errors import RtproofError, TargetError, UserError
from rtproof.experiment import guest_runner
from rtproof.lab import debian_packages, fetched_qemu
from rtproof.lab.fetched_qemu import fetch_qemu
from rtproof.report.pages import kernel_comparison_page
from rtproof.vm.emulators import choose_emulator, emulators, fetched_qemu_folder

__all__ = ["mirror", "signing_key"]

VERSION = "1:10.0.2+ds-2"
PROGRAM = "qemu-system-x86_64"
DiskUsage = namedtuple("DiskUsage", "total used free")


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

    def pin(self, digests: dict[str, str], version: str = VERSION, architecture: str = "") -> None:
        here = architecture or debian_packages.debian_architecture()
        rows = [
            f'[[package]]\narchitecture = "{here}"\nname = "{name}"\nversion = "{version}"\nsha256 = "{digest}"\n'
            for name, digest in digests.items()
        ]
        self.table.write_text("\n".join(['suites = ["bookworm"]', "", *rows]))


@pytest.fixture
def published(mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Published:
    found = Published(mirror, tmp_path / "table.toml")
    monkeypatch.setattr(fetched_qemu, "_TABLE", found.table)
    found.publish()
    return found


def refusal() -> str:
    """The one sentence; nothing is left of the attempt."""
    with pytest.raises(RtproofError) as caught:
        fetch_qemu()
    said = str(caught.value)
    assert "\n" not in said
    assert [path.name for path in fetched_qemu_folder().parent.glob("*") if path.suffix != ".lock"] == []
    return said


def test_every_package_is_pinned_by_its_bytes() -> None:
    table = fetched_qemu.pinned_packages()
    assert table.suites
    for package in table.package:
        assert len(bytes.fromhex(package.sha256)) == 32
        assert package.version
    assert len({(package.architecture, package.name) for package in table.package}) == len(table.package)


def test_it_is_unpacked_beside_the_systems_and_chosen_for_several_processors(
    published: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    stored = fetch_qemu(say=said.append)
    assert said == [f"fetching QEMU {VERSION}"]
    assert (stored.folder, stored.facts["version"]) == (fetched_qemu_folder(), VERSION)
    assert stored.facts["says"] == "QEMU emulator version 10.0.2 (Test)"
    assert sorted(stored.sha256) == [f"usr/bin/{PROGRAM}", "usr/share/qemu/bios.bin"]
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
    assert fetch_qemu(again=True).sha256 == first.sha256
    published.publish(vm_cases.says("10.1.0"), "1:10.1.0+ds-1")
    assert fetch_qemu().facts["says"] == "QEMU emulator version 10.1.0 (Test)"
    assert emulators(PROGRAM)[-1].numbers == (10, 1)


def test_a_damaged_one_is_fetched_again(published: Published) -> None:
    stored = fetch_qemu()
    program = stored.folder / "usr" / "bin" / PROGRAM
    program.write_text("#!/bin/sh\n")
    assert "damaged" in emulators(PROGRAM)[-1].fault
    assert fetch_qemu().sha256 == stored.sha256
    assert emulators(PROGRAM)[-1].fault == ""


def test_a_fetch_that_fails_leaves_the_old_one(published: Published) -> None:
    stored = fetch_qemu()
    published.pin({"qemu-system-x86": "0" * 64}, "2:1")
    with pytest.raises(UserError):
        fetch_qemu()
    assert emulators(PROGRAM)[-1].path == str(stored.folder / "usr" / "bin" / PROGRAM)


def test_a_version_that_the_mirror_has_dropped_is_told_with_the_way_to_an_older_mirror(published: Published) -> None:
    published.pin({"qemu-system-x86": "0" * 64}, "1:9.9")
    said = refusal()
    assert said.startswith("cannot find qemu-system-x86 in version 1:9.9 for ")
    elsewhere = "a mirror with older ones can be given with --mirror, such as one of snapshot.debian.org"
    assert said.endswith(f"(there are: {VERSION}; {elsewhere})")


def test_a_mirror_that_cannot_be_reached_is_told_in_apts_words(
    published: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RTPROOF_MIRROR", "file:/nonexistent/debian")
    said = refusal()
    assert said.startswith(f"cannot find qemu-system-x86 in version {VERSION} for ")
    assert "(apt-get says: " in said


def test_another_file_than_the_pinned_one_is_refused(published: Published) -> None:
    published.pin({"qemu-system-x86": "0" * 64})
    said = refusal()
    assert said.startswith("the mirror's qemu-system-x86_")
    assert said.endswith(
        ".deb is another file than the one that rtproof was tested with: give another mirror with --mirror URL"
    )


def test_a_machine_without_debians_tools_is_told_what_else_there_is(
    published: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    said = refusal()
    assert said.startswith("fetching Debian's packages needs apt-get, apt-cache, apt-config, dpkg, dpkg-deb, which")
    assert said.endswith("install QEMU 8.1 or newer, or give one of your own with --qemu PATH")


def test_a_machine_of_another_architecture_is_told_what_else_there_is(published: Published) -> None:
    published.pin({"qemu-system-x86": "0" * 64}, architecture="mips")
    here = debian_packages.debian_architecture()
    assert refusal() == (
        f"there is no QEMU to fetch for {here}: install QEMU 8.1 or newer, or give one of your own with --qemu PATH"
    )


def test_a_full_disk_is_told_before_anything_is_fetched(published: Published, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: DiskUsage(1 << 40, 1 << 40, 20 << 20))
    said = refusal()
    assert said.startswith("fetching QEMU may need 256 MiB of disk in ")
    assert said.endswith(", and 20 MiB are free")


def test_a_cache_that_cannot_be_written_is_told(published: Published, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    with pytest.raises(UserError, match="cannot keep "):
        fetch_qemu()


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo 'libfoo.so.1: cannot open shared object file' >&2; exit 127", "(libfoo.so.1: cannot open shared object"),
        ("exit 1", "(exit code 1)"),
    ],
)
def test_a_missing_library_is_told_with_the_package_that_brings_it(published: Published, script: str, why: str) -> None:
    published.publish(script, "1:11")
    said = refusal()
    assert f"{PROGRAM} cannot be run {why}" in said
    assert said.endswith("it takes its libraries from the system's QEMU (Debian: apt-get install qemu-system-x86)")


def test_packages_without_a_program_are_told(published: Published) -> None:
    deb = published.mirror.add("bookworm", "qemu-system-misc", VERSION, {"usr/share/qemu/x": b""})
    published.mirror.publish()
    published.pin({"qemu-system-misc": hashlib.sha256(deb.read_bytes()).hexdigest()})
    assert refusal().startswith("Debian's packages have no usr/bin/qemu-system-*: ")


@pytest.mark.parametrize(
    ("versions", "named"),
    [
        (("7.2", "7.2"), {"x86_64": "QEMU 7.2"}),
        (("7.2", "10.0"), {lab_cases.RT.name: "QEMU 7.2", lab_cases.PLAIN.name: "QEMU 10.0"}),
    ],
)
def test_a_result_names_the_qemu_of_each_system_if_they_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, versions: tuple[str, str], named: dict[str, str]
) -> None:
    told = dict(zip((lab_cases.RT.machine, lab_cases.PLAIN.machine), versions, strict=True))
    monkeypatch.setattr(guest_runner, "emulator_version", lambda machine: f"QEMU {told[machine]}")
    monkeypatch.setattr(guest_runner, "toolchain_name", lambda: "zig 0")
    making = guest_runner.provenance(lab_cases.matrix(tmp_path).cells(), ("rtproof",))
    assert making.qemu == named
    rows = [row for row in kernel_comparison_page.program_rows(making) if row[0].startswith("QEMU")]
    assert [text for _, text in rows] == list(named.values())
    assert [name for name, _ in rows] == (["QEMU"] if len(named) == 1 else [f"QEMU for {name}" for name in named])


@pytest.mark.parametrize(
    ("cpus", "told"),
    [
        (1, {"pace_us": None, "soakers": False, "soaker_sha256": None, "qemu_asked": None}),
        (2, {"pace_us": 7, "soakers": True, "soaker_sha256": "d" * 64, "qemu_asked": "fetched"}),
    ],
)
def test_a_system_of_the_json_tells_its_processors_and_its_qemu(
    monkeypatch: pytest.MonkeyPatch, cpus: int, told: dict[str, object]
) -> None:
    real = lab_cases.FakeMachine.inputs
    soaker = "d" * 64 if cpus > 1 else ""
    monkeypatch.setattr(lab_cases.FakeMachine, "inputs", lambda self: replace(real(self), soaker_sha256=soaker))
    machine = replace(lab_cases.RT.machine, cpus=cpus, pace_us=7, qemu="fetched" if cpus > 1 else "")
    found = kernel_comparison_page._system_dict(replace(lab_cases.RT, machine=machine))
    assert {key: found[key] for key in told} == told
    assert found["qemu"] == "QEMU emulator version 7.2"


# The command.


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
    out, err = capsys.readouterr()
    assert f"fetching QEMU {VERSION}\n" in err
    rows = [line.split() for line in out.splitlines()]
    assert [PROGRAM, "system", "7.2.22", "one"] in rows
    assert [PROGRAM, "fetched", "10.0.2", "several"] in rows
    assert f"fetched: {fetched_qemu_folder() / 'usr' / 'bin'}" in out
    table = out.split("\n\n")[0]
    assert max(map(len, table.splitlines())) <= 80


def test_the_list_as_json_has_what_the_page_names(machine: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "qemu", "--fetch", "--json", "--mirror", machine]) == 0
    listed = [each for each in json.loads(capsys.readouterr().out) if each["program"] == PROGRAM]
    keys = ["program", "origin", "version", "path", "fault", "runs_several_processors", "used_for"]
    assert [list(each) for each in listed] == [keys] * 2
    assert [each["used_for"] for each in listed] == [["one"], ["several"]]
    assert [each["runs_several_processors"] for each in listed] == [False, True]
    assert [each["fault"] for each in listed] == [None, None]


def test_a_damaged_one_is_in_the_list_with_what_mends_it(machine: str, capsys: pytest.CaptureFixture[str]) -> None:
    fetch_qemu(machine)
    (fetched_qemu_folder() / "files.json").unlink()
    assert main(["lab", "qemu"]) == 0
    out = capsys.readouterr().out
    assert "is damaged: fetch it again with rtproof lab qemu --fetch\n" in out
    assert "several\n" not in out


def test_a_machine_without_any_is_told_the_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", "/nonexistent")
    assert main(["lab", "qemu"]) == 0
    assert "apt-get install qemu-system-x86 qemu-system-arm" in capsys.readouterr().out
    assert main(["lab", "qemu", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


@pytest.mark.parametrize("words", [["--fetch"], ["--again"], ["--fetch", "--json"]])
def test_a_refused_fetch_is_one_sentence(
    machine: str, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: DiskUsage(1 << 40, 1 << 40, 20 << 20))
    assert main(["lab", "qemu", *words, "--mirror", machine]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("rtproof: fetching QEMU may need 256 MiB")


def test_the_cache_lists_and_clears_it(machine: str, capsys: pytest.CaptureFixture[str]) -> None:
    fetch_qemu(machine)
    assert main(["lab", "cache", "--json"]) == 0
    (part,) = [each for each in json.loads(capsys.readouterr().out)["parts"] if each["part"] == "qemu"]
    assert (part["entries"], part["bound_bytes"]) == (1, None)
    assert main(["lab", "cache", "clear", "qemu"]) == 0
    assert not fetched_qemu_folder().exists()


def test_errors_are_of_the_kind_that_says_who_can_mend_it(
    published: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: DiskUsage(1 << 40, 1 << 40, 20 << 20))
    with pytest.raises(TargetError):
        fetch_qemu()
