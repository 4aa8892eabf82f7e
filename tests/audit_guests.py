# SPDX-License-Identifier: Apache-2.0
"""Guests of the lab in which the agent collects facts: as they come, or with a setting that is wrong or advised."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rtproof.core.errors import TargetError
from rtproof.lab import kernel_catalogue
from rtproof.vm.guest import Job, JobOutcome, run_job
from rtproof.vm.initramfs import build_guest_agent
from rtproof.vm.kernel_files import Kernel
from rtproof.vm.machine import Machine

FACTS = "facts.rtrec"
AGENT = "/rtproof/programs/rtproof-agent"
COLLECT = f"exec {AGENT} facts -o /out/{FACTS}"


@dataclass(frozen=True)
class AuditedGuest:
    """A guest. boot: more arguments of its kernel. setup: lines for its shell before the agent. files: PLACE, FILE.

    of_application: the agent collects of the last process that the setup starts in the background, too.
    """

    kernel: str
    cpus: int = 2
    boot: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    files: tuple[tuple[str, Path], ...] = ()
    of_application: bool = False

    def with_more(self, boot: Sequence[str] = (), setup: Sequence[str] = ()) -> "AuditedGuest":
        """The same guest with more arguments and lines."""
        return replace(self, boot=(*self.boot, *boot), setup=(*self.setup, *setup))


def collect_in(guest: AuditedGuest, folder: Path) -> bytes:
    """Boot the guest and return the record of its facts. TargetError with what it said if there is none."""
    kernel = kernel_catalogue.fetch_kernel(guest.kernel)
    # Kernels for the PC that are older than the emulator's virtual time hang there with more than one processor.
    machine = Machine(kernel, boot=guest.boot, in_virtual_time=False, cpus=guest.cpus)
    agent = (AGENT, build_guest_agent(kernel.arch))
    said = run_job(machine, Job(_script(guest), (agent, *_config(kernel), *guest.files)), folder)
    record = folder / FACTS
    if said.exit_code or not record.is_file():
        raise TargetError(f"{guest.kernel}: exit code {said.exit_code}: {_last(said)}")
    return record.read_bytes()


def _script(guest: AuditedGuest) -> str:
    return "\n".join((*guest.setup, COLLECT + (" --pid $!" if guest.of_application else "")))


def _config(kernel: Kernel) -> tuple[tuple[str, Path], ...]:
    """Debian's place for the kernel's configuration, which a guest of the lab does not have by itself."""
    file = kernel.image.with_name(f"config-{kernel.release}")
    return ((f"/boot/{file.name}", file),) if file.is_file() else ()


def _last(said: JobOutcome) -> str:
    return (said.said.strip() or said.console.read_text(errors="replace").strip())[-500:]
