# SPDX-License-Identifier: Apache-2.0
"""Programs that take more than they may where there is no control group: their keeper counts, on their only CPU."""

import probe_guest
import pytest
from probe_guest import Guest

from rtproof.record.contents import EndReason, Moment

pytestmark = pytest.mark.serial

MOST = 30
CALM = "--period 10ms --policy other"
URGENT = "--period 10ms --policy fifo"
BOMB = f"bomb:processes={MOST} sh -c 'bomb() {{ bomb & bomb & wait; }}; bomb'"
HOG = "hog:memory_mib=20 sh -c 'for i in 1 2 3 4 5 6 7 8; do dd if=/dev/zero of=/dev/null bs=8M & done; wait'"
TALKERS = "--program \"errors sh -c 'yes >&2 & while :; do :; done'\" --program 'yes:count=3 yes'"
SCRIPT = f"""\
left() {{
    ls -d /tmp/rtproof-load-* 2> /dev/null > /out/$1.left
    ps | grep -E '[b]omb|[/]dev/zero|[y]es' >> /out/$1.left
}}
run bomb {CALM} --program "{BOMB}"; left bomb
run urgent {URGENT} --program "{BOMB}"; left urgent
run hog {CALM} --program "{HOG}"; left hog
echo -1 > /proc/sys/kernel/sched_rt_runtime_us
run talkers {CALM} --samples 100 {TALKERS}; left talkers
true
"""
SENTENCES = {
    "bomb": f"load bomb died: it wanted more than {MOST} processes",
    "urgent": f"load bomb died: it wanted more than {MOST} processes",
    "hog": "load hog died: it took more than 20 MiB of memory",
}


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Guest:
    return probe_guest.run("debian-6.1-rt", SCRIPT, tmp_path_factory)


@pytest.mark.parametrize(("run", "sentence"), SENTENCES.items())
def test_who_takes_too_much_dies_with_a_sentence(guest: Guest, run: str, sentence: str) -> None:
    said = guest.said(run)
    if said:  # so soon that nothing was measured
        assert said == f"rtproof-agent: {sentence}\nexit 2\n"
    else:
        record = guest.record(run)
        assert record.end
        assert (record.end.reason, record.end.text) == (EndReason.LOAD_DIED, sentence)
        assert probe_guest.invalid(record)


@pytest.mark.parametrize("run", [*SENTENCES, "talkers"])
def test_nothing_is_left(guest: Guest, run: str) -> None:
    assert guest.text(f"{run}.left") == ""


def test_who_never_stops_talking_locks_nobody_out(guest: Guest) -> None:
    """Their keepers are more urgent than all else there, and nothing takes a real-time priority away from them."""
    record = guest.record("talkers")
    assert record.end
    assert record.end.reason is EndReason.AS_ASKED
    assert record.end.totals[0].obtained == 100
    note = record.fact("load.yes.note", Moment.START)
    assert note
    assert "there is no control group" in note
