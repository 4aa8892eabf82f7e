# SPDX-License-Identifier: Apache-2.0
"""What a histogram decides holds for every order of its samples."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from analysis_records import SECOND

from rtproof.judge.analysis_model import Analysis, State
from rtproof.judge.claim import LateStretches, decide
from rtproof.judge.histogram_only import (
    analyse_histogram,
    count_above,
    counted_ns,
    fewest_episodes,
)
from rtproof.record.contents import Int64Array
from rtproof.record.requirement import Requirement
from rtproof.schema.published import analysis_dict
from rtproof.summary.counts import Counts, counts_of_values
from rtproof.summary.imported_histogram import ImportedHistogram, PrintedFigures
from rtproof.summary.quantiles import quantiles

US, MS = 1_000, 1_000_000
HOUR = 3_600 * SECOND
LIMIT = 100 * US


def histogram(**counts: int) -> Counts:
    """histogram(us20=3): three values between 20 and 21 us."""
    low = np.array([int(name[2:]) * US for name in counts], np.int64)
    return Counts(low, low + US - 1, np.array(list(counts.values()), np.int64))


def file(hours: float, *, threads: int = 1, period: int = MS, **counts: int) -> ImportedHistogram:
    """A file that shows that every due activation ran, so many hours at this period; counts are of all threads."""
    late = sum(counts.values())
    due = round(hours * HOUR / period)
    bins = histogram(us20=due * threads - late, **counts)
    parts = tuple(
        PrintedFigures(number=number, count=due, min_ns=20 * US, max_ns=int(bins.lo[-1])) for number in range(threads)
    )
    return ImportedHistogram(
        "tool",
        "",
        duration_ns=round(hours * HOUR),
        shortest_period_ns=period,
        count=due * threads,
        min_ns=20 * US,
        max_ns=int(bins.lo[-1]),
        histogram=bins,
        overflow=0,
        resolution_ns=US,
        parts=parts,
    )


def state(imported: ImportedHistogram, **asked: int) -> State:
    return analyse_histogram(imported, [Requirement(LIMIT, **{"at_most_ns": HOUR, **asked})]).verdict.state


def reason(imported: ImportedHistogram, **asked: int) -> str:
    return analyse_histogram(imported, [Requirement(LIMIT, **{"at_most_ns": HOUR, **asked})]).verdicts[0].reasons[1]


def test_it_takes_as_long_as_with_times() -> None:
    assert state(file(3.49)) is State.PROVEN
    assert state(file(3.48)) is State.UNDECIDED
    assert "too short: PROVEN takes 3 h 29 min" in reason(file(3.48))
    assert state(file(6.5), at_most_ns=2 * HOUR) is State.UNDECIDED
    two = [Requirement(LIMIT, HOUR), Requirement(2 * LIMIT, HOUR)]
    assert analyse_histogram(file(3.49), two).verdict.state is State.UNDECIDED, "each at half of alpha"
    assert analyse_histogram(file(5), two).verdict.state is State.PROVEN
    beside = [Requirement(LIMIT, HOUR), Requirement(2 * LIMIT)]
    assert [each.state for each in analyse_histogram(file(3.49), beside).verdicts] == [State.PROVEN, State.HELD]
    m = Requirement(LIMIT, HOUR, bunches=2.0)
    assert [analyse_histogram(file(hours), [m]).verdict.state for hours in (6.9, 7)] == [State.UNDECIDED, State.PROVEN]


@pytest.mark.parametrize(
    ("lacking", "words"),
    [
        ({"duration_ns": None}, "how long it measured"),
        ({"shortest_period_ns": None}, "the period"),
        ({"overruns": 3}, "3 overruns"),
        ({"max_ns": 2 * MS, "limit": 3 * MS}, "may have skipped"),
        ({"duration_ns": 11 * HOUR}, "36,000,000 samples where 39,600,000 were due"),
        ({"overflow": None, "max_ns": None}, "do not tell whether"),
    ],
)
def test_undecided_where_the_file_does_not_show_it(lacking: dict[str, int | None], words: str) -> None:
    limit = lacking.pop("limit", None) or LIMIT
    said = analyse_histogram(replace(file(10), **lacking), [Requirement(limit, HOUR)])  # type: ignore[arg-type]
    assert said.verdict.state is State.UNDECIDED
    assert words in said.verdicts[0].reasons[1]


def test_a_thread_that_ran_less_long_keeps_it_from_being_proven() -> None:
    whole = file(10, threads=2)
    assert state(whole) is State.PROVEN
    short = replace(whole, parts=(whole.parts[0], replace(whole.parts[1], count=30_000_000)))
    assert "thread 1 has 30,000,000 samples" in reason(short)
    unknown = replace(whole, parts=(whole.parts[0], replace(whole.parts[1], count=None)))
    assert "how many activations each thread ran" in reason(unknown)


def test_a_stall_at_the_end_that_the_file_cannot_show_keeps_short_episodes_from_being_proven() -> None:
    """The duration is told to the second, and D is 250 ms for once per second."""
    assert state(file(4), at_most_ns=20 * SECOND) is State.PROVEN
    assert state(file(4), at_most_ns=SECOND) is State.UNDECIDED


def test_time_that_only_one_of_two_threads_measured_does_not_count() -> None:
    whole = file(10, threads=2)
    late = replace(whole, parts=(whole.parts[0], replace(whole.parts[1], count=36_000_000 - 5_000)))
    counted = counted_ns(late)
    assert counted is not None
    assert counted == 10 * HOUR - SECOND - 2 * 6 * SECOND


def test_exceedances_are_never_proven() -> None:
    assert state(file(10, us200=1)) is State.UNDECIDED
    assert "does not tell when" in reason(file(10, us200=1))


def test_refuted_by_rate_with_the_fewest_episodes_that_hold_them() -> None:
    """D is 10 min for once per hour, so an episode holds 600,001 activations of 1 ms at most."""
    asked = Requirement(LIMIT, HOUR)
    assert fewest_episodes(file(10), asked, 600_001) == 1
    assert fewest_episodes(file(10), asked, 600_002) == 2
    assert fewest_episodes(file(10, threads=3), asked, 1_800_004) == 2
    assert fewest_episodes(replace(file(10), shortest_period_ns=None), asked, 10**9) == 1
    half = file(4, us200=9_000_000)
    assert state(half) is State.REFUTED
    assert "at least 15 episodes of 10 min" in reason(half)
    assert state(replace(half, duration_ns=20 * HOUR)) is State.UNDECIDED
    assert state(replace(half, duration_ns=None)) is State.UNDECIDED


def test_refuted_by_duration_where_all_samples_exceed() -> None:
    always = file(0.5, us200=1_800_000)
    assert state(always) is State.REFUTED
    assert "lasted longer than 10 min" in reason(always)
    assert state(file(0.5, us200=1_800_000 - 50_000)) is State.REFUTED
    assert state(file(0.5, us200=1_800_000 - 200_000)) is State.UNDECIDED, "room for three pauses of 1 min"
    assert state(file(0.15, us200=540_000)) is State.UNDECIDED, "shorter than D"


def test_refuted_by_one_activation_that_was_late_for_longer_than_d() -> None:
    stalled = replace(file(10, us200=1), max_ns=700 * SECOND)
    assert state(stalled) is State.REFUTED
    assert "one activation alone was late for 11 min 39 s" in reason(stalled)
    assert state(replace(stalled, max_ns=599 * SECOND)) is State.UNDECIDED


def test_bins_that_may_hold_what_was_smaller_refute_nothing() -> None:
    always = replace(file(0.5, us200=1_800_000), unsure=True)
    assert state(always) is State.UNDECIDED
    assert state(replace(file(4), unsure=True)) is State.PROVEN, "the maximum is printed"
    assert state(replace(file(4), unsure=True, max_ns=None)) is State.UNDECIDED


@dataclass(frozen=True)
class Measured:
    """Latencies of each thread in the order of time. skips: activations that are over when one has run are in no count.

    stall_ns: how long the last activation of the first thread had not come back when the run ended; it is in no count.
    """

    values: tuple[Int64Array, ...]
    period_ns: int
    stall_ns: int
    asked: Requirement
    skips: bool = True

    @property
    def due_ns(self) -> tuple[Int64Array, ...]:
        if not self.skips:
            return tuple(np.arange(each.size) * self.period_ns for each in self.values)
        steps = (np.append(0, np.maximum(each // self.period_ns + 1, 1)) for each in self.values)
        return tuple(np.cumsum(each)[:-1] * self.period_ns for each in steps)

    @property
    def length_ns(self) -> int:
        ends = [
            int(due[-1] + (v[-1] // self.period_ns + 1) * self.period_ns)
            for due, v in zip(self.due_ns, self.values, strict=True)
        ]
        return max(ends) + self.stall_ns

    def exact(self) -> State:
        """The verdict with times."""
        begin, end = [], []
        for due, values in zip(self.due_ns, self.values, strict=True):
            late = values > self.asked.limit_ns
            begin.append(due[late])
            end.append(due[late] + values[late] - self.asked.limit_ns)
        if self.stall_ns > self.asked.limit_ns:
            begin.append(np.array([self.length_ns - self.stall_ns]))
            end.append(np.array([self.length_ns - self.asked.limit_ns]))
        late_times = LateStretches.exact(np.concatenate(begin), np.concatenate(end))
        return decide(self.asked, late_times, self.length_ns, 1 - self.asked.confidence).state

    def told(self, generator: np.random.Generator) -> Analysis:
        """The verdict on what a tool prints of it: microseconds, and a duration that is off by up to a second."""
        together = np.concatenate(self.values) // US * US
        counts = counts_of_values(together)
        parts = tuple(
            PrintedFigures(number=at, count=each.size, max_ns=int(each.max())) for at, each in enumerate(self.values)
        )
        imported = ImportedHistogram(
            "tool",
            "",
            duration_ns=self.length_ns + int(generator.uniform(-0.99, 0.99) * SECOND),
            shortest_period_ns=self.period_ns,
            count=together.size,
            min_ns=int(together.min()),
            max_ns=int(together.max()),
            histogram=Counts(counts.lo, counts.hi + US - 1, counts.n),
            overflow=0,
            resolution_ns=US,
            parts=parts,
        )
        return analyse_histogram(imported, [self.asked])


def drawn(generator: np.random.Generator) -> Measured:
    at_most_ns = int(np.exp(generator.uniform(np.log(3), np.log(600))) * SECOND)
    asked = Requirement(int(generator.choice([100 * US, 50 * MS, SECOND])), at_most_ns)
    period_ns = int(generator.choice([100, 200, 500])) * MS
    threads = int(generator.integers(1, 4))
    clean = generator.random() < 0.3
    times = generator.uniform(3, 9) if clean else np.exp(generator.uniform(np.log(0.001), np.log(9)))
    per_thread = max(int(at_most_ns * times) // period_ns, 2)
    share = 0.0 if clean else generator.choice([1 / per_thread, 0.02, 0.5, 0.9, 0.999, 1.0])
    longer_ns = float(generator.choice([1 * US, period_ns / 2, 3 * period_ns, asked.longest_ns / 2, asked.longest_ns]))
    values = []
    for _ in range(threads):
        each = generator.integers(0, min(asked.limit_ns, period_ns - US), per_thread, endpoint=True)
        late = generator.random(per_thread) < share
        each[late] = asked.limit_ns + 1 + generator.exponential(longer_ns / max(share * per_thread, 1), int(late.sum()))
        values.append(each)
    stall_ns = int(generator.exponential(3 * SECOND)) if generator.random() < 0.3 else 0
    return Measured(tuple(values), period_ns, stall_ns, asked, skips=bool(generator.integers(2)))


def orders(measured: Measured, generator: np.random.Generator) -> list[Measured]:
    """The same samples by chance, with the late ones first, last, in the middle, and as far apart as can be."""
    found = []
    for kind in ("chance", "first", "last", "middle", "apart"):
        values = []
        for each in measured.values:
            late, fine = (
                each[each > measured.asked.limit_ns],
                generator.permutation(each[each <= measured.asked.limit_ns]),
            )
            place = {"first": 0, "last": fine.size, "middle": fine.size // 2}.get(kind)
            if kind == "chance":
                values.append(generator.permutation(each))
            elif place is None:
                values.append(np.insert(fine, np.linspace(0, fine.size, late.size).astype(int), late))
            else:
                values.append(np.concatenate((fine[:place], late, fine[place:])))
        found.append(replace(measured, values=tuple(values)))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_no_order_of_the_samples_has_another_verdict(seed: int) -> None:
    generator = np.random.default_rng((12, seed))
    seen = dict.fromkeys((State.PROVEN, State.REFUTED, State.UNDECIDED, State.INVALID), 0)
    for number in range(300):
        measured = drawn(generator)
        told = measured.told(generator)
        seen[told.verdict.state] += 1
        if told.verdict.state is State.INVALID:
            assert "does not fit into" in told.verdict.reasons[0], "a drawn value may be longer than the run"
        if told.verdict.state in (State.UNDECIDED, State.INVALID):
            continue
        found = [one.exact() for one in orders(measured, generator)]
        assert set(found) == {told.verdict.state}, (
            f"case {number}: {measured.asked} {told.verdicts[0].reasons[1]}: {found}"
        )
    assert seen.pop(State.INVALID) <= 30
    assert min(seen.values()) >= 10, seen


FILE = ImportedHistogram(
    "tool",
    "",
    count=1_000,
    min_ns=20 * US,
    mean_ns=22 * US,
    max_ns=90 * US,
    histogram=histogram(us20=900, us30=98, us90=2),
    overflow=0,
    resolution_ns=US,
)
SATURATED = replace(
    FILE,
    max_ns=400 * US,
    histogram=histogram(us20=900, us30=90),
    overflow=10,
    scale_ns=50 * US,
    duration_ns=1_000 * SECOND,
)
NOT_TOLD = replace(SATURATED, overflow=None)
BARE = replace(FILE, histogram=None)


@pytest.mark.parametrize(
    ("imported", "limit_ns", "least", "most"),
    [
        (FILE, 89_999, 2, 2),
        (FILE, 90_500, 0, 2),
        (SATURATED, 45 * US, 10, 10),
        (SATURATED, 100 * US, 1, 10),
        (SATURATED, 400 * US, 0, 10),
        (SATURATED, 401 * US, 0, 0),
        (NOT_TOLD, 100 * US, 1, None),
        (BARE, 10 * US, 1_000, 1_000),
        (BARE, 50 * US, 1, 1_000),
        (BARE, 100 * US, 0, 0),
    ],
)
def test_number_above_a_limit(imported: ImportedHistogram, limit_ns: int, least: int, most: int | None) -> None:
    """Exact where no bin holds the limit; beyond the scale, only the maximum is known."""
    found = count_above(imported, Requirement(limit_ns))
    assert found
    assert (found.least, found.most, found.n) == (least, most, 1_000)
    assert (found.share_high is None) == (most is None)


def test_the_share_is_bounded_as_by_clopper_and_pearson() -> None:
    found, none = count_above(FILE, Requirement(50 * US)), count_above(SATURATED, Requirement(HOUR))
    assert found
    assert none
    assert none.share_high == pytest.approx(0.0029912, rel=1e-4)
    stats = pytest.importorskip("scipy.stats")
    assert found.share_high == pytest.approx(stats.beta.ppf(0.95, 3, 998), rel=1e-9)
    assert found.share_low == pytest.approx(stats.beta.ppf(0.05, 2, 999), rel=1e-9)


def test_quantiles_up_to_saturation_and_none_beyond() -> None:
    said = analyse_histogram(SATURATED)
    told = analysis_dict(said, (0.5, 0.99, 0.991))["pooled"]["observed"]["quantiles"]
    assert [each["beyond_scale"] for each in told] == [False, False, True]
    found = [q.value for q in quantiles(said.pooled, shares=(0.5, 0.985, 0.995))]
    assert found == [21 * US - 1, 31 * US - 1, 401 * US - 1]


@pytest.mark.parametrize(
    ("imported", "requirements", "states"),
    [
        (replace(FILE, duration_ns=11 * SECOND), [(50 * US, HOUR)], [State.REFUTED]),
        (replace(FILE, duration_ns=16 * SECOND), [(50 * US, HOUR)], [State.UNDECIDED]),
        (replace(FILE, duration_ns=11 * SECOND), [(50 * US, HOUR // 100)], [State.UNDECIDED]),
        (replace(FILE, duration_ns=None), [(50 * US, HOUR)], [State.UNDECIDED]),
        (replace(FILE, duration_ns=11 * SECOND), [(50 * US, HOUR), (91 * US, HOUR)], [State.UNDECIDED] * 2),
        (replace(FILE, duration_ns=5 * SECOND), [(90_500, HOUR)], [State.UNDECIDED]),
        (
            replace(FILE, histogram=histogram(us20=500, us90=500), mean_ns=55 * US, duration_ns=HOUR),
            [(50 * US, HOUR)],
            [State.UNDECIDED],
        ),
        (replace(FILE, duration_ns=1_000 * HOUR), [(100 * US, HOUR)], [State.UNDECIDED]),
        (replace(FILE, duration_ns=5 * SECOND, faults=("differ",)), [(50 * US, HOUR)], [State.INVALID]),
    ],
    ids=["short", "longer", "rarer", "unknown length", "half of alpha", "in a bin", "many", "clean", "faults"],
)
def test_one_episode_anywhere_refutes_where_the_run_is_short_enough(
    imported: ImportedHistogram, requirements: list[tuple[int, int]], states: list[State]
) -> None:
    """E- is 20 at r0 T = 0.0035 with one episode: 12.6 s for once per hour, and the tool may have rounded by 1 s."""
    said = analyse_histogram(imported, [Requirement(*each) for each in requirements])
    assert [one.state for one in said.verdicts] == states
