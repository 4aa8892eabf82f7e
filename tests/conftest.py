# SPDX-License-Identifier: Apache-2.0
"""What all tests share: those marked ``serial`` come last and run while no other test does, whatever xdist spreads."""

import fcntl
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes is the machine's business: others may load it.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_is_serial)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Ordinary tests share a lock between processes, a serial one has it for itself; set-up and tear-down included."""
    place = item.config.rootpath / "build"
    place.mkdir(exist_ok=True)
    with (place / "tests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if _is_serial(item) else fcntl.LOCK_SH)
        return (yield)


def _is_serial(item: pytest.Item) -> bool:
    return item.get_closest_marker("serial") is not None
