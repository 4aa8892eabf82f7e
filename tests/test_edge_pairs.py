# SPDX-License-Identifier: Apache-2.0
"""Edges of two records paired by the pattern of their times: what is known to belong together is found, or refused."""

from dataclasses import dataclass, replace

import numpy as np

from rtproof.record.contents import Int64Array
from rtproof.summary import edge_pairs
from rtproof.summary.edge_alignment import Given, Seen
from rtproof.summary.edge_pairs import pair_edges

PERIOD_NS = 30_000_000
MS = 1_000_000
WAIT_NS = edge_pairs.PATIENCE_NS


@dataclass(frozen=True)
class World:
    """What really happened: the two records, and of each seen edge the index of the one that was given, or -1."""

    given: Given
    seen: Seen
    truth: Int64Array


@dataclass(frozen=True)
class Circumstances:
    """How the edges fared. delay_ns: the usual delays are exponential with this mean.

    dropped: edges that never arrive; late: edges that arrive 20 ms late; forgotten: edges that the responder answers
    and its record does not have; before, after: how many edges the generator's record does not have. skew: of the
    clocks' rates.
    """

    edges: int = 400
    delay_ns: float = 100_000.0
    dropped: tuple[int, ...] = ()
    late: tuple[int, ...] = ()
    forgotten: tuple[int, ...] = ()
    before: int = 0
    after: int = 0
    skew: float = 0.0
    offset_ns: int = -7_654_321_987


def make(chance: np.random.Generator, what: Circumstances) -> World:
    """As agent/probes/gpio.c gives edges: on a grid, each up to half a period later, none before the last answer."""
    sent, response, answered, seen, own, truth = [], [], [], [], [], []
    due = free = 0
    for number in range(-what.before, what.edges + what.after):
        at = max(due + int(chance.uniform(0, PERIOD_NS / 2)), free)
        way, back = (int(each) for each in chance.exponential(what.delay_ns, 2))
        work = int(chance.exponential(what.delay_ns))
        way += 20 * MS if number in what.late else 0
        took = WAIT_NS + 1000 if number in what.dropped else way + work + back
        recorded = 0 <= number < what.edges
        if recorded:
            sent.append(at)
            response.append(took)
            answered.append(number not in what.dropped)
        if number not in (*what.dropped, *what.forgotten):
            seen.append(int((at + way) * (1 + what.skew)) + what.offset_ns)
            own.append(work)
            truth.append(number if recorded else -1)
        free = at + took + 1000
        due += (1 + took // PERIOD_NS) * PERIOD_NS
    given = Given(np.array(sent), np.array(response), np.array(answered, dtype=np.bool_), PERIOD_NS)
    return World(given, Seen(np.array(seen), np.array(own)), np.array(truth))


def wrong(world: World) -> int:
    """How many pairs are not those that were made."""
    found = pair_edges(world.given, world.seen)
    return int((world.truth[found.seen] != found.given).sum())


def test_every_edge_finds_its_own() -> None:
    world = make(np.random.default_rng(1), Circumstances(before=40, after=3))
    found = pair_edges(world.given, world.seen)
    assert found.refused == ""
    assert wrong(world) == 0
    assert (found.given.size, found.edges, found.unseen, found.unknown) == (400, 400, 0, 43)
    assert abs(found.rate) < 20e-6
    assert (found.own_ns <= found.response_ns).all()
    assert (found.rest_ns == found.response_ns - found.own_ns).all()


def test_dropped_late_and_forgotten_edges_are_told_apart() -> None:
    """The dropped one is never answered, the late ones are the latest pairs, and the forgotten one is in one record."""
    world = make(
        np.random.default_rng(2), Circumstances(dropped=(150,), late=tuple(range(100, 111)), forgotten=(30, 31))
    )
    found = pair_edges(world.given, world.seen)
    assert wrong(world) == 0
    assert found.never_answered_ns.tolist() == [int(world.given.sent_ns[150])]
    assert 150 not in found.given
    assert set(found.given[np.argsort(-found.response_ns)[:11]].tolist()) == set(range(100, 111))
    assert (found.unseen, found.unknown, found.given.size) == (2, 0, 400 - 3)


def test_the_level_of_an_edge_that_was_given_up_is_not_the_next_edge() -> None:
    """It comes late, while the next one, that is never answered either, waits."""
    world = make(np.random.default_rng(10), Circumstances(dropped=(150, 151)))
    place = int((world.truth <= 151).sum())
    at = int(world.given.sent_ns[151]) + 5 * MS + Circumstances.offset_ns
    seen = Seen(np.insert(world.seen.seen_ns, place, at), np.insert(world.seen.own_ns, place, 1000))
    world = replace(world, seen=seen, truth=np.insert(world.truth, place, -1))
    found = pair_edges(world.given, world.seen)
    assert wrong(world) == 0
    assert (found.given.size, found.unseen, found.unknown) == (398, 0, 1)


def test_edges_of_another_run_are_refused() -> None:
    one, other = (make(np.random.default_rng(seed), Circumstances()) for seed in (7, 8))
    found = pair_edges(one.given, other.seen)
    assert found.given.size == 0
    assert "do not show the generator's pattern" in found.refused
    assert found.edges == 400


def some_of(chance: np.random.Generator, edges: int, fewer_than: int) -> tuple[int, ...]:
    return tuple(chance.choice(edges, int(chance.integers(0, fewer_than)), replace=False).tolist())


def test_nothing_random_is_paired_wrong() -> None:
    """Whatever happens to edges and clocks: each pair is right, or there are none and a sentence says why."""
    refused = pairs = 0
    for seed in range(40):
        chance = np.random.default_rng(1000 + seed)
        edges = int(chance.integers(100, 700))
        what = Circumstances(
            edges=edges,
            delay_ns=float(10 ** chance.uniform(4, 6.6)),
            dropped=some_of(chance, edges, 4),
            late=some_of(chance, edges, edges // 10),
            forgotten=some_of(chance, edges, edges // 10),
            before=int(chance.integers(0, 200)),
            after=int(chance.integers(0, 50)),
            skew=float(chance.uniform(-1 / 400, 1 / 400)),
            offset_ns=int(chance.integers(-(10**15), 10**15)),
        )
        world = make(chance, what)
        found = pair_edges(world.given, world.seen)
        assert wrong(world) == 0, (seed, what)
        assert bool(found.refused) == (found.given.size == 0)
        refused += bool(found.refused)
        pairs += found.given.size
    assert refused < 20
    assert pairs > 5_000
