# SPDX-License-Identifier: Apache-2.0

import lzma
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import vm_cases

from rtproof.vm import cache_folders, guest
from rtproof.vm.kernel_files import open_kernel
from rtproof.vm.machine import Machine, bootable_image, pacer_arguments, qemu_arguments

needs_cc = pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler here")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "rtproof" / "lab"


def folders(cache: Path) -> list[str]:
    return [path.name for path in (cache / "scratch").iterdir() if path.is_dir()]


def test_a_scratch_folder_is_gone_after_its_use_also_after_an_error(cache: Path) -> None:
    def use() -> None:
        with cache_folders.scratch_folder() as folder:
            (folder / "file").touch()
            assert folders(cache) == [folder.name]
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        use()
    assert folders(cache) == []


def test_a_bzimage_is_booted_as_what_is_inside_and_unpacked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    image = tmp_path / "vmlinuz"
    image.write_bytes(vm_cases.bzimage(lzma.compress(vm_cases.elf())))
    kernel = open_kernel(image)
    inside = bootable_image(kernel)
    assert inside.read_bytes() == vm_cases.elf()
    image.unlink()
    assert bootable_image(kernel) == inside


def test_the_command_line_of_virtual_time_has_nothing_of_this_host(tmp_path: Path) -> None:
    machine = replace(vm_cases.machine(tmp_path), boot=("preempt=none",), memory_mib=256)
    said = " ".join(qemu_arguments(machine, Path("kernel")))
    assert "-M pc -accel tcg,thread=single -icount shift=0,sleep=off -rtc base=2024-01-01T00:00:00,clock=vm" in said
    assert "-seed 1 -smp 1 -m 256 -kernel kernel -initrd initrd" in said
    assert "-append console=ttyS0 quiet nokaslr panic=-1 " in said
    assert " preempt=none -chardev" in said
    assert "-nodefaults -no-user-config -display none -nic none -no-reboot" in said


def test_the_pacer_is_for_processors_that_take_turns(tmp_path: Path) -> None:
    machine = replace(vm_cases.machine(tmp_path), cpus=2, pace_us=7)
    words = " ".join(pacer_arguments(machine))
    pacer = "-netdev hubport,id=tick,hubid=0 -object filter-buffer,id=pace,netdev=tick,queue=rx,interval=7"
    assert words == pacer
    assert pacer_arguments(replace(machine, cpus=1)) == ()
    assert pacer_arguments(replace(machine, in_virtual_time=False)) == ()
    assert "interval=1000" in " ".join(pacer_arguments(machine, at_boot=True))
    assert pacer_arguments(replace(machine, cpus=1), at_boot=True) == ()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    vm_cases.fake_qemu(tmp_path / "bin", monkeypatch)
    return vm_cases.machine(tmp_path)


@needs_cc
def test_whatever_decides_the_guests_bytes_changes_the_identity(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vm_cases.fake_qemu(tmp_path / "new", monkeypatch, "10.0.2")
    file, other = tmp_path / "file", tmp_path / "other"
    file.write_bytes(b"1")
    other.write_bytes(vm_cases.bzimage(b"something else"))
    variants = [
        machine,
        replace(machine, boot=("preempt=none",)),
        replace(machine, in_virtual_time=False),
        replace(machine, cpus=2),
        replace(machine, memory_mib=256),
        replace(machine, files=(("/file", file),)),
        replace(machine, kernel=open_kernel(other)),
    ]
    assert len({variant.identity for variant in variants}) == len(variants)


@needs_cc
def test_pace_and_soakers_count_with_several_processors_only_and_not_for_the_snapshot(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vm_cases.fake_qemu(tmp_path / "new", monkeypatch, "10.0.2")
    for cpus, identities in ((1, 1), (2, 3)):
        base = replace(machine, cpus=cpus)
        variants = (base, replace(base, pace_us=10), replace(base, soakers=False))
        assert len({variant.boot_identity for variant in variants}) == 1
        assert len({variant.identity for variant in variants}) == identities


@needs_cc
def test_qemus_of_the_user_that_say_the_same_version_are_told_apart_by_their_files(
    machine: Machine, tmp_path: Path
) -> None:
    one, other = (
        str(vm_cases.program(tmp_path / then, vm_cases.says("10.0.2", f"echo {then}"))) for then in ("one", "other")
    )
    variants = [replace(machine, qemu=path) for path in (one, other)]
    assert len({variant.identity for variant in variants}) == 2
    assert len({variant.boot_identity for variant in variants}) == 2
    Path(other).write_bytes(Path(one).read_bytes())
    assert len({variant.identity for variant in variants}) == 1


KIB = 1024


@pytest.fixture
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


def test_those_not_used_for_longest_go_first(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest, "MOST_SNAPSHOT_BYTES", 2 * KIB + 100)
    states = [stored(place, f"s{age}", age) for age in range(4)]
    file, _ = guest.open_snapshot(vm_cases.machine(tmp_path), "s3", tmp_path / "log", 1)
    with file:
        assert file.read() == bytes(KIB)
    assert [state.exists() for state in states] == [True, False, False, True]
    monkeypatch.setattr(guest, "MOST_SNAPSHOT_BYTES", 1)
    file, _ = guest.open_snapshot(vm_cases.machine(tmp_path), "s3", tmp_path / "log", 1)
    with file:
        assert file.read() == bytes(KIB), "what is in use can be read although it is removed"


@pytest.mark.parametrize(
    "script",
    [
        'echo "it\'s" $((1 + 1))\nexit 5',
        f'#{"x" * 140_000}\necho "RTPROOF_END\'s" `echo \\$HOME | wc -c`\nexit 5',
        f"{'# ' * 70_000}\nRTPROOF_END=1\nRTPROOF_END_=2\necho $RTPROOF_END\nexit 5",
        "--no-such-command 2>/dev/null\n+x 2>/dev/null\necho $?\nexit 5",
    ],
)
def test_beside_soakers_a_script_of_any_length_does_the_same(script: str, tmp_path: Path) -> None:
    whole = tmp_path / "job.sh"
    whole.write_text(script)
    beside = guest._beside_soakers("exec sh", script).replace("/rtproof/job.sh.beside", f"{whole}.beside")
    (tmp_path / "wrapped.sh").write_text(beside)
    plain, wrapped = (
        subprocess.run(["sh", str(file)], capture_output=True, text=True, check=False)
        for file in (whole, tmp_path / "wrapped.sh")
    )
    assert (wrapped.returncode, wrapped.stdout, wrapped.stderr) == (5, plain.stdout, "")
