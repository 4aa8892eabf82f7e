# SPDX-License-Identifier: Apache-2.0
"""What kernels can be had by name, and what of them the cache has."""

from dataclasses import dataclass
from pathlib import Path

from rtproof.lab.kernels import SUITES, Entry, cached, catalogue
from rtproof.lab.store import Stored


@dataclass(frozen=True)
class Listed:
    """A kernel of the catalogue. ``preemption``: as it is built; the last four are None where the cache has it not."""

    name: str
    architecture: str
    suite: str
    preemption: str | None
    package: str | None
    version: str | None
    folder: Path | None
    size_bytes: int | None


def inventory() -> list[Listed]:
    """Every kernel of the catalogue, in its order."""
    return [_listed(known, cached(known)) for known in catalogue()]


def _listed(known: Entry, stored: Stored | None) -> Listed:
    place = known.name, known.machine.name, SUITES[known.series][0]
    if stored is None:
        return Listed(*place, "PREEMPT_RT" if known.rt else None, None, None, None, None)
    facts = stored.facts
    built = preemption((stored.folder / facts["config"]).read_text())
    return Listed(*place, built, facts["package"], facts["version"], stored.folder, stored.size)


def preemption(config: str) -> str:
    """How a kernel of that configuration preempts (kernel/Kconfig.preempt)."""
    chosen = {line.removesuffix("=y") for line in config.splitlines() if line.startswith("CONFIG_PREEMPT")}
    if "CONFIG_PREEMPT_RT" in chosen:
        return "PREEMPT_RT"
    models = {"CONFIG_PREEMPT_LAZY": "lazy", "CONFIG_PREEMPT_VOLUNTARY": "voluntary", "CONFIG_PREEMPT": "full"}
    default = next((word for option, word in models.items() if option in chosen), "none")
    return f"{default}, or preempt=" if "CONFIG_PREEMPT_DYNAMIC" in chosen else default
