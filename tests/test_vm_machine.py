# SPDX-License-Identifier: Apache-2.0

import lzma
import os
import shutil
import signal
import subprocess
import sys
from collections import namedtuple
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import vm_cases

from rtproof.core.errors import TargetError, UserError
from rtproof.vm import cache_folders, guest
from rtproof.vm.kernel_files import open_kernel
from rtproof.vm.machine import (
    ARCHES,
    Machine,
    Mode,
    arch_of,
    boot_pacer_arguments,
    check_turns,
    emulator_path,
    emulator_version,
    pacer_arguments,
    qemu_arguments,
)
from rtproof.vm.mailbox import GuestState

DiskUsage = namedtuple("DiskUsage", "total used free")


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


def test_two_have_folders_of_their_own(cache: Path) -> None:
    with cache_folders.scratch_folder() as one, cache_folders.scratch_folder() as other:
        assert sorted(folders(cache)) == sorted([one.name, other.name])
        assert (one / "lock").exists()


def test_what_a_killed_program_left_goes_with_the_next(cache: Path) -> None:
    code = (
        "import time; from rtproof.vm.cache_folders import scratch_folder\n"
        "with scratch_folder() as f: print(f, flush=True); time.sleep(99)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        left = Path(other.stdout.readline().strip())
        with cache_folders.scratch_folder():
            assert left.is_dir()
        other.send_signal(signal.SIGKILL)
        other.wait()
        with cache_folders.scratch_folder() as folder:
            assert folders(cache) == [folder.name]


@pytest.mark.usefixtures("cache")
def test_a_full_disk_is_said_before_anything_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: DiskUsage(1 << 40, 1 << 40, 5 << 20))
    with (
        pytest.raises(TargetError, match=r"a guest may need 128 MiB of disk in .*, and 5 MiB are free"),
        cache_folders.scratch_folder(),
    ):
        pass


@pytest.mark.usefixtures("cache")
def test_a_cache_that_cannot_be_made_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    with pytest.raises(TargetError, match="no temporary folder can be made in"), cache_folders.scratch_folder():
        pass


@pytest.mark.usefixtures("cache")
def test_a_file_is_written_whole_over_another(tmp_path: Path) -> None:
    place = tmp_path / "new" / "file"
    for content in (b"one", b"other"):
        cache_folders.write_cache_file(place, content)
        assert [path.read_bytes() for path in place.parent.iterdir()] == [content]


def test_a_bzimage_is_booted_as_what_is_inside_and_unpacked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    image = tmp_path / "vmlinuz"
    image.write_bytes(vm_cases.bzimage(lzma.compress(vm_cases.elf())))
    kernel = open_kernel(image)
    inside = arch_of(kernel).bootable(kernel)
    assert inside.read_bytes() == vm_cases.elf()
    image.unlink()
    assert arch_of(kernel).bootable(kernel) == inside


@pytest.mark.parametrize("image", [vm_cases.bzimage(b"packed otherwise"), vm_cases.elf()])
def test_what_cannot_be_unpacked_is_booted_as_it_is(
    image: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "image"
    path.write_bytes(image)
    kernel = open_kernel(path)
    assert arch_of(kernel).bootable(kernel) == path


def test_every_class_is_complete() -> None:
    for name, arch in ARCHES.items():
        assert arch.name == name
        assert arch.qemu.startswith("qemu-system-")
        assert arch.package.startswith("qemu-system-")
        assert arch.board


def test_other_architectures_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot boot kernels for riscv64, only for x86_64, aarch64, armv7"):
        arch_of(replace(vm_cases.kernel(tmp_path), arch="riscv64"))


def test_a_missing_emulator_names_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(TargetError, match=r"qemu-system-x86_64, .*Debian: apt-get install qemu-system-x86\)"):
        emulator_path(vm_cases.machine(tmp_path))


@pytest.mark.parametrize("version", ["6.1.0", "5.2.0", "2.12"])
def test_too_old_an_emulator_is_refused(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vm_cases.fake_qemu(tmp_path / "bin", monkeypatch, version)
    with pytest.raises(TargetError, match=rf"is version {version[:3]}\S*; the lab needs QEMU 6.2 or newer"):
        emulator_path(vm_cases.machine(tmp_path))


def test_what_says_no_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vm_cases.fake_qemu(tmp_path / "bin", monkeypatch).write_text("#!/bin/sh\necho nothing\n")
    with pytest.raises(TargetError, match=r"it says 'nothing'\); the lab needs QEMU"):
        emulator_path(vm_cases.machine(tmp_path))


@pytest.mark.parametrize("version", ["6.2.0", "7.2.22", "10.0.2"])
def test_newer_emulators_are_taken(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = vm_cases.fake_qemu(tmp_path / "bin", monkeypatch, version)
    assert emulator_path(vm_cases.machine(tmp_path)) == str(program)
    assert emulator_version(vm_cases.machine(tmp_path)) == f"QEMU emulator version {version} (Test)"


def test_the_command_line_of_virtual_time_has_nothing_of_this_host(tmp_path: Path) -> None:
    machine = replace(vm_cases.machine(tmp_path), boot=("preempt=none",), memory_mib=256)
    said = " ".join(qemu_arguments(machine, Path("kernel"), "tcg"))
    assert "-M pc -accel tcg,thread=single -icount shift=0,sleep=off -rtc base=2024-01-01T00:00:00,clock=vm" in said
    assert "-seed 1 -smp 1 -m 256 -kernel kernel -initrd initrd" in said
    assert "-append console=ttyS0 quiet nokaslr panic=-1 " in said
    assert " preempt=none -chardev" in said
    assert "-nodefaults -no-user-config -display none -nic none -no-reboot" in said


@pytest.mark.parametrize(
    ("accelerator", "words"), [("tcg", "-accel tcg,thread=multi"), ("kvm", "-cpu host -accel kvm")]
)
def test_in_wall_clock_time_the_clock_is_the_hosts(accelerator: str, words: str, tmp_path: Path) -> None:
    machine = replace(vm_cases.machine(tmp_path), mode=Mode.WALL_CLOCK)
    said = " ".join(qemu_arguments(machine, Path("kernel"), accelerator))
    assert words in said
    assert "icount" not in said
    assert "-rtc" not in said
    assert "id=serial" not in said


def test_a_second_serial_port_is_a_socket_of_the_host(tmp_path: Path) -> None:
    machine = replace(vm_cases.machine(tmp_path), mode=Mode.WALL_CLOCK, serial=Path("/a,b/s"))
    words = qemu_arguments(machine, Path("kernel"), "tcg")
    at = words.index("socket,id=serial,path=/a,,b/s")
    assert words[at - 1 : at + 3] == ["-chardev", words[at], "-serial", "chardev:serial"]
    assert words.index("chardev:console") < at


@pytest.mark.parametrize(
    ("arch", "words"),
    [("aarch64", "-M virt -cpu cortex-a53"), ("armv7", "-M virt,highmem=off -cpu cortex-a15")],
)
def test_arm_has_boards_of_its_own(arch: str, words: str, tmp_path: Path) -> None:
    machine = vm_cases.machine(tmp_path)
    said = " ".join(qemu_arguments(replace(machine, kernel=replace(machine.kernel, arch=arch)), Path("k"), "tcg"))
    assert words in said
    assert "console=ttyAMA0" in said


@pytest.mark.parametrize("version", ["6.2.0", "7.2.22", "8.0.5"])
def test_several_processors_in_virtual_time_are_refused_where_only_one_would_run(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    vm_cases.fake_qemu(tmp_path / "bin", monkeypatch, version)
    machine = replace(vm_cases.machine(tmp_path), cpus=2)
    sentence = (
        rf"need QEMU 8.1 or newer, and \S+ is version {version[:3]}, in which only the first one runs: fetch one "
    )
    with pytest.raises(UserError, match=sentence):
        check_turns(machine)
    for other in (replace(machine, mode=Mode.WALL_CLOCK), replace(machine, cpus=1)):
        check_turns(other)
        assert emulator_version(other) == f"QEMU emulator version {version} (Test)"


@pytest.mark.parametrize("version", ["8.1.0", "10.0.2", "11.1.3"])
def test_several_processors_are_let_run_where_they_take_turns(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vm_cases.fake_qemu(tmp_path / "bin", monkeypatch, version, then=vm_cases.PACER)
    check_turns(replace(vm_cases.machine(tmp_path), cpus=4))


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ((9, 4), "cpus=9: in virtual time at most 8 processors share the instructions"),
        ((2, 0), "a pace of 0 us is not one of 1 to 1000 us"),
        ((2, 1001), "a pace of 1001 us is not one of 1 to 1000 us"),
    ],
)
def test_turns_that_make_no_sense_are_refused(changed: tuple[int, int], sentence: str, tmp_path: Path) -> None:
    machine = replace(vm_cases.machine(tmp_path), cpus=changed[0], pace_us=changed[1])
    with pytest.raises(UserError, match=sentence):
        check_turns(machine)
    check_turns(replace(machine, cpus=1))


def test_the_pacer_is_for_processors_that_take_turns(tmp_path: Path) -> None:
    machine = replace(vm_cases.machine(tmp_path), cpus=2, pace_us=7)
    words = " ".join(pacer_arguments(machine))
    pacer = "-netdev hubport,id=tick,hubid=0 -object filter-buffer,id=pace,netdev=tick,queue=rx,interval=7"
    assert words == pacer
    assert pacer_arguments(replace(machine, cpus=1)) == ()
    assert pacer_arguments(replace(machine, mode=Mode.WALL_CLOCK)) == ()
    assert "interval=1000" in " ".join(boot_pacer_arguments(machine))
    assert boot_pacer_arguments(replace(machine, cpus=1)) == ()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    vm_cases.fake_qemu(tmp_path / "bin", monkeypatch)
    return vm_cases.machine(tmp_path)


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler here")
def test_the_same_machine_has_the_same_identity(machine: Machine) -> None:
    assert machine.identity == replace(machine).identity


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler here")
def test_whatever_decides_the_guests_bytes_changes_the_identity(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vm_cases.fake_qemu(tmp_path / "new", monkeypatch, "10.0.2", vm_cases.PACER)
    file, other = tmp_path / "file", tmp_path / "other"
    file.write_bytes(b"1")
    other.write_bytes(vm_cases.bzimage(b"something else"))
    variants = [
        machine,
        replace(machine, boot=("preempt=none",)),
        replace(machine, mode=Mode.WALL_CLOCK),
        replace(machine, cpus=2),
        replace(machine, memory_mib=256),
        replace(machine, files=(("/file", file),)),
        replace(machine, kernel=open_kernel(other)),
    ]
    assert len({variant.identity for variant in variants}) == len(variants)


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler here")
def test_pace_and_soakers_count_with_several_processors_only_and_not_for_the_snapshot(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vm_cases.fake_qemu(tmp_path / "new", monkeypatch, "10.0.2", vm_cases.PACER)
    for cpus, identities in ((1, 1), (2, 3)):
        base = replace(machine, cpus=cpus)
        variants = (base, replace(base, pace_us=10), replace(base, soakers=False))
        assert len({variant.boot_identity for variant in variants}) == 1
        assert len({variant.identity for variant in variants}) == identities


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler here")
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


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler here")
def test_the_content_of_its_files_counts_not_their_names(machine: Machine, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(b"same")
    other.write_bytes(b"same")
    before = replace(machine, files=(("/file", one),)).identity
    assert replace(machine, files=(("/file", other),)).identity == before
    one.write_bytes(b"changed")
    assert replace(machine, files=(("/file", one),)).identity != before


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler here")
def test_another_emulator_is_another_machine(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = machine.identity
    vm_cases.fake_qemu(tmp_path / "newer", monkeypatch, "10.0.2")
    assert machine.identity != before


@pytest.fixture
def machine_accelerator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """With a device for KVM that can be opened, and an emulator that never says a word."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(guest, "KVM", tmp_path)
    monkeypatch.setattr(guest, "PATIENCE_S", 0.1)
    vm_cases.fake_qemu(tmp_path / "bin", monkeypatch, then="exec sleep 600")
    yield vm_cases.machine(tmp_path)
    guest.choose_accelerator.cache_clear()


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler here")
@pytest.mark.skipif(not shutil.which("setpriv"), reason="setpriv is not installed (Debian: util-linux)")
def test_a_guest_that_hangs_or_ends_is_emulated(
    machine_accelerator: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("rtproof.vm.qemu_process.Monitor.command", lambda *_: {})
        assert guest.choose_accelerator(machine_accelerator) == "tcg"
    guest.choose_accelerator.cache_clear()
    vm_cases.fake_qemu(tmp_path / "bin", monkeypatch, then="echo no kvm >&2; exit 1")
    assert guest.choose_accelerator(replace(machine_accelerator, memory_mib=256)) == "tcg"


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler here")
@pytest.mark.skipif(not shutil.which("setpriv"), reason="setpriv is not installed (Debian: util-linux)")
def test_a_guest_that_comes_up_runs_on_the_processor(
    machine_accelerator: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtproof.vm.qemu_process.Monitor.command", lambda *_: {})
    monkeypatch.setattr("rtproof.vm.mailbox.Mailbox.state", GuestState.ALIVE)
    assert guest.choose_accelerator(machine_accelerator) == "kvm"


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler here")
@pytest.mark.skipif(not shutil.which("setpriv"), reason="setpriv is not installed (Debian: util-linux)")
def test_another_architecture_is_emulated_without_a_try(machine_accelerator: Machine) -> None:
    assert (
        guest.choose_accelerator(
            replace(machine_accelerator, kernel=replace(machine_accelerator.kernel, arch="aarch64"))
        )
        == "tcg"
    )


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


@pytest.mark.usefixtures("place")
def test_too_little_room_is_said_before_booting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: DiskUsage(1 << 40, 1 << 40, 200 << 20))
    with pytest.raises(
        TargetError, match=r"a snapshot of the guest may need 512 MiB of disk in .*, and 200 MiB are free"
    ):
        guest.open_snapshot(vm_cases.machine(tmp_path), "abc", tmp_path / "log", 1)


# The job of processors that take turns.


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
