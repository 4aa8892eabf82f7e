# SPDX-License-Identifier: Apache-2.0
"""The probe gpio on the module's chip without hardware, in guests with PREEMPT_RT and without: one boot of each.

Line 0 is wired to line 1, 2 to 3 and 4 to 5; line 7 is driven from outside. The generator drives line 0, the responder
answers on line 2: two agents, of which none knows of the other.
"""

from collections.abc import Iterator

import probe_guest
import pytest
from probe_guest import Guest, account, facts, values

from rtproof.judge.analyse import analyse
from rtproof.record.contents import Record

RT, PLAIN = "debian-6.1-rt", "debian-6.1"
BACKS = ("v2", "v1", "sysfs")
KINDS = (*BACKS, "rising", "falling")
MS = 1_000_000
PERIOD_NS = 5 * MS
EDGES = 300
KEPT_V1, KEPT_V2 = 16, 1024
INJECTED = {"v1": 40, "v2": 1100}
SCRIPT = f"""\
insmod /rtproof.ko gpio=1 || exit
class=/sys/class/gpio
base=$(cat $class/gpiochip*/base)
lines() {{ # BACK IN OUT
    if [ $1 = sysfs ]; then echo gpio:in=$((base + $2)),out=$((base + $3)),back=sysfs
    else echo gpio:chip=rtproof-loop,in=$2,out=$3,back=$1; fi
}}
agent() {{ # NAME OPTION...
    name=$1; shift
    exec /agent run --warmup 100ms --period 5ms --priority 90 -o /out/$name "$@" 2> /out/$name.said
}}
generate() {{ # NAME PROBE
    run $1 --samples {EDGES} --period 5ms --method generate --probe $2
}}
both() {{ # NAME BACK MORE-OPTIONS
    agent $1-respond --duration 1s --probe $(lines $2 1 2)$3 & generate $1-generate $(lines $2 3 0)$3
    wait
}}
hold() {{ # PID: stops it, which takes as long as its main thread does to notice
    kill -STOP $1
    while ! grep -q "^State:.T" /proc/$1/status; do usleep 1000; done
}}
for back in {" ".join(BACKS)}; do
    both $back $back ""
    run $back-wire --samples {EDGES} --period 2ms --method wire --probe $(lines $back 5 4)
done
both rising v2 ,edge=rising
both falling v1 ,edge=falling

agent late-respond --duration 1s --probe $(lines v2 1 2) & responder=$!
(usleep 700000; hold $responder; usleep 212000; kill -CONT $responder) & generate late-generate $(lines v2 3 0)
wait

for back in {" ".join(INJECTED)}; do
    case $back in v1) edges={INJECTED["v1"]};; v2) edges={INJECTED["v2"]};; esac
    agent flood-$back --duration 1h --probe $(lines $back 7 6) & responder=$!
    usleep 300000
    hold $responder
    level=0
    while [ $edges -gt 0 ]; do
        level=$((1 - level)); edges=$((edges - 1))
        echo 7 $level > /sys/module/rtproof/parameters/inject
        [ $back = v1 ] && usleep 4000
    done
    kill -CONT $responder
    usleep 100000
    kill -INT $responder
    wait
done

ls $class > /out/exported
echo $((base + 2)) > $class/export
line=$class/rtproof-out2
cat $line/direction > /out/direction
echo high > $line/direction
run already --probe $(lines sysfs 3 2)
echo $((base + 2)) > $class/unexport
run driven --samples 51 --method wire --probe $(lines v2 3 2)
echo $((base + 2)) > $class/export
cat $line/direction $line/value > /out/direction-driven
echo in > $line/direction
echo $((base + 2)) > $class/unexport

agent killed --duration 1h --probe $(lines sysfs 1 2) & responder=$!
usleep 300000
ls $class > /out/while-used
run busy-sysfs --probe $(lines v2 5 2)
kill -KILL $responder
while [ -e $class/rtproof-in1 ]; do usleep 10000; done
ls $class > /out/after-kill

agent holder --duration 1h --probe $(lines v2 1 2) & responder=$!
usleep 300000
run busy --probe $(lines v1 5 2)
run busy-first --probe $(lines v2 1 4)
run busy-other --probe $(lines sysfs 5 2)
kill -INT $responder
wait
run no-chip --probe gpio:chip=9,in=1,out=2
run no-line --probe gpio:chip=0,in=1,out=8
ls $class > /out/exported-at-the-end

"""


@pytest.fixture(scope="module", params=[RT, PLAIN])
def guest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Guest:
    return probe_guest.run(request.param, SCRIPT, tmp_path_factory)


def totals(record: Record) -> tuple[int, int, int]:
    """Obtained, missed and lost, which all fields have in common."""
    assert record.end is not None
    (one,) = {(each.obtained, each.missed, each.lost) for each in record.end.totals}
    return one


def pairs(guest: Guest) -> Iterator[tuple[str, Record, Record]]:
    for kind in KINDS:
        yield kind, guest.record(f"{kind}-respond"), guest.record(f"{kind}-generate")


def test_every_edge_is_answered_once_while_both_run(guest: Guest) -> None:
    for kind, responder, generator in pairs(guest):
        answered, told = int(account(generator)["answered"]), account(responder)
        assert totals(responder) == (1000 // 5, 0, 0), kind
        assert int(told["edges"]) >= answered > 0, kind
        assert account(generator)["strays"] == told["lost"] == "0", kind


def test_stages_come_in_their_order(guest: Guest) -> None:
    for back in ("v2", "v1"):
        responder, wire = values(guest.record(f"{back}-respond")), values(guest.record(f"{back}-wire"))
        assert (responder["task"] > 0).all()
        assert (responder["task"] < responder["output"]).all()
        assert (wire["edge"] > 0).all()
        assert (wire["edge"] < wire["task"]).all()


def test_a_wire_has_one_wake_up_for_each_due_time(guest: Guest) -> None:
    for back in BACKS:
        record = guest.record(f"{back}-wire")
        assert totals(record) == (EDGES, 0, 0)
        assert account(record)["interface"] == back
        assert facts(record, "policy") == {"fifo"}


def test_an_edge_that_is_never_answered_is_worth_the_time_it_was_waited_for(guest: Guest) -> None:
    """The responders end first."""
    for kind, _, generator in pairs(guest):
        obtained, missed, lost = totals(generator)
        (got,) = values(generator).values()
        assert (obtained + missed, lost) == (EDGES, 0), kind
        assert account(generator)["unanswered"] == "1"
        assert account(generator)["cut_off"] == str(int(got[-1] < 5_000 * MS))
        assert (got[:-1] < PERIOD_NS).all(), kind
        assert got[-1] >= missed * PERIOD_NS > 0, kind


def test_a_late_answer_is_longer_than_a_period_and_never_wrapped(guest: Guest) -> None:
    """The responder stood still for 212 ms: one edge waited for it, the due times that passed meanwhile were missed."""
    generator, responder = guest.record("late-generate"), guest.record("late-respond")
    (got,) = values(generator).values()
    late = int((got[:-1] >= PERIOD_NS).argmax())
    assert (got[:-1] >= PERIOD_NS).sum() == 1
    assert got[late] >= 200 * MS
    (block,) = generator.blocks(0)
    gaps = dict(zip(block.gap_position.tolist(), block.gap_missed.tolist(), strict=True))
    assert gaps[late] == got[late] // PERIOD_NS
    assert (values(responder)["task"] >= 200 * MS).sum() == 1
    assert analyse(generator).pooled.missed == totals(generator)[1]


def test_edges_that_the_kernel_could_not_keep_are_lost(guest: Guest) -> None:
    """Version 2 numbers them and keeps the newest; version 1 keeps the oldest and says nothing."""
    newest = guest.record("flood-v2")
    assert totals(newest) == (KEPT_V2, 0, INJECTED["v2"] - KEPT_V2)
    assert account(newest)["lost"] == str(INJECTED["v2"] - KEPT_V2)
    oldest = guest.record("flood-v1")
    assert totals(oldest)[0] == KEPT_V1
    assert values(oldest)["task"].min() > 0


def test_lines_are_as_they_were(guest: Guest) -> None:
    none = guest.text("exported")
    assert "rtproof-" not in none
    assert guest.text("exported-at-the-end") == guest.text("after-kill") == none
    assert {"rtproof-in1", "rtproof-out2"} <= set(guest.text("while-used").split())
    assert guest.text("direction").strip() == "in"
    assert totals(guest.record("driven")) == (51, 0, 0)
    assert guest.text("direction-driven").split() == ["out", "1"]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("busy", "line 2 of gpiochip0 is in use by 'rtproof'"),
        ("busy-other", "can't be exported by sysfs: somebody else uses it"),
        ("no-chip", "there is no GPIO chip '9'; there are: gpiochip0 (rtproof-loop)"),
        ("no-line", "GPIO chip gpiochip0 (rtproof-loop) has the lines 0 to 7, and no 8"),
    ],
)
def test_what_can_not_be_done_is_said_in_a_sentence(guest: Guest, name: str, sentence: str) -> None:
    said = guest.said(name).splitlines()
    assert said[1:] == ["exit 2"]
    assert said[0].startswith("rtproof-agent: ")
    assert sentence in said[0]
