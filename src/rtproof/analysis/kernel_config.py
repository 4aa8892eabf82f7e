# SPDX-License-Identifier: Apache-2.0
"""How the target's kernel was configured, as far as the record has it."""

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from rtproof.analysis import systemfiles
from rtproof.record import Record

COMPRESSED = "/proc/config.gz"
LARGEST = 8 * 1024 * 1024
"""Bytes that are taken out of a compressed configuration; real ones have 0.3 MB at most."""
NAMED = (
    *("PREEMPT_NONE", "PREEMPT_VOLUNTARY", "PREEMPT", "PREEMPT_LAZY", "PREEMPT_DYNAMIC", "PREEMPT_RT"),
    *("PREEMPT_RT_FULL", "HIGH_RES_TIMERS", "HZ", "NO_HZ_FULL", "CPU_FREQ", "CPU_IDLE", "SMP", "IRQ_FORCED_THREADING"),
    *("RT_GROUP_SCHED", "XENOMAI", "XENO_DRIVERS_TIMERBENCH", "XENO_HW_UNLOCKED_SWITCH", "IPIPE", "DOVETAIL", "EVL"),
    *("ARM_FCSE_GUARANTEED", "ATMEL_TCLIB", "ATMEL_TCB_CLKSRC", "FB", "DRM", "DEBUG_PREEMPT", "LOCKDEP"),
)
"""Options that articles on real-time Linux tell to look at, in the order in which they are shown."""
_GZIP = 16 + zlib.MAX_WBITS
_PLACES = re.compile(r"/boot/config-.*|/lib/modules/.*config")
_SET = re.compile(r"CONFIG_(\w+)=(.*)")
_UNSET = re.compile(r"# CONFIG_(\w+) is not set")
_RELEASE = re.compile(r"# Linux/\S+ (\S+) Kernel Configuration")


@dataclass(frozen=True)
class KernelConfig:
    """``options`` by name without CONFIG_; "n" for those that are left out, "" for those that it does not name.

    ``path``: where it was found. ``release``: of the kernel that it says it is for, "" if it does not say.
    """

    path: str
    release: str
    options: Mapping[str, str]

    def named(self) -> dict[str, str]:
        """Those of NAMED that this configuration names, with what they are set to."""
        return {option: self.options[option] for option in NAMED if option in self.options}

    def has(self, option: str) -> bool:
        """Whether it is built in or a module."""
        return self.options.get(option) in ("y", "m")


def kernel_config(record: Record) -> KernelConfig | None:
    """The running kernel's own copy, or the file that belongs to its release; None without either."""
    paths = [COMPRESSED, *(file.path for file in record.files if _PLACES.fullmatch(file.path))]
    for path in paths:
        file = systemfiles.find(record, path)
        content = file.content if file and file.errno == 0 else b""
        text = _inflate(content) if path == COMPRESSED else content.decode(errors="replace")
        if text:
            return parse(path, text)
    return None


def parse(path: str, text: str) -> KernelConfig:
    """Whatever is no option is passed over."""
    options = {match[1]: "n" for match in _UNSET.finditer(text)}
    options |= {match[1]: match[2].strip('"') for match in _SET.finditer(text)}
    release = _RELEASE.search(text)
    return KernelConfig(path, release[1] if release else "", options)


def _inflate(content: bytes) -> str | None:
    try:
        return zlib.decompressobj(_GZIP).decompress(content, LARGEST).decode(errors="replace")
    except zlib.error:
        return None
