# SPDX-License-Identifier: Apache-2.0
"""In which order tests run, and beside which others, whatever xdist spreads over processes.

Those marked ``slow`` begin. The ordinary ones follow, then those marked ``real``, beside which little else is left to
run; at last those marked ``serial``, each alone. A file goes to one process, because its tests share fixtures; one with
``real`` or ``serial`` tests, or with single ``slow`` ones, is given out test by test.
"""

import fcntl
import functools
import re
from collections.abc import Generator
from enum import IntEnum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes is the machine's business: others may load it.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


class Kind(IntEnum):
    """In their order; of several marks the last one decides."""

    SLOW, ORDINARY, REAL, SERIAL = range(4)


MARKED = re.compile(r"@pytest\.mark\.slow\b|\bmark\.(real|serial)\b")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_kind)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Ordinary tests share a lock between processes, a serial one has it for itself; set-up and tear-down included."""
    place = item.config.rootpath / "build"
    place.mkdir(exist_ok=True)
    with (place / "tests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if _kind(item) is Kind.SERIAL else fcntl.LOCK_SH)
        return (yield)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            path = nodeid.partition("::")[0]
            return nodeid if _is_spread(config.rootpath / path) else path

    config.option.loadscopereorder = False
    return Scheduling(config, log)


@functools.cache
def _is_spread(path: Path) -> bool:
    return MARKED.search(path.read_text(encoding="utf-8")) is not None


def _kind(item: pytest.Item) -> Kind:
    marked = (kind for kind in reversed(Kind) if item.get_closest_marker(kind.name.lower()))
    return next(marked, Kind.ORDINARY)
