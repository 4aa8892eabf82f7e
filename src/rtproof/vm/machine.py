# SPDX-License-Identifier: Apache-2.0
"""What is booted, and how its time passes."""

import enum
import hashlib
from dataclasses import dataclass
from pathlib import Path

from rtproof.vm import initramfs, modules, qemu
from rtproof.vm.kernel import Kernel


class Mode(enum.Enum):
    """How time passes in a guest.

    VIRTUAL_TIME: each instruction takes 1 ns, and nothing else takes time, so the same guest does the same at the same
    instants whatever the host does. With more than one processor that is still so, but they take turns of many
    microseconds, in which one waits for the other's: latencies are then an artefact, such a guest is for tests of
    function only, and what it records is INVALID. WALL_CLOCK: the host's time; latencies are mostly the host's.
    """

    VIRTUAL_TIME = "virtual-time"
    WALL_CLOCK = "wall-clock"


@dataclass(frozen=True)
class Machine:
    """A guest. ``boot``: more kernel arguments; ``files``: (path in the guest, file here), there from the beginning;

    ``modules``: names out of ``kernel.modules``, with their dependencies, or .ko files, loaded in this order;
    ``busybox``: a static one for the guest, else the lab's or this machine's.
    """

    kernel: Kernel
    boot: tuple[str, ...] = ()
    mode: Mode = Mode.VIRTUAL_TIME
    cpus: int = 1
    memory_mib: int = 512
    files: tuple[tuple[str, Path], ...] = ()
    modules: tuple[str | Path, ...] = ()
    busybox: Path | None = None

    @property
    def in_virtual_time(self) -> bool:
        """Whether its figures are instructions counted, not times."""
        return self.mode is Mode.VIRTUAL_TIME

    def initramfs(self) -> bytes:
        """The guest's first file system. UserError for files and modules that are not there or do not fit."""
        loaded = modules.in_order(self.kernel, self.modules)
        return initramfs.build(self.kernel.arch, self.busybox, loaded, self.files)

    @property
    def identity(self) -> str:
        """Changes when anything does that decides the guest's bytes: QEMU, its command line, kernel, initramfs."""
        arguments = "\n".join(qemu.arguments(self, Path("kernel"), accelerator="tcg"))
        kernel = hashlib.sha256(qemu.kernel_file(self).read_bytes()).hexdigest()
        inside = hashlib.sha256(self.initramfs()).hexdigest()
        whole = "\n".join([qemu.version_of(self), arguments, kernel, inside])
        return hashlib.sha256(whole.encode()).hexdigest()
