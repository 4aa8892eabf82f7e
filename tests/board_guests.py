# SPDX-License-Identifier: Apache-2.0
"""Guests as boards: Debian's kernels and packages in QEMU, behind dropbear on a port of this machine's loopback.

A guest may have a disk, which outlives it as flash does a power cut: ``cut_power`` ends QEMU at once, and with it all
that the guest had not given to the disk. What QEMU has taken for the disk is not lost, so a disk that loses what it was
not told to flush is not imitated.

Their roots are of Debian's own packages, from the mirror of this machine's apt sources, whose signatures and checksums
apt verifies. The packages are unpacked and not installed, and kept in the lab's cache, as are the kernels.
"""

import functools
import re
import shutil
import socket
import stat
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import lab_kernels
import pytest
from board_servers import must_run, need_programs

from rtproof.core.errors import UserError
from rtproof.lab import debian_packages
from rtproof.lab.debian_packages import Archive, Package
from rtproof.lab.kernel_catalogue import SUITES
from rtproof.vm.cache_folders import lab_cache, obtain_folder
from rtproof.vm.initramfs import CpioEntry, cpio_archive, cpio_file, cpio_folder
from rtproof.vm.kernel_files import Kernel, in_load_order, open_kernel
from rtproof.vm.machine import bootable_image

BOOKWORM = SUITES["6.1"]
BUSYBOX_ROOT = ("busybox-static", "dropbear-bin")
DEBIAN_ROOT = (*BUSYBOX_ROOT, "dash", "coreutils", "grep", "sed", "mount")
"""Where it has a program of its own, that one is used; BusyBox has the rest, such as ``ip`` and ``insmod``."""
KEXEC_ROOT = (*BUSYBOX_ROOT, "kexec-tools")
ROOTS = {BUSYBOX_ROOT: "busybox", DEBIAN_ROOT: "debian", KEXEC_ROOT: "kexec"}
"""Names of their folders in the cache."""
LEFT_OUT = ("share/doc", "share/man", "share/locale", "share/lintian", "share/bug", "share/info")


def needed_packages(archive: Archive, names: tuple[str, ...]) -> list[Package]:
    """The newest of these packages, and of all that they depend on."""
    found: dict[str, Package] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = archive.named(name)
            # What only runs while packages are installed is of no use here.
            waiting += [each for each in found[name].depends if not each.startswith(("debconf", "dpkg"))]
    return list(found.values())


@functools.cache
def debian_root(debian: str, names: tuple[str, ...]) -> Path:
    """A folder with the packages, for one of Debian's architectures; skips the test if they cannot be had."""

    def fill(part: Path) -> Mapping[str, str]:
        archive = Archive(BOOKWORM, debian)
        collected = archive.collect(lambda fresh: needed_packages(fresh, names), part)
        for _, deb in collected:
            debian_packages.unpack_package(deb, part)
            deb.unlink()
        return {package.name: package.version for package, _ in collected}

    try:
        return obtain_folder(lab_cache() / "roots" / f"{ROOTS[names]}-{debian}", fill).folder
    except UserError as problem:
        pytest.skip(f"a root for {debian} cannot be had here: {problem}")


@functools.cache
def raspberry_pi_kernel() -> tuple[Kernel, Path]:
    """Debian's kernel for the Raspberry Pi of ARMv6, and the folder of its device trees."""

    def fill(part: Path) -> Mapping[str, str]:
        archive = Archive(BOOKWORM, "armel")
        ((package, deb),) = archive.collect(lambda fresh: [fresh.newest(r"linux-image-6\.1\.0-\d+-rpi")], part)
        debian_packages.unpack_package(deb, part)
        deb.unlink()
        return {"package": package.name, "version": package.version}

    try:
        stored = obtain_folder(lab_cache() / "roots" / "kernel-rpi", fill)
    except UserError as problem:
        pytest.skip(f"the kernel for the Raspberry Pi cannot be had here: {problem}")
    release = stored.facts["package"].removeprefix("linux-image-")
    image, modules = (stored.folder / place / release for place in ("boot", "lib/modules"))
    kernel = open_kernel(image.with_name(f"vmlinuz-{release}"), modules)
    return kernel, stored.folder / f"usr/lib/linux-image-{release}"


def entries(folder: Path) -> Iterator[CpioEntry]:
    """Files and symbolic links of a root, below the merged /usr that Debian has."""
    for path in sorted(folder.rglob("*")):
        place = re.sub(r"^(bin|sbin|lib\w*)(?=/)", r"usr/\1", str(path.relative_to(folder)))
        if place.removeprefix("usr/").startswith(LEFT_OUT) or place == "files.json":
            continue
        if path.is_symlink():
            yield CpioEntry(place, stat.S_IFLNK | 0o777, str(path.readlink()).encode())
        elif path.is_file():
            yield CpioEntry(place, path.lstat().st_mode, path.read_bytes())


BOOT_S = 1800
"""How long a guest may take until dropbear answers, while others use this machine."""
DISK = "/disk"
DISK_MIB = 64
SHARED_NETWORK = "user,id=n,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:22"
"""Nothing that the guest sends leaves QEMU, except answers to what comes in through the port."""
INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp /run /disk /var/tmp
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t tmpfs tmp /tmp
/bin/busybox --install -s /usr/local/bin
export PATH=/usr/sbin:/usr/bin:/usr/local/bin
[ -e /bin/sh ] || ln -s busybox /bin/sh
hostname NAME
for module in /modules/*; do insmod "$module"; done
for try in $(seq 100); do
	for net in /sys/class/net/*; do
		case ${net##*/} in lo | sit0) ;; *) device=${net##*/} ;; esac
	done
	[ -z "$device" ] || break
	usleep 100000
done
ip link set lo up
ip addr add 10.0.2.15/24 dev "$device" && ip link set "$device" up && ip route add default via 10.0.2.2
[ ! -b /dev/vda ] || mount -t ext4 /dev/vda /disk
[ ! -d /disk/boot ] || ln -s /disk/boot /boot
exec init
"""
INITTAB = "::respawn:/usr/sbin/dropbear -F -E -r /etc/dropbear/key -p 22\n"
HOSTS = "127.0.0.1 localhost\n"


@dataclass(frozen=True)
class Hardware:
    """A machine of QEMU, and how its network is had.

    network: QEMU's device for it; modules: what the kernel needs for it; boot: more arguments of the kernel.
    """

    emulator: str
    options: tuple[str, ...]
    network: str
    modules: tuple[str, ...]
    console: str
    boot: str = ""


VIRTIO = ("virtio_pci", "virtio_net")
PC = Hardware("qemu-system-x86_64", ("-M", "pc", "-m", "256"), "virtio-net-pci", VIRTIO, "ttyS0")
PC_OF_OLD = Hardware("qemu-system-x86_64", ("-M", "pc", "-m", "256"), "e1000", ("e1000",), "ttyS0")
ARM64 = Hardware(
    "qemu-system-aarch64", ("-M", "virt", "-cpu", "cortex-a53", "-m", "256"), "virtio-net-pci", VIRTIO, "ttyAMA0"
)
ARMV7 = Hardware(
    "qemu-system-arm",
    ("-M", "virt,highmem=off", "-cpu", "cortex-a15", "-m", "256"),
    "virtio-net-pci",
    VIRTIO,
    "ttyAMA0",
)
# QEMU's has no power manager, and the kernel's driver for it crashes without one.
RASPBERRY_PI = Hardware(
    *("qemu-system-arm", ("-M", "raspi1ap"), "usb-net", ("cdc_ether",), "ttyAMA0"),
    boot="initcall_blacklist=bcm2835_pm_driver_init",
)
# The guest's time stands still while QEMU gets no CPU. Otherwise the kernel of a PC takes its timer for broken, that of
# the Raspberry Pi never fires, and the agent's guard ends the run of a thread that seems to compute.
COUNTED = ("-icount", "shift=3")
DISK_MODULES = ("virtio_blk", "crc32c_generic", "ext4")


@dataclass(frozen=True)
class GuestKind:
    """A guest to boot. root: Debian's architecture and packages. machine, agent: what is expected of it.

    machine: what ``uname -m`` says there; agent: the name of the build of the agent that is to be chosen.
    """

    name: str
    hardware: Hardware
    kernel: str
    root: tuple[str, tuple[str, ...]]
    machine: str
    agent: str


KINDS = {
    kind.name: kind
    for kind in (
        GuestKind("x86", PC, "debian-6.1", ("amd64", BUSYBOX_ROOT), "x86_64", "x86_64"),
        GuestKind("x86-kexec", PC, "debian-6.1", ("amd64", KEXEC_ROOT), "x86_64", "x86_64"),
        GuestKind("x86-debian", PC_OF_OLD, "debian-6.1-rt", ("amd64", DEBIAN_ROOT), "x86_64", "x86_64"),
        GuestKind("x86-32bit-root", PC, "debian-6.1", ("i386", BUSYBOX_ROOT), "x86_64", "x86_64"),
        GuestKind("arm64", ARM64, "debian-6.1-arm64", ("arm64", BUSYBOX_ROOT), "aarch64", "aarch64"),
        GuestKind("arm64-32bit-root", ARM64, "debian-6.1-arm64", ("armhf", BUSYBOX_ROOT), "aarch64", "aarch64"),
        GuestKind("armhf", ARMV7, "debian-6.1-armhf", ("armhf", BUSYBOX_ROOT), "armv7l", "armv7"),
        GuestKind("armv5-root", ARMV7, "debian-6.1-armhf", ("armel", BUSYBOX_ROOT), "armv7l", "armv7"),
        GuestKind("armv6", RASPBERRY_PI, "rpi", ("armel", BUSYBOX_ROOT), "armv6l", "arm926"),
    )
}


@dataclass
class GuestBoard:
    """A guest that boots and is cut off from its power. options: those of ``rtproof run``."""

    kind: GuestKind
    folder: Path
    arguments: list[str]
    port: int
    options: tuple[str, ...]
    _qemu: "subprocess.Popen[bytes] | None" = field(default=None)

    def boot(self) -> None:
        """Until dropbear answers."""
        with (self.folder / "qemu.log").open("ab") as log:
            self._qemu = subprocess.Popen(self.arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        end, greets_s = time.monotonic() + BOOT_S, 5.0
        while not self._answers(greets_s):
            greets_s *= 1.3
            assert self._qemu.poll() is None, (self.folder / "qemu.log").read_text()
            assert time.monotonic() < end, f"no answer: {self.console()}"

    def _answers(self, greets_s: float) -> bool:
        """QEMU takes the connection at once; dropbear greets."""
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 5) as connection:
            connection.settimeout(greets_s)
            if connection.recv(4) == b"SSH-":
                return True
        time.sleep(0.2)
        return False

    def cut_power(self) -> None:
        """End QEMU between two of its instructions."""
        assert self._qemu
        self._qemu.kill()
        self._qemu.wait()

    def console(self) -> str:
        """The end of what the kernel and the first program said."""
        return (self.folder / "console").read_text(errors="replace")[-3000:]

    def ask(self, command: str) -> str:
        """What a command line prints there."""
        words = ("ssh", "-F", f"{self.folder}/config", "-o", "BatchMode=yes", "board", command)
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=600)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout


def _kernel(kind: GuestKind) -> tuple[Kernel, tuple[str, ...]]:
    """The kernel, and QEMU's options for its device tree."""
    if kind.kernel != "rpi":
        return lab_kernels.kernel(kind.kernel), ()
    kernel, trees = raspberry_pi_kernel()
    return kernel, ("-dtb", str(trees / "bcm2835-rpi-a-plus.dtb"))


def _first_file_system(kind: GuestKind, kernel: Kernel, folder: Path, *, disk: bool) -> bytes:
    wanted = (*kind.hardware.modules, *(DISK_MODULES if disk else ()))
    loaded = in_load_order(kernel, wanted)
    links = (("bin", "usr/bin"), ("sbin", "usr/sbin"), ("lib", "usr/lib"), ("lib64", "usr/lib64"))
    return cpio_archive(
        (
            *entries(debian_root(*kind.root)),
            *(CpioEntry(name, stat.S_IFLNK | 0o777, to.encode()) for name, to in links),
            *(cpio_folder(name) for name in ("usr/sbin", "usr/lib", "usr/local/bin", "dev", "modules", "root")),
            *(cpio_file(f"modules/{at:02d}-{each.name}.ko", each.content) for at, each in enumerate(loaded)),
            cpio_file("init", INIT.replace("NAME", kind.name).encode(), executable=True),
            cpio_file("etc/inittab", INITTAB.encode()),
            cpio_file("etc/hosts", HOSTS.encode()),
            cpio_file("etc/passwd", b"root:*:0:0:root:/root:/bin/sh\n"),
            cpio_file("etc/group", b"root:x:0:\n"),
            cpio_file("etc/shells", b"/bin/sh\n"),
            cpio_file("etc/dropbear/key", (folder / "host").read_bytes()),
            cpio_file("root/.ssh/authorized_keys", (folder / "key.pub").read_bytes()),
        )
    )


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _new_disk(folder: Path, kernel: Kernel) -> tuple[str, ...]:
    """QEMU's options for a disk, which has what boots the guest where Debian has it."""
    boot = folder / "on-disk" / "boot"
    boot.mkdir(parents=True)
    shutil.copy(kernel.image, boot / f"vmlinuz-{kernel.release}")
    shutil.copy(folder / "initrd", boot / f"initrd.img-{kernel.release}")
    with (folder / "disk").open("wb") as image:
        image.truncate(DISK_MIB << 20)
    must_run("mkfs.ext4", "-q", "-F", "-d", boot.parent, folder / "disk")
    return ("-drive", f"if=virtio,format=raw,file={folder}/disk")


def _arguments(kind: GuestKind, folder: Path, port: int, *, disk: bool) -> list[str]:
    """QEMU's command line, and the files that it names."""
    hardware = kind.hardware
    kernel, tree = _kernel(kind)
    try:
        (folder / "initrd").write_bytes(_first_file_system(kind, kernel, folder, disk=disk))
    except UserError as problem:
        pytest.fail(str(problem))
    return [
        *("setpriv", "--pdeathsig", "KILL"),  # it does not outlive a test that is killed
        *(hardware.emulator, *hardware.options, *tree, *(_new_disk(folder, kernel) if disk else ())),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-accel", "tcg", *COUNTED),
        *("-netdev", SHARED_NETWORK.format(port=port), "-device", f"{hardware.network},netdev=n"),
        *("-kernel", str(bootable_image(kernel)), "-initrd", str(folder / "initrd")),
        *("-append", f"console={hardware.console} quiet panic=-1 {hardware.boot}"),
        *("-serial", f"file:{folder}/console"),
    ]


def _make(kind: GuestKind, folder: Path, *, disk: bool) -> GuestBoard:
    """A guest with all its files in a folder."""
    need_programs(
        kind.hardware.emulator, "setpriv", "ssh", "ssh-keygen", "dropbearkey", *(("mkfs.ext4",) if disk else ())
    )
    must_run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "key")
    must_run("dropbearkey", "-t", "ed25519", "-f", folder / "host")
    port = _free_port()
    (folder / "config").write_text(
        f"Host board\n HostName 127.0.0.1\n Port {port}\n User root\n IdentityFile {folder}/key\n"
        f" IdentitiesOnly yes\n StrictHostKeyChecking accept-new\n UserKnownHostsFile {folder}/known\n"
    )
    options = ("--target", "ssh", "--target-option", "host=board", "--target-option", f"config={folder}/config")
    return GuestBoard(kind, folder, _arguments(kind, folder, port, disk=disk), port, options)


@contextmanager
def guest_board(name: str, folder: Path, *, disk: bool = False) -> Iterator[GuestBoard]:
    """A guest of KINDS that has booted. disk: it has one, mounted at DISK."""
    made = _make(KINDS[name], folder, disk=disk)
    try:
        made.boot()
        yield made
    finally:
        if made._qemu:
            made.cut_power()
