# SPDX-License-Identifier: Apache-2.0
"""Guests with several processors: which figures are compared, what is said of them, and what is refused."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from analysis_records import SERIES, block, fact, file, record
from lab_cases import FakeMachine, Turns, facts_of_turns, kernel, load
from lab_desk import assert_refused, desk

from rtproof import report
from rtproof.cli.main import main
from rtproof.core.errors import UserError
from rtproof.experiment.campaign_folder import PAGE_FILE
from rtproof.experiment.lab_scenarios import judge_kernel
from rtproof.judge.analyse import analyse
from rtproof.lab.guest_cell import CellCost, CellSetting, GuestSystem
from rtproof.lab.kernel_comparison import (
    CellReading,
    KernelComparison,
    SystemUnderLoad,
    clearly_below,
    comparable_part,
    loads_clearly_won,
    rank_systems,
    reading_of_analysis,
    turns_sentence,
    unlike_sentences,
)
from rtproof.lab.systems import (
    GuestProcessors,
    boot_labels,
    chosen_processors,
    measured_cpus,
    refuse_wrong_cpus,
)
from rtproof.record.contents import Moment
from rtproof.report.blocks import Plot, Section, Table
from rtproof.report.pages import kernel_comparison_page
from rtproof.report.pages.kernel_comparison_page import Provenance

__all__ = ["desk"]

MAKING = Provenance("rtproof lab compare --cpus 2", "0.1.0", {"x86_64": "QEMU 10"}, {"x86_64": "a" * 64}, "zig 0")
ISOLATED = "isolcpus=domain,managed_irq,1 irqaffinity=0 rcu_nocbs=1"
N = 100


def system(name: str, *boot: str, cpus: int = 2, soakers: bool = True) -> GuestSystem:
    return GuestSystem(name, " ".join(boot), FakeMachine(kernel(name), boot=boot, cpus=cpus, soakers=soakers))


RT, PLAIN = system("debian-6.1-rt"), system("debian-6.1")


def read(
    largest_ns: dict[int, int], *, of: int = 2, missed: int = 0, told: tuple[tuple[str, str], ...] = ()
) -> CellReading:
    """What a guest with so many processors measured: by CPU the largest latency. told: facts besides the usual ones."""
    blocks, every = [], []
    for at, (cpu, ns) in enumerate(largest_ns.items()):
        series = replace(SERIES, id=at, thread=at, cpu=cpu)
        values = np.full(N, 3_900)
        values[N // 2] = ns
        blocks.append(block(values.tolist(), {N // 2: missed} if missed else None, series=series))
        every.append(series)
    facts = [fact("policy", "fifo"), *(fact("policy", "fifo", Moment.START, each.thread) for each in every)]
    facts += [fact(key, text, Moment.START) for key, text in told or facts_of_turns(Turns((), of) if of > 1 else None)]
    online = file("/sys/devices/system/cpu/online", f"0-{of - 1}\n")
    made = record(blocks, every, facts=tuple(facts), files=(online,))
    return reading_of_analysis(analyse(made, None, 1))


def spot(each: GuestSystem, name: str, *shifts: dict[int, int], of: int = 2) -> SystemUnderLoad:
    return SystemUnderLoad(each, load(name), tuple(read(shift, of=of) for shift in shifts))


def comparison(*spots: SystemUnderLoad, setting: CellSetting = CellSetting()) -> KernelComparison:  # noqa: B008 - frozen
    systems = tuple(dict.fromkeys(each.system for each in spots))
    loads = tuple(dict.fromkeys(each.load for each in spots))
    shifts = max(len(each.readings) for each in spots)
    return KernelComparison(systems, loads, setting, shifts, spots, CellCost(8.0, 4.0), 3, 1, 5.0)


def tables(sections: list[Section]) -> dict[str, Table]:
    blocks = [each for section in sections for each in section.blocks]
    return {each.caption.partition(" [")[0].split(";")[0]: each for each in blocks if isinstance(each, Table)}


def text(found: KernelComparison) -> str:
    sections = kernel_comparison_page.terminal_sections(found)
    return " ".join(report.render("text", "a title", sections).decode().split())


def test_a_reading_has_the_figures_of_each_measured_processor() -> None:
    found = read({0: 10_000, 1: 25_000}, missed=2)
    assert (found.count, found.missed, found.max_ns, found.online) == (2 * N, 4, 25_000, 2)
    first, second = found.cpus
    assert (first.cpu, first.count, first.missed, first.min_ns, first.max_ns) == (0, N, 2, 3_900, 10_000)
    assert second.mean_ns == (3_900 * (N - 1) + 25_000) / N
    assert (first.share, second.share) == (0.667, 0.333)
    assert first.count + second.count == found.count == int(found.counts.n.sum())


@pytest.mark.parametrize("told", ["", "0.6", "0.6 0.4 ", "0,6 0,4", "nan nan", "0.6 -0.4", "x" * 100])
def test_shares_that_are_none_are_left_out(told: str) -> None:
    shares = [each.share for each in read({1: 9_000}, told=(("cpu_shares", told),)).cpus]
    assert shares == [None]


def test_threads_that_are_not_bound_have_no_processor() -> None:
    assert read({-1: 9_000}).cpus == ()


def test_the_largest_latency_is_shown_by_processor() -> None:
    found = comparison(
        spot(RT, "idle", {0: 9_000, 1: 14_000}, {0: 9_500, 1: 15_000}),
        spot(PLAIN, "idle", {0: 868_000, 1: 1_108_000}, {0: 800_000, 1: 1_000_000}),
    )
    shown = tables(kernel_comparison_page.terminal_sections(found))
    assert shown["Largest latency by processor"].header[:3] == ("load", "processor", "share")
    assert shown["Largest latency by processor"].rows == (
        ("idle", "0", "0.67", "9.5", "868.0"),
        ("idle", "1", "0.33", "15.0", "1,108.0"),
    )
    ranges = shown["Range of the largest latency by processor over 2 shifts"]
    assert ranges.rows[1][3:] == ("14.0 to 15.0", "1,000.0 to 1,108.0")


def test_a_table_without_shares_has_no_column_for_them() -> None:
    readings = (read({0: 9_000, 1: 8_000}, told=(("turn_us", "4"),)),)
    shown = tables(kernel_comparison_page.terminal_sections(comparison(SystemUnderLoad(RT, load("idle"), readings))))
    assert shown["Largest latency by processor"].header == ("load", "processor", "debian-6.1-rt")


def test_one_measured_processor_needs_no_table_of_its_own() -> None:
    found = comparison(spot(RT, "idle", {1: 9_000}), spot(PLAIN, "idle", {1: 10_000}))
    sections = kernel_comparison_page.terminal_sections(found)
    assert "Largest latency by processor" not in tables(sections)
    assert "n = 100 per cell, processor 1, which had 0.33 of all instructions" in text(found)
    title = "rtproof lab: debian-6.1-rt, debian-6.1 in virtual time, 2 processors, measured on 1"
    assert kernel_comparison_page.comparison_title(found) == title


def test_a_missed_activation_is_counted_by_processor() -> None:
    readings = (read({0: 9_000, 1: 8_000}, missed=2),)
    shown = tables(kernel_comparison_page.terminal_sections(comparison(SystemUnderLoad(RT, load("idle"), readings))))
    assert shown["Largest latency by processor"].rows[0][-1] == "9.0 (2)"


def test_a_processor_whose_thread_never_ran_says_so() -> None:
    starved = read({0: 9_000, 1: 8_000})
    silent = replace(starved.cpus[1], count=0)
    readings = (replace(starved, cpus=(starved.cpus[0], silent)),) * 2
    shown = tables(kernel_comparison_page.terminal_sections(comparison(SystemUnderLoad(RT, load("idle"), readings))))
    for caption in ("Largest latency by processor", "Range of the largest latency by processor over 2 shifts"):
        assert shown[caption].rows[1][-1] == "never ran"


FOUR = ({0: 9_000}, {0: 9_100}, {0: 9_200}, {0: 9_300})


def test_cells_on_different_processors_are_not_compared() -> None:
    late = [{1: ns * 3} for shift in FOUR for ns in shift.values()]
    found = comparison(spot(RT, "idle", *FOUR), spot(PLAIN, "idle", *late))
    assert not clearly_below(*found.spots)
    assert rank_systems(found) == []
    said = text(found)
    assert "The systems measured different processors, so none is ranked above another." in said
    assert "times as much" not in said
    assert "Nothing is compared or ranked, because the systems measured different processors" in said
    assert "(debian-6.1-rt: 0 of 2; debian-6.1: 1 of 2)" in said


def test_cells_are_compared_on_the_processors_that_both_measured() -> None:
    both = [{0: 90_000 + at, 1: 5_000} for at in range(4)]
    found = comparison(spot(RT, "idle", *FOUR), spot(PLAIN, "idle", *both))
    first, last = rank_systems(found)
    assert (first.system, last.system, last.spot.max_ns) == (RT, PLAIN, 90_003)
    assert clearly_below(*found.spots)
    assert [each.name for each in loads_clearly_won(found, first)] == ["idle"]
    assert "Only processor 0 is compared, because the systems measured different processors" in text(found)
    swapped = [{0: 9_050, 1: 500_000} for _ in range(4)]
    assert not clearly_below(spot(RT, "idle", *FOUR), spot(PLAIN, "idle", *swapped))


def test_a_processor_that_one_system_did_not_measure_has_no_figure() -> None:
    found = comparison(spot(PLAIN, "idle", {0: 6_400, 1: 7_400}), spot(RT, "idle", {0: 6_400}))
    shown = tables(kernel_comparison_page.terminal_sections(found))
    assert shown["Largest latency by processor"].rows[1] == ("idle", "1", "0.33", "7.4", "not measured")
    assert all(each is None for row in shown["min / mean / max latency"].heat for each in row)


def test_a_processor_of_a_guest_with_fewer_on_line_is_another_one() -> None:
    found = comparison(spot(RT, "idle", {0: 9_000}), spot(PLAIN, "idle", {0: 4_000}, of=1))
    assert rank_systems(found) == []
    assert "(debian-6.1-rt: 0 of 2; debian-6.1: 0 of 1)" in unlike_sentences(found)[0]


def test_cells_on_the_same_processors_are_compared_as_they_are() -> None:
    found = comparison(spot(RT, "idle", {0: 9_000, 1: 8_000}), spot(PLAIN, "idle", {0: 4_000, 1: 30_000}))
    assert comparable_part(found) is found
    assert unlike_sentences(found) == []
    assert [place.spot.max_ns for place in rank_systems(found)] == [9_000, 30_000]


@pytest.mark.parametrize("soakers", [True, False])
def test_every_form_says_what_turns_are(soakers: bool) -> None:
    found = comparison(spot(system("debian-6.1-rt", soakers=soakers), "idle", {0: 9_000, 1: 8_000}))
    sentence = turns_sentence(2, 4, soakers=soakers)
    assert ("parallel machine" in sentence, "INVALID" in sentence) == (soakers, not soakers)
    assert ["INVALID" in turns_sentence(2, pace, soakers=True) for pace in (100, 101)] == [False, True]
    sections = {
        "text": kernel_comparison_page.terminal_sections(found),
        "html": kernel_comparison_page.page_sections(found, MAKING),
        "markdown": kernel_comparison_page.readme_sections(found, MAKING),
    }
    for form, each in sections.items():
        assert sentence in " ".join(report.render(form, "a title", each).decode().split())
    assert sentence in kernel_comparison_page.comparison_dict(found, MAKING)["notes"]


def test_one_processor_is_shown_as_ever() -> None:
    readings = (read({0: 9_000}, of=1),)
    found = comparison(SystemUnderLoad(system("debian-6.1-rt", cpus=1), load("idle"), readings))
    assert "processor" not in text(found).replace("processor's", "")
    assert kernel_comparison_page.comparison_title(found) == "rtproof lab: debian-6.1-rt in virtual time"


def test_the_json_has_the_figures_by_processor() -> None:
    found = comparison(spot(RT, "idle", {0: 9_000, 1: 14_000}))
    (shift,) = kernel_comparison_page.comparison_dict(found, MAKING)["cells"][0]["shifts"]
    assert [(each["cpu"], each["max_ns"], each["share"]) for each in shift["cpus"]] == [
        (0, 9_000, 0.667),
        (1, 14_000, 0.333),
    ]


@pytest.mark.parametrize(
    ("boots", "labels"),
    [
        (("", "threadirqs"), ("no arguments", "threadirqs")),
        (("", ISOLATED), ("no arguments", "isolcpus=... +2")),
        ((ISOLATED, f"{ISOLATED} nohz_full=1"), ("isolcpus=... +2", "nohz_full=1 +3")),
        ((ISOLATED, ISOLATED.replace("rcu_nocbs=1", "rcu_nocbs=0")), ("isolcpus=... +2", "rcu_nocbs=0 +2")),
        (("isolcpus=domain,nohz,1", "isolcpus=nohz,domain,1"), ("isolcpus=...", "isolcpus=... (2)")),
        (("a=" + "1" * 30, "a=" + "2" * 30, "a=" + "3" * 30), ("a=...", "a=... (2)", "a=... (3)")),
    ],
)
def test_long_arguments_have_short_names_that_differ(boots: tuple[str, ...], labels: tuple[str, ...]) -> None:
    assert boot_labels(boots) == labels


def test_what_differs_between_systems_is_a_table() -> None:
    plain = GuestSystem("debian-6.1-rt", "no arguments", FakeMachine(kernel("a"), cpus=2))
    isolated = GuestSystem(
        "debian-6.1-rt", "isolcpus=... +2", FakeMachine(kernel("a"), tuple(ISOLATED.split()), cpus=2)
    )
    found = comparison(spot(plain, "idle", {1: 9_000}), spot(isolated, "idle", {1: 8_000}))
    shown = tables(kernel_comparison_page.terminal_sections(found))
    assert shown["What differs: the kernel arguments of each system"].rows == (
        ("debian-6.1-rt no arguments", "none"),
        ("debian-6.1-rt isolcpus=... +2", ISOLATED),
    )
    alike = comparison(spot(replace(isolated, variant=""), "idle", {1: 9_000}))
    assert f"All systems were booted with {ISOLATED}." in text(alike)


@pytest.mark.parametrize(
    ("boot", "cpus", "sentence"),
    [
        ("isolcpus=5", 2, "--boot isolcpus=5: the guest has 2 processors, numbers 0 to 1"),
        ("isolcpus=domain,managed_irq,2-3", 2, "--boot isolcpus=domain,managed_irq,2-3: the guest has 2 processors"),
        ("quiet irqaffinity=0-2", 2, "--boot irqaffinity=0-2: the guest has 2 processors"),
        ("isolcpus=1", 1, "--boot isolcpus=1: the guest has 1 processor, number 0; --cpus gives it more"),
        ("isolcpus=0-1", 2, "--boot isolcpus=0-1 isolates every processor of the guest"),
        ("nohz_full=0,1,2,3", 4, "--boot nohz_full=0,1,2,3 isolates every processor of the guest"),
    ],
)
def test_arguments_for_processors_that_a_guest_lacks_are_refused(boot: str, cpus: int, sentence: str) -> None:
    with pytest.raises(UserError, match="^" + sentence.replace("(", r"\(")):
        refuse_wrong_cpus(["", boot], cpus)


@pytest.mark.parametrize(
    "boot", [ISOLATED, "rcu_nocbs=0-1 irqaffinity=0-1", "rcu_nocbs=all", "isolcpus=1-N", "isolcpus="]
)
def test_other_arguments_are_left_to_the_kernel(boot: str) -> None:
    refuse_wrong_cpus([boot], 2)


def test_measured_processors_have_one_form() -> None:
    assert [measured_cpus(text, 4) for text in (None, "1", "3,0-1", "0, 1,2")] == ["", "1", "0-1,3", "0-2"]
    assert measured_cpus("0", 1) == "0"
    assert measured_cpus(None, 2, "deadline") == ""


def test_what_the_user_did_not_say_is_as_usual() -> None:
    assert chosen_processors(1, None, None, None) == GuestProcessors()
    assert chosen_processors(2, 10, False, "fetched") == GuestProcessors(2, 10, soakers=False, qemu="fetched")


@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize(
    "command", [["compare"], ["check", "--kernel", "debian-6.1", "--max", "1ms"], ["profile", "akamina"]]
)
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--cpus", "2", "--measured-cpus", "2"], "--measured-cpus 2: the guest has 2 processors, numbers 0 to 1"),
        (["--measured-cpus", "0-1"], "--measured-cpus 0-1: the guest has 1 processor, number 0; --cpus gives it more"),
        (["--cpus", "2", "--measured-cpus", "x"], "--measured-cpus: 'x' is not a list of CPUs"),
        (["--cpus", "2", "--measured-cpus", ""], "--measured-cpus: '' is not a list of CPUs"),
        (["--cpus", "2", "--measured-cpus", "1-0"], "--measured-cpus: the CPU range '1-0' runs backwards"),
        (["--pace", "4"], "--pace is for guests with several processors, which take turns: give --cpus as well"),
        (["--cpus", "1", "--no-soakers"], "--no-soakers is for guests with several processors"),
        (["--cpus", "9"], "Invalid value for '--cpus': 9 is not in the range"),
        (["--cpus", "2", "--qemu", " "], "Invalid value for '--qemu': it is empty: give system, fetched, or a path"),
        (["--cpus", "2", "--load", "mmap@0,2"], "the load mmap@0,2 is bound to CPU 2, and the guests have CPUs 0 to 1"),
    ],
)  # fmt: skip
def test_refusals_are_one_sentence_before_anything_is_fetched(
    command: list[str],
    words: list[str],
    sentence: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rtproof.lab.kernel_catalogue.resolve_kernel", lambda *_, **__: pytest.fail("fetched"))
    assert main(["lab", command[0], *command[1:], *words]) == 2
    assert_refused(capsys, sentence)


@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--boot", "isolcpus=5"], "--boot isolcpus=5: the guest has 2 processors, numbers 0 to 1"),
        (["--measured-cpus", "1", "--policy", "deadline"], "threads of policy deadline can't be bound to CPUs"),
    ],
)
def test_what_only_a_comparison_can_ask_is_refused_too(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lab", "compare", "--cpus", "2", *words]) == 2
    assert_refused(capsys, sentence)


@pytest.fixture
def turning(desk: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The desk, where every QEMU lets processors take turns."""
    for place in ("guest_runner", "guest_campaign"):
        monkeypatch.setattr(f"rtproof.experiment.{place}.check_turns", lambda machine: None)
    return desk


@pytest.mark.slow
@pytest.mark.usefixtures("turning")
def test_isolated_against_not_is_a_readable_table(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--kernel", "debian-6.1-rt", "--cpus", "2", "--measured-cpus", "1", "--boot", "", "--boot", ISOLATED]
    assert main(["lab", "compare", *words, "--load", "idle", "--load", "mmap", "--shifts", "1", "-o", "a"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("rtproof lab: debian-6.1-rt in virtual time, 2 processors, measured on 1")
    assert "debian-6.1-rt isolcpus=... +2  isolcpus=domain,managed_irq,1 irqaffinity=0 rcu_nocbs=1" in out
    assert max(map(len, out.splitlines())) <= 120
    assert "debian-6.1-rt no arguments, 2 processors, idle: max 7.4 us" in err
    names = sorted(path.name for path in Path("a/cells").iterdir())
    assert names[0] == "debian-6.1-rt_isolcpus=..._+2_2_processors_idle__0"
    told = json.loads(Path("a/result.json").read_text())
    assert told["setting"]["more_arguments"] == ["--cpus", "1"]
    assert [each["boot"] for each in told["systems"]] == [[], ISOLATED.split()]


@pytest.mark.slow
@pytest.mark.usefixtures("turning")
def test_without_soakers_cells_are_invalid_and_the_reason_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--kernel", "debian-6.1-rt", "--cpus", "2", "--no-soakers", "--load", "idle", "--shifts", "1", "-o", "a"]
    assert main(["lab", "compare", *words]) == 3
    out = " ".join(capsys.readouterr().out.split())
    assert turns_sentence(2, 4, soakers=False) in out
    assert "no soakers keep each of them busy" in out
    assert main(["lab", "check", "--max", "1ms", *words[:-2]]) == 3
    assert turns_sentence(2, 4, soakers=False) in capsys.readouterr().out


@pytest.mark.parametrize(
    ("measured", "limit_ns", "code", "where"),
    [
        ({0: 6_400}, 6_400, 0, "100 activations on processor 0 of 2 is "),
        ({1: 7_400}, 6_400, 1, "100 activations on processor 1 of 2 is "),
        ({0: 6_400, 1: 7_400}, 7_400, 0, "200 activations on processors 0-1 of 2 is "),
    ],
)
def test_a_check_judges_what_was_measured(
    measured: dict[int, int], limit_ns: int, code: int, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judge_kernel(comparison(spot(RT, "idle", measured)), limit_ns) == code
    said, *more = capsys.readouterr().out.splitlines()
    assert said.startswith(f"debian-6.1-rt, idle: the largest latency of {where}")
    assert more[-1] == turns_sentence(2, 4, soakers=True)
    assert ("processor 0: 6.4 us; processor 1: 7.4 us" in more) == (len(measured) > 1)


@pytest.mark.slow
@pytest.mark.usefixtures("turning")
def test_a_profile_measures_on_the_processors_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--kernel", "debian-6.1-rt", "--cpus", "2", "--measured-cpus", "1", "--samples", "2000", "-o", "a"]
    main(["lab", "profile", "akamina", *words])
    out = " ".join(capsys.readouterr().out.split())
    assert ", virtual time, 2 processors, measured on 1 ==" in out
    sentence = turns_sentence(2, 4, soakers=True)
    assert sentence in out
    for name in (PAGE_FILE, "table.md"):
        assert sentence in " ".join(Path("a", name).read_text().split())
    assert "at most 4 us, with soakers" in Path("a", PAGE_FILE).read_text()


def test_a_ranking_of_some_processors_says_of_which() -> None:
    both = [{0: 90_000 + at, 1: 95_000} for at in range(4)]
    found = comparison(spot(RT, "idle", *FOUR), spot(PLAIN, "idle", *both))
    sections = kernel_comparison_page.page_sections(found, MAKING)
    headline = "On processor 0, debian-6.1-rt stayed within 9.3 us (idle); debian-6.1 reached 90.003 us (idle)"
    assert headline in text(found)
    assert "Systems by their largest latency on processor 0 under any load" in tables(sections)
    titles = [each.title for section in sections for each in section.blocks if isinstance(each, Plot)]
    assert titles == ["Share of due times later than a latency: idle, processor 0"]
    alike = comparison(spot(RT, "idle", *FOUR), spot(PLAIN, "idle", *FOUR))
    captions = tables(kernel_comparison_page.page_sections(alike, MAKING))
    assert "Systems by their largest latency under any load" in captions
    assert "On processor" not in text(alike)


@pytest.mark.parametrize(
    ("runs", "differing", "said"),
    [
        (4, 0, []),
        (8, 0, ["8 runs, until two of each cell with several processors agreed; none of them gave other bytes"]),
        (9, 1, ["9 runs, until two of each cell with several processors agreed; 1 of them gave other bytes"]),
    ],
)
def test_the_page_says_how_many_runs_gave_other_bytes(runs: int, differing: int, said: list[str]) -> None:
    found = replace(comparison(spot(RT, "idle", {0: 9_000})), cost=CellCost(8.0, 4.0, runs, differing))
    table = tables(kernel_comparison_page.page_sections(found, MAKING))["What was measured"]
    assert [row[1] for row in table.rows if row[0] == "runs of these cells"] == said


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["lab", "compare", "--cpus", "4", "--load", "dd:mib=8@"], [f"dd:mib=8@{cpu}" for cpu in range(4)]),
        (["lab", "check", "--cpus", "8", "--load", "mmap@7"], ["mmap@7"]),
        (["lab", "compare", "--load", "mmap@"], ["mmap@0"]),
        (["run", "--cpus", "0-1", "--load", "mmap@"], ["mmap@0", "mmap@1", "mmap@2"]),
        (["lab", "explain", "--qemu", "f"], ["fetched"]),
    ],
)
def test_a_shell_offers_the_processors_of_the_guest(
    words: list[str], offered: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    told = {"COMPLETE": "bash_complete", "COMP_WORDS": f"rtproof {' '.join(words)}", "COMP_CWORD": str(len(words))}
    for name, value in told.items():
        monkeypatch.setenv(f"_RTPROOF_{name}" if name == "COMPLETE" else name, value)
    with pytest.raises(SystemExit):
        main([])
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(",")[2] for line in lines] == offered
