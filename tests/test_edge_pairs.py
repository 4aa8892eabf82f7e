# SPDX-License-Identifier: Apache-2.0
"""Edges of two records paired by the pattern of their times: what is known to belong together is found, or refused."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

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


def make(chance: np.random.Generator, what: Circumstances, pattern: bool = True) -> World:
    """As agent/probes/gpio.c gives edges: on a grid, each up to half a period later, none before the last answer."""
    sent, response, answered, seen, own, truth = [], [], [], [], [], []
    due = free = 0
    for number in range(-what.before, what.edges + what.after):
        at = max(due + (int(chance.uniform(0, PERIOD_NS / 2)) if pattern else 0), free)
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


@pytest.mark.parametrize("skew", [-1 / 520, 1 / 520, 50e-6, -200e-6])
def test_clocks_may_differ_in_their_rate(skew: float) -> None:
    world = make(np.random.default_rng(3), Circumstances(edges=1500, skew=skew))
    found = pair_edges(world.given, world.seen)
    assert found.refused == ""
    assert wrong(world) == 0
    assert found.given.size == 1500
    assert found.rate == pytest.approx(skew, abs=1e-5)


@pytest.mark.parametrize("skew", [1 / 300, -1 / 300, 0.02])
def test_clocks_that_differ_too_much_are_refused(skew: float) -> None:
    found = pair_edges(*_two(make(np.random.default_rng(4), Circumstances(skew=skew, edges=600))))
    assert found.given.size == 0
    assert "the clocks of the two boards differ" in found.refused or "do not show" in found.refused


def _two(world: World) -> tuple[Given, Seen]:
    return world.given, world.seen


def test_the_rate_of_a_clock_may_change() -> None:
    """By 30 ppm in 20 minutes, as with a board that gets warm: far more than an edge's distance in all."""
    world = make(np.random.default_rng(5), Circumstances(edges=40_000))
    x = world.seen.seen_ns - world.seen.seen_ns[0]
    bent = world.seen.seen_ns + (30e-6 * x * x / x[-1]).astype(np.int64)
    assert bent[-1] - world.seen.seen_ns[-1] > PERIOD_NS
    world = replace(world, seen=Seen(bent, world.seen.own_ns))
    assert pair_edges(*_two(world)).given.size == 40_000
    assert wrong(world) == 0


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


@pytest.mark.parametrize("jump", [0.3, 0.5, 1.4, 2.5, 10.0])
def test_where_a_clock_jumps_edges_are_left_out(jump: float) -> None:
    """As that of a board that slept. No edge before or behind has another's partner."""
    for seed in range(4):
        world = make(np.random.default_rng(20 + seed), Circumstances(edges=700, delay_ns=20_000.0))
        seen = world.seen.seen_ns.copy()
        seen[500 + 7 * seed :] += int(jump * PERIOD_NS)
        world = replace(world, seen=Seen(seen, world.seen.own_ns))
        assert wrong(world) == 0, seed


def test_even_edges_are_refused() -> None:
    """Without the pattern each place fits as well as its neighbour."""
    found = pair_edges(*_two(make(np.random.default_rng(6), Circumstances(before=20, after=20), pattern=False)))
    assert found.given.size == 0
    assert "in two ways" in found.refused


def test_edges_of_another_run_are_refused() -> None:
    one, other = (make(np.random.default_rng(seed), Circumstances()) for seed in (7, 8))
    found = pair_edges(one.given, other.seen)
    assert found.given.size == 0
    assert "do not show the generator's pattern" in found.refused
    assert found.edges == 400


@pytest.mark.parametrize("edges", [0, 1, 99])
def test_few_edges_are_refused(edges: int) -> None:
    found = pair_edges(*_two(make(np.random.default_rng(9), Circumstances(edges=edges))))
    assert f"{edges} edges are too few" in found.refused
    assert found.edges == edges


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
