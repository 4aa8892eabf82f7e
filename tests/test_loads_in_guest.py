# SPDX-License-Identifier: Apache-2.0
"""Built-in loads where there is nothing but a kernel and BusyBox, and where a real-time clock is sure to be."""

import probe_guest
import pytest
from probe_guest import Guest

from rtproof.record.contents import Counter, Moment

pytestmark = pytest.mark.slow

SECOND = 1_000_000_000
LOADS = ("comms", "pingflood", "rtc", "churn", "irqmix", "lsr", "mem", "serve", "zero")
HZ = 1024
SAMPLES = {"rtc": 200}
"""Of the others half a second shows that they do something."""
SCRIPT = "\n".join(f"run {load} --samples {SAMPLES.get(load, 50)} --period 10ms --load {load}" for load in LOADS)


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Guest:
    return probe_guest.run("debian-6.1-rt", SCRIPT, tmp_path_factory)


def counter(guest: Guest, load: str) -> Counter:
    return next(one for one in guest.record(load).counters if one.name == f"load.{load}")


@pytest.mark.parametrize("load", LOADS)
def test_every_load_works(guest: Guest, load: str) -> None:
    assert counter(guest, load).value[-1] > 0


def test_the_clock_interrupts_as_often_as_asked(guest: Guest) -> None:
    done = counter(guest, "rtc")
    seconds = (done.time_ns[1] - done.time_ns[0]) / SECOND
    assert done.value[1] - done.value[0] == pytest.approx(HZ * seconds, rel=0.01)


@pytest.mark.parametrize("load", ["comms", "pingflood"])
def test_without_virtual_cables_it_is_said_that_loopback_is_used(guest: Guest, load: str) -> None:
    said = "over 127.0.0.1 instead of two network namespaces: the kernel has no veth devices"
    assert guest.record(load).fact(f"load.{load}.lack", Moment.START) == said
