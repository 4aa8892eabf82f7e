# SPDX-License-Identifier: Apache-2.0

import importlib
import multiprocessing
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_folders import INFO, latencies, write_run

from rtproof.cli.main import main
from rtproof.core import phrases, plugins, toml, units
from rtproof.core.errors import UserError
from rtproof.core.printable import clean, distinct
from rtproof.core.processes import each_by_itself
from rtproof.core.units import whole_number


@pytest.mark.parametrize(
    ("text", "expected_ns"),
    [
        ("0ns", 0),
        ("500us", 500_000),
        ("500µs", 500_000),
        ("1.5ms", 1_500_000),
        ("20 s", 20_000_000_000),
        ("2min", 120_000_000_000),
        ("2h", 7_200_000_000_000),
        ("1day", 86_400_000_000_000),
        ("0.000000001s", 1),
    ],
)
def test_a_duration_is_read_exactly(text: str, expected_ns: int) -> None:
    assert units.parse_duration(text) == expected_ns


@given(st.integers(min_value=0, max_value=2**63 - 1))
def test_a_formatted_duration_reads_back(duration_ns: int) -> None:
    assert units.parse_duration(units.format_duration(duration_ns)) == duration_ns


def test_rates_lists_and_percentages_are_exact() -> None:
    assert [units.parse_at_most(f"1/{each}") // 10**9 for each in ("h", "12h", " 30min")] == [3600, 43_200, 1800]
    assert units.parse_cpus("7, 0,2-4,3") == (0, 2, 3, 4, 7)
    assert units.parse_percentage("99.999%") == Fraction(99_999, 100_000)
    assert whole_number("18446744073709551615") == 2**64 - 1


@given(st.sets(st.integers(min_value=0, max_value=300), min_size=1))
def test_a_formatted_cpu_list_reads_back(cpus: set[int]) -> None:
    assert units.parse_cpus(units.format_cpus(tuple(cpus))) == tuple(sorted(cpus))


LONG = "9" * 5_000
NONSENSE: dict[Callable[[str], object], tuple[str, ...]] = {
    units.parse_duration: ("", "us", "500", "-1ms", "1m", "1e3us", "1 2ms", "0.5ns", "1,5ms", "²us", f"{LONG}us"),
    units.parse_length: ("0us",),
    units.parse_at_most: ("", "h", "1", "2/h", "1/", "1/0s", "1/fortnight", "0/h", "1/h/h", f"1/{LONG}us"),
    units.parse_cpus: ("", "a", "1-", "3-1", "0,,1", "-1", "99999999", "65536", "0-3:2"),
    units.parse_percentage: ("0", "100", "-5", "half", "", "99,9", "nan", LONG),
}


@pytest.mark.parametrize("parse", NONSENSE, ids=lambda parse: parse.__name__)
def test_nonsense_is_refused_in_a_short_sentence(parse: Callable[[str], object]) -> None:
    for text in NONSENSE[parse]:
        with pytest.raises(UserError) as refused:
            parse(text)
        assert len(str(refused.value)) < 200 or parse is units.parse_percentage


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    number: int = 0


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    inner: tuple[Inner, ...] = ()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"[[inner]]\ncolour = 1", "there is no key 'colour' in inner[0]"),
        (b"[[inner]]\nnumber = 'x'", "inner[0].number: Expected `int`, got `str`"),
        (b"inner = ", "is not TOML: Invalid value (at end of document)"),
        (b"\xff", "is not TOML: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
    ],
)
def test_what_is_wrong_is_one_sentence(content: bytes, sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        toml.parse_toml(content, Outer, "a file")
    assert str(caught.value).removeprefix("a file").lstrip(": ") == sentence


FILES = {
    "__init__.py": "",
    "late.py": "ORDER = 20",
    "early.py": "ORDER = 10",
    "also_early.py": "ORDER = 10",
    "_helper.py": "raise RuntimeError('helpers are not plug-ins')",
}


@pytest.fixture
def fruits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    folder = tmp_path / "fruits"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("fruits")
    for name in [name for name in sys.modules if name.partition(".")[0] == "fruits"]:
        del sys.modules[name]


def test_plugins_are_the_files_of_a_folder(fruits: ModuleType) -> None:
    names = [module.__name__ for module in plugins.load_plugins(fruits)]
    assert names == ["fruits.also_early", "fruits.early", "fruits.late"], "by order, then by name"
    for name in ("plum", "_helper", "", "late.x", "../late"):
        with pytest.raises(UserError, match=r"^there is no fruit .*; there are: also-early, early, late$"):
            plugins.load_plugin(fruits, name)
    Path(fruits.__path__[0], "broken.py").write_text("import there_is_no_such_module")
    assert plugins.load_plugin(fruits, "late").ORDER == 20, "a broken one harms only who asks for it"
    with pytest.raises(ModuleNotFoundError):
        plugins.load_plugin(fruits, "broken")


def test_without_shared_memory_one_process_does_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bare chroot has no /dev/shm that a plain user may write to."""

    def refuse() -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(multiprocessing.get_context("fork"), "Lock", refuse)
    assert each_by_itself(lambda _: os.getpid(), [0, 1], 2, lambda _: 0) == [os.getpid()] * 2


def test_the_processes_of_a_killed_one_end_too() -> None:
    program = (
        "import os, time\nfrom rtproof.core.processes import each_by_itself\n"
        "work = lambda _: (os.write(1, b'%d\\n' % os.getpid()), time.sleep(600))\n"
        "each_by_itself(work, [0, 1], 2, str)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        try:
            workers = [killed.stdout.readline() for _ in range(2)]
        finally:
            killed.kill()
        # Their end of the pipe closes when they have ended.
        assert select.select([killed.stdout], [], [], 120)[0], workers
        assert killed.stdout.read() == ""


def kill_odd(number: int) -> int:
    if number % 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.mark.parametrize("workers", [2, 4])
def test_a_killed_process_costs_no_other_item_its_result(workers: int) -> None:
    found = each_by_itself(kill_odd, range(6), workers, str)
    assert found[::2] == [0, 2, 4]
    assert all("was killed" in str(each) for each in found[1::2])


@pytest.mark.parametrize("workers", [1, 3])
def test_an_error_costs_no_other_item_its_result(workers: int) -> None:
    found = each_by_itself(lambda n: 1 // n, [1, 0, 1], workers, lambda problem: type(problem).__name__)
    assert found == [1, "ZeroDivisionError", 1]


def clean_up_when_interrupted(place: Path) -> None:
    """The first item returns once the second one works; the second works until it is interrupted."""
    began, cleaned = place.with_name("began"), place.with_name("cleaned")
    if place.name == "first":
        while not began.exists():
            time.sleep(0.01)
        return
    try:
        began.touch()
        time.sleep(300)
    finally:
        cleaned.write_text(str(os.getpid()))


def test_an_interrupt_reaches_what_the_processes_do_and_waits_until_they_have_cleaned_up(tmp_path: Path) -> None:
    def told(item: Path, result: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        each_by_itself(clean_up_when_interrupted, [tmp_path / "first", tmp_path / "second"], 2, str, told)
    assert not Path("/proc", (tmp_path / "cleaned").read_text()).exists()


SECOND, MINUTE, HOUR = 10**9, 60 * 10**9, 3600 * 10**9


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (phrases.duration(1500), "1.5 us"),
        (phrases.duration(999_600_000), "999 ms"),
        (phrases.duration(MINUTE - 1), "59.9 s"),
        (phrases.duration(3.5 * SECOND * (1 - 1e-15)), "3.5 s"),
        (phrases.duration(HOUR - 1), "59 min 59 s"),
        (phrases.duration(96 * HOUR + 12 * MINUTE + 59 * SECOND), "96 h 12 min"),
        (phrases.duration(3 * HOUR, up=True), "3 h"),
        (phrases.duration(3 * HOUR + 1, up=True), "3 h 01 min"),
        (phrases.duration(999_600_000, up=True), "1.0 s"),
        (phrases.duration(334_100_000, up=True), "335 ms"),
        (phrases.value(-3835), "-3.835 us"),
        (phrases.value(231_412), "231.412 us"),
        (phrases.value(1_106_000), "1,106 us"),
        (phrases.value(402_666_123), "402.666 ms"),
        (phrases.percent(0.999), "99.9 %"),
        (phrases.instant(1_700_000_000 * SECOND, -50_000_000), "2023-11-14 22:13:19.950"),
        (phrases.instant(2**63, 2**70), "unknown"),
        (phrases.chance(0.004), "< 1 %"),
        (phrases.chance(1.0), "> 99 %"),
        (phrases.error(0.05 / 3), "1.67 %"),
        (phrases.sure(0.05 / 3), "98.33 %"),
        (phrases.error((1 - 0.999999) / 8), "0.0000125 %"),
        (phrases.sure((1 - 0.999999) / 8), "99.9999875 %"),
    ],
)
def test_rounding_never_claims_too_much(written: str, text: str) -> None:
    assert written == text


# What comes from a file, a record or an argument steers no terminal, on standard output and on standard error.


EVIL = "\x1b[2J\x1b]0;owned\x07\u202e"
STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f\u202e]")


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    out, err = capsys.readouterr()
    both: str = out + err
    assert not STEERS.search(both), repr(both)
    return both


@pytest.mark.parametrize(
    "words",
    [["show", f"a{EVIL}"], ["show", "x", "--limit", f"1{EVIL}"], ["run", "--load", f"a{EVIL}"], ["run", f"--x{EVIL}"]],
    ids=range(4),
)
def test_a_refused_argument(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert printed(capsys)


def test_what_a_record_and_the_name_of_its_file_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    info = msgspec.structs.replace(INFO, note=f"note{EVIL}", host=f"host{EVIL}")
    facts = {"load": f"cpu{EVIL}", "clocksource": f"tsc{EVIL}", "comm": f"name{EVIL}"}
    run = write_run(tmp_path / f"run{EVIL}", latencies(1, 1_000), info=info, facts=facts)
    other = write_run(tmp_path / "other", latencies(2, 1_000))
    for words in (
        ["show", str(run)],
        ["judge", str(run), "--limit", "1ms"],
        ["judge", str(run), "--limit", "1ms", "--markdown", "-"],
        ["compare", str(run), "--against", str(other), "--although-different", "--no-report"],
        ["history", str(run), "--no-report"],
        ["report", str(run), "--format", "text", "--output", "-"],
    ):
        assert main(words) != 2, words
        assert printed(capsys)


@given(st.text())
def test_nothing_that_steers_a_terminal_is_left(words: str) -> None:
    cleaned = clean(words)
    assert cleaned.isprintable()
    assert len(cleaned) == len(words)
    assert clean(cleaned) == cleaned


@pytest.mark.parametrize("words", ["", "-1", "1.5", " 1", "²", "\u0661", "1_000", "9" * 5_000, "0x10"])
def test_what_is_no_number(words: str) -> None:
    assert whole_number(words) is None


@pytest.mark.parametrize(
    ("name", "others", "short"),
    [
        ("at-most-ten", (), "at-most-ten"),
        ("run-of-the-night-01", ("run-of-the-night-02",), "run-...t-01"),
        ("run-of-the-middle-of-night-01", ("run-of-the-muddle-of-night-01",), "...he-mi..."),
        ("a-run-of-the-night", ("a-run-in-the-night-at", "some-night"), "a-ru...ight"),
        ("a" * 20, ("a" * 21,), "a" * 20),
    ],
)
def test_a_name_is_cut_as_far_as_it_can_still_be_told_from_others(
    name: str, others: tuple[str, ...], short: str
) -> None:
    assert distinct(name, (name, *others), 11) == short
