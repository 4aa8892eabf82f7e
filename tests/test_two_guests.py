# SPDX-License-Identifier: Apache-2.0
"""Two guests as two boards: one gives edges, the other answers them, and a relay on this host is the wires between.

The relay knows every edge. It delays some and drops one, and the paired records must tell which.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lab_kernels
import numpy as np
import pytest
from edge_relay import Relay

from rtproof.agents.build import PINNED, ProgramSources, build_program
from rtproof.core.errors import UserError
from rtproof.record.contents import Record
from rtproof.record.reading import open_record
from rtproof.summary.edge_pairs import EdgePairs, edges_of_records

pytestmark = pytest.mark.slow

KERNEL = "debian-6.1-rt"
BRIDGE = Path(__file__).parent / "data" / "gpio_bridge"
LINES = "chip=rtproof-loop,in=7,out=0"
SAMPLES = 330
DELAYED, DELAY_S = range(100, 111), 0.2
DROPPED = 150
TIMEOUT_S = 230


@dataclass(frozen=True)
class Told:
    """What a run on two guests left, and what the relay knows."""

    folder: Path
    relay: Relay
    exit_code: int
    said: str
    result: dict[str, Any]

    @property
    def generator(self) -> Record:
        return open_record(self.folder / "generator.rtrec")

    @property
    def responder(self) -> Record:
        return open_record(self.folder / "run.rtrec")

    @property
    def pairs(self) -> EdgePairs:
        return edges_of_records(self.responder, self.generator)


def bridge() -> Path:
    try:
        return build_program(ProgramSources("bridge", "the wires' end", BRIDGE), "x86_64", PINNED)
    except UserError as error:
        pytest.skip(str(error))


def guest_options(option: str, serial: Path) -> list[str]:
    """A guest with the module's chip, and a bridge from its lines to the relay."""
    module = lab_kernels.module(KERNEL)
    options = {
        "kernel": KERNEL,
        "mode": "wall-clock",
        "memory": "256",
        "files": f"/bridge={bridge()},/rtproof.ko={module}",
        "setup": "insmod /rtproof.ko gpio=1 || exit 9\n/bridge /dev/gpiochip0 /dev/ttyS1 &",
        "serial": str(serial),
    }
    return [word for name, value in options.items() for word in (option, f"{name}={value}")]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    lab_kernels.kernel(KERNEL)
    place = tmp_path_factory.mktemp("pair")
    with Relay(place, DELAYED, DELAY_S, (DROPPED,)) as relay:
        words = (
            *(
                "run",
                "--target",
                "qemu",
                *guest_options("--target-option", relay.responder),
                "--probe",
                f"gpio:{LINES}",
            ),
            *("--generator", "qemu", *guest_options("--generator-option", relay.generator)),
            *("--generator-lines", LINES, "--period", "250ms", "--samples", str(SAMPLES)),
            *("--limit", "1s", "--at-most", "1/min", "--json", "-o", str(place / "run")),
        )
        done = subprocess.run(
            [sys.executable, "-m", "rtproof", *words], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        assert done.stdout, done.stderr
    return Told(place / "run", relay, done.returncode, done.stderr, json.loads(done.stdout))


def test_both_records_are_in_one_folder(told: Told) -> None:
    assert {path.name for path in told.folder.iterdir()} >= {"run.json", "run.rtrec", "generator.rtrec"}
    assert not list(told.folder.glob("*unfinished*"))
    assert json.loads((told.folder / "run.json").read_text())["generator"] == "qemu"
    assert [series.method for series in told.generator.series] == ["generate_pattern"]
    assert {series.method for series in told.responder.series} == {"respond_pattern"}
    assert told.generator.end is not None
    assert told.responder.end is not None
    assert told.generator.damage == told.responder.damage == ()


def test_each_pair_is_one_edge_of_the_relay(told: Told) -> None:
    """Counted from the end: the last edge that the relay passed on is the last that the responder saw.

    The generator gives up the dropped edge by taking its level back, which the responder cannot see.
    """
    numbers = np.array(told.relay.forwarded)
    assert (np.diff(numbers) > 0).all()
    seen = [number for number in told.relay.forwarded if number != DROPPED + 1]
    pairs = told.pairs
    assert pairs.refused == ""
    samples = sum(block.values.size for block in told.responder.blocks(0))
    assert samples >= pairs.given.size > 0.9 * sum(block.values.size for block in told.generator.blocks(0))
    of_responder = np.array(seen[-samples:])[pairs.seen]
    apart = of_responder - pairs.given
    # Taking a level back is an edge of the relay and none of the record.
    apart -= of_responder > DROPPED
    assert np.unique(apart).size == 1


def test_each_response_holds_what_the_relay_waited(told: Told) -> None:
    """A busy host can delay any edge outside of the relay, too, so what the relay knows is a bound from below."""
    pairs = told.pairs
    dropped = int(np.flatnonzero(np.isin(np.arange(pairs.edges), pairs.given, invert=True))[0])
    of_relay = pairs.given - dropped + DROPPED
    # Taking a level back is an edge of the relay and none of the record.
    of_relay += of_relay > DROPPED
    delayed = np.isin(of_relay, DELAYED)
    assert delayed.sum() == len(DELAYED)
    assert pairs.response_ns[delayed].min() >= DELAY_S * 1e9
    assert np.median(pairs.response_ns[delayed]) - np.median(pairs.response_ns[~delayed]) > DELAY_S * 0.5e9
    known = np.array([number in told.relay.waited_s for number in of_relay])
    assert known.sum() > 0.9 * known.size
    waited_ns = 1e9 * np.array([told.relay.waited_s[number] for number in of_relay[known]])
    assert np.flatnonzero(pairs.response_ns[known] < waited_ns).tolist() == []


def test_the_dropped_edge_is_never_answered(told: Told) -> None:
    found = told.result["edges"]
    assert len(found["never_answered_ns"]) == 1
    assert found["paired_count"] == found["edges_count"] - 1
    assert found["only_generator_count"] == 0


def test_the_verdict_is_of_the_response(told: Told) -> None:
    """The dropped edge was waited for longer than the limit. The responder's own times never were."""
    (verdict,) = told.result["verdicts"]
    assert verdict["exceedances_observed_count"] == 1
    assert told.result["pooled"]["observed"]["max_ns"] < 1_000_000_000
    assert told.exit_code in (1, 3, 4)


def test_the_response_is_longer_than_the_responders_part(told: Told) -> None:
    pairs = told.pairs
    assert (pairs.own_ns > 0).all()
    assert (pairs.rest_ns > 0).all()
