# SPDX-License-Identifier: Apache-2.0
"""The doubts about a streamed run: its own link on a measured CPU, and samples that the link did not bring away."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from analysis_records import SECOND
from doubt_cases import N, clean, facts, files, said_of

from rtproof.judge.analyse import analyse
from rtproof.judge.doubts.registry import doubts_about_rows
from rtproof.judge.doubts.result_row import claim_of
from rtproof.record.contents import WHOLE_RUN, Begin, Event, Moment, Record
from rtproof.summary.streaming import DroppedSamples, dropped_samples, link_share, times_away

LINK = {
    "link_bytes": "30000",
    "link_wakeups": "12",
    "link_cpu_ns": "2000000",
    "link_cpus": "0-1",
    "link_device": "eth0,virtio1,24",
}
INTERRUPTS = """       CPU0  CPU1  CPU2
  24: {} 0 0 GIC 24 Level other
  25: 1 {} 0 GIC eth0-rx-0
  26: {} 0 0 PCI virtio1-input.0
  27: 0 0 {} PCI eth01
"""
BEFORE, AFTER = INTERRUPTS.format(5, 0, 1, 0), INTERRUPTS.format(6, 9, 3, 7)


def streamed(changes: Mapping[str, str]) -> Record:
    told = {(key, Moment.END): text for key, text in {**LINK, **changes}.items()}
    read = {("/proc/interrupts", Moment.START): BEFORE, ("/proc/interrupts", Moment.END): AFTER}
    return clean(facts=facts(told), files=files(read))


def test_without_a_link_or_with_one_on_other_cpus_there_is_no_doubt() -> None:
    assert link_share(clean()) is None
    assert not {"link-load", "samples-dropped"} & set(said_of(clean()))
    assert "link-load" not in said_of(streamed({}))


def test_the_interrupts_are_those_of_the_device() -> None:
    """The line of eth01 is another device's, and a number is one only as the label of its line."""
    share = link_share(streamed({}))
    assert share is not None
    assert share.interrupts == {0: 3, 1: 9, 2: 0}
    assert (share.bytes, share.wakeups, share.cpu_ns) == (30_000, 12, 2_000_000)
    assert (set(share.cpus), share.device) == ({0, 1}, "eth0")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"link_cpus": "2"}, "12 wake-ups (4.0/s), 12 interrupts of eth0"),
        ({"link_device": "eth0,25,27"}, "CPU 2"),
        ({"link_cpu_ns": str(N * 20_000)}, ""),
        ({"link_cpus": "2", "link_device": "veth0"}, "interrupts unknown"),
        ({"link_cpus": "2", "link_device": "unavailable: no"}, "not known"),
    ],
)
def test_a_link_that_matters_is_doubted(changes: dict[str, str], words: str) -> None:
    made = streamed(changes)
    assert words in said_of(made)["link-load"].whole
    assert "link-load" in {doubt.code for doubt in doubts_about_rows([claim_of(analyse(made), "run")])}


def dropped(first: int, samples: int, from_s: int, to_s: int) -> Event:
    text = f"series=0 first_index={first} samples={samples} from_ns={from_s * SECOND} to_ns={to_s * SECOND}"
    return told((to_s + 1) * SECOND, "samples_dropped", text)


def told(time_ns: int, kind: str, text: str) -> Event:
    return Event(time_ns, WHOLE_RUN, kind, text)


def test_dropped_samples_are_told_with_the_time_away_and_by_the_second() -> None:
    events = (
        told(70 * SECOND, "link_behind", f"heard_ns={5 * SECOND}"),
        dropped(65_000, 40_999, 65, 105),
        told(108 * SECOND, "link_caught_up", f"heard_ns={67 * SECOND}"),
        told(300 * SECOND, "link_behind", f"heard_ns={250 * SECOND}"),
        dropped(9, 1, 309, 309),
        told(311 * SECOND, "samples_dropped", "nonsense"),
    )  # fmt: skip
    made = clean(events=events)
    noon = 12 * 3600 * SECOND
    made = replace(made, begin=replace(made.begin, origin_realtime_ns=noon))
    assert isinstance(made.begin, Begin)
    assert list(times_away(made)) == [(5 * SECOND, 67 * SECOND), (250 * SECOND, None)]
    assert dropped_samples(made)[0] == DroppedSamples(0, 65_000, 40_999, 65 * SECOND, 105 * SECOND)
    what = said_of(made)["samples-dropped"].whole
    assert "away (12:00:05 to 12:01:07; 12:04:10 to the end UTC)" in what
    assert "41,000 samples; between 1 min 05 s and 5 min 09 s" in what
