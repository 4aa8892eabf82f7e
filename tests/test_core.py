# SPDX-License-Identifier: Apache-2.0

import importlib
import io
import multiprocessing
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
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
from rtproof.core.errors import RtproofError, UserError
from rtproof.core.printable import clean
from rtproof.core.processes import each_by_itself, in_processes
from rtproof.core.units import whole_number
from rtproof.experiment import guest_runner
from rtproof.run.live_view import LiveView


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


def test_a_bare_number_is_refused_with_the_units() -> None:
    with pytest.raises(UserError, match="has no unit: write one of ns, us, ms, s, min, h or d"):
        units.parse_duration("500")


@pytest.mark.parametrize(
    "text", ["", "us", "-1ms", "1m", "1e3us", "1 2ms", "1ms2", "0.5ns", "1,5ms", "300000000h", "٣ms", "²us"]
)
def test_nonsense_is_no_duration(text: str) -> None:
    with pytest.raises(UserError):
        units.parse_duration(text)


@given(st.integers(min_value=0, max_value=2**63 - 1))
def test_a_formatted_duration_reads_back(duration_ns: int) -> None:
    assert units.parse_duration(units.format_duration(duration_ns)) == duration_ns


def test_the_largest_exact_unit_is_written() -> None:
    assert [units.format_duration(n) for n in (1_000_000, 1_500, 0, 86_400 * 10**9)] == ["1ms", "1500ns", "0ns", "1d"]


@pytest.mark.parametrize(
    ("text", "expected_s"), [("1/h", 3600), ("1/day", 86_400), ("1/12h", 43_200), ("1 / 30min", 1800), ("1/s", 1)]
)
def test_a_rate_is_once_per_time(text: str, expected_s: int) -> None:
    assert units.parse_at_most(text) == expected_s * 1_000_000_000


@pytest.mark.parametrize("text", ["", "h", "1", "2/h", "1/", "1/0s", "1/fortnight", "0/h", "1/h/h"])
def test_other_rates_are_refused(text: str) -> None:
    with pytest.raises(UserError):
        units.parse_at_most(text)


def test_a_cpu_list_is_sorted_and_unique() -> None:
    assert units.parse_cpus("7, 0,2-4,3") == (0, 2, 3, 4, 7)


@pytest.mark.parametrize("text", ["", "a", "1-", "3-1", "0,,1", "-1", "99999999", "65536", "0-3:2"])
def test_nonsense_is_no_cpu_list(text: str) -> None:
    with pytest.raises(UserError):
        units.parse_cpus(text)


@given(st.sets(st.integers(min_value=0, max_value=300), min_size=1))
def test_a_formatted_cpu_list_reads_back(cpus: set[int]) -> None:
    assert units.parse_cpus(units.format_cpus(tuple(cpus))) == tuple(sorted(cpus))


def test_a_percentage_is_exact() -> None:
    assert units.parse_percentage("99.999%") == Fraction(99_999, 100_000)
    assert units.parse_percentage("50") == Fraction(1, 2)


@pytest.mark.parametrize("text", ["0", "100", "101", "-5", "half", "", "99,9", "nan"])
def test_nonsense_is_no_percentage(text: str) -> None:
    with pytest.raises(UserError):
        units.parse_percentage(text)


def test_a_length_is_longer_than_nothing() -> None:
    assert units.parse_length("1ms") == 1_000_000
    with pytest.raises(UserError, match="'0us' must be longer than 0"):
        units.parse_length("0us")


@pytest.mark.parametrize("text", ["9" * 5_000 + "us", "0." + "0" * 5_000 + "1s", "1" * 61 + "ns"])
def test_a_duration_of_thousands_of_digits_is_a_short_sentence(text: str) -> None:
    for parse in (units.parse_duration, units.parse_length, lambda words: units.parse_at_most(f"1/{words}")):
        with pytest.raises(UserError) as refused:
            parse(text)
        assert len(str(refused.value)) < 200


def test_a_percentage_of_thousands_of_digits_is_refused() -> None:
    with pytest.raises(UserError, match="is not a percentage"):
        units.parse_percentage("9" * 5_000)


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    number: int = 0


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    inner: tuple[Inner, ...] = ()


def test_a_file_becomes_an_object(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text("[[inner]]\nnumber = 7\n")
    assert toml.read_toml(file, Outer) == Outer((Inner(7),))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"[[inner]]\ncolour = 1", "a file: there is no key 'colour' in inner[0]"),
        (b"colour = 1", "a file: there is no key 'colour'"),
        (b"[[inner]]\nnumber = 'x'", "a file: inner[0].number: Expected `int`, got `str`"),
        (b"inner = 1", "a file: inner: Expected `array`, got `int`"),
        (b"inner = ", "a file is not TOML: Invalid value (at end of document)"),
        (b"\xff", "a file is not TOML: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
    ],
)
def test_what_is_wrong_is_one_sentence(content: bytes, sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        toml.parse_toml(content, Outer, "a file")
    assert str(caught.value) == sentence


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


def test_the_files_of_the_folder_are_the_plugins(fruits: ModuleType) -> None:
    assert plugins.plugin_names(fruits) == ["also-early", "early", "late"]


def test_a_new_file_is_a_new_plugin(fruits: ModuleType) -> None:
    Path(fruits.__path__[0], "added.py").write_text("ORDER = 15")
    assert plugins.load_plugin(fruits, "added").ORDER == 15


def test_order_first_then_name(fruits: ModuleType) -> None:
    assert [module.__name__ for module in plugins.load_plugins(fruits)] == [
        "fruits.also_early",
        "fruits.early",
        "fruits.late",
    ]


@pytest.mark.parametrize("name", ["plum", "_helper", "", "late.x", "../late"])
def test_a_wrong_name_is_answered_with_the_right_ones(fruits: ModuleType, name: str) -> None:
    with pytest.raises(UserError, match=r"^there is no fruit .*; there are: also-early, early, late$"):
        plugins.load_plugin(fruits, name)


def test_a_broken_plugin_harms_only_who_asks_for_it(fruits: ModuleType) -> None:
    Path(fruits.__path__[0], "broken.py").write_text("import there_is_no_such_module")
    assert plugins.load_plugin(fruits, "late").ORDER == 20
    with pytest.raises(ModuleNotFoundError):
        plugins.load_plugin(fruits, "broken")


def test_items_keep_their_order_and_are_worked_on_elsewhere() -> None:
    found = list(in_processes(lambda n: (n, os.getpid()), range(6), 3))
    assert [n for n, _ in found] == list(range(6))
    assert os.getpid() not in {process for _, process in found}


@pytest.mark.parametrize(("items", "workers"), [(range(5), 1), (range(1), 4), (range(0), 4)])
def test_nothing_is_forked_for_one(items: range, workers: int) -> None:
    assert {*in_processes(lambda _: os.getpid(), items, workers)} <= {os.getpid()}


def test_an_error_of_the_work_comes_through() -> None:
    with pytest.raises(ZeroDivisionError):
        list(in_processes(lambda n: 1 // n, [1, 0], 2))


def test_without_shared_memory_one_process_does_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bare chroot has no /dev/shm that a plain user may write to."""

    def refuse() -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(multiprocessing.get_context("fork"), "Lock", refuse)
    assert {*in_processes(lambda _: os.getpid(), range(4), 2)} == {os.getpid()}
    assert each_by_itself(lambda _: os.getpid(), [0, 1], 2, lambda _: 0) == [os.getpid()] * 2


def test_the_processes_of_a_killed_one_end_too() -> None:
    program = (
        "import os, time\nfrom rtproof.core.processes import in_processes\n"
        "for each in in_processes(lambda _: print(os.getpid(), flush=True), [0, 1], 2): time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        workers = [int(killed.stdout.readline()) for _ in range(2)]
        time.sleep(0.5)
        killed.kill()
        # Their end of the pipe closes when they have ended.
        assert select.select([killed.stdout], [], [], 30)[0], workers
        assert killed.stdout.read() == ""


def test_a_killed_process_is_one_sentence() -> None:
    with pytest.raises(RtproofError, match="too little memory"):
        list(in_processes(lambda _: os.kill(os.getpid(), signal.SIGKILL), [1, 2], 2))


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


SECOND, MINUTE, HOUR = 10**9, 60 * 10**9, 3600 * 10**9


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (12, "12 ns"),
        (1500, "1.5 us"),
        (350_000_000, "350 ms"),
        (999_600_000, "999 ms"),
        (1_999_999_999, "1.9 s"),
        (MINUTE - 1, "59.9 s"),
        (3.5 * SECOND * (1 - 1e-15), "3.5 s"),
        (SECOND, "1.0 s"),
        (20 * SECOND, "20.0 s"),
        (9 * MINUTE + 5 * SECOND, "9 min 05 s"),
        (HOUR - 1, "59 min 59 s"),
        (HOUR, "1 h"),
        (96 * HOUR + 12 * MINUTE + 59 * SECOND, "96 h 12 min"),
        (24_000 * HOUR, "24,000 h"),
    ],
)
def test_durations(ns: float, text: str) -> None:
    assert phrases.duration(ns) == text


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (3 * HOUR - 1, "3 h"),
        (3 * HOUR, "3 h"),
        (3 * HOUR + 1, "3 h 01 min"),
        (MINUTE + 1, "1 min 01 s"),
        (MINUTE - 1, "1 min"),
        (999_600_000, "1.0 s"),
        (999_001, "1 ms"),
        (334_100_000, "335 ms"),
        (SECOND + 1, "1.1 s"),
    ],
)
def test_what_a_run_needs_is_rounded_up(ns: int, text: str) -> None:
    assert phrases.duration(ns, up=True) == text


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (-3835, "-3.835 us"),
        (850, "850 ns"),
        (231_412, "231.412 us"),
        (200_000, "200 us"),
        (1_106_000, "1,106 us"),
        (402_666_123, "402.666 ms"),
        (30 * SECOND, "30 s"),
    ],
)
def test_values_are_exact_where_it_matters(ns: int, text: str) -> None:
    assert phrases.value(ns) == text


def test_quantities() -> None:
    assert phrases.quantity(1, "episode") == "1 episode"
    assert phrases.quantity(0, "episode") == "0 episodes"
    assert phrases.quantity(196_190_335, "activation") == "196,190,335 activations"


@pytest.mark.parametrize(("share", "text"), [(0.95, "95 %"), (0.999, "99.9 %"), (0.05, "5 %")])
def test_percentages(share: float, text: str) -> None:
    assert phrases.percent(share) == text


@pytest.mark.parametrize(
    ("confidence", "limits", "error", "sure"),
    [
        (0.95, 1, "5 %", "95 %"),
        (0.5, 1, "50 %", "50 %"),
        (0.95, 2, "2.5 %", "97.5 %"),
        (0.95, 3, "1.67 %", "98.33 %"),
        (0.95, 7, "0.715 %", "99.285 %"),
        (0.999999, 1, "0.0001 %", "99.9999 %"),
        (0.999999, 8, "0.0000125 %", "99.9999875 %"),
    ],
)
def test_a_probability_of_error_is_never_rounded_down(confidence: float, limits: int, error: str, sure: str) -> None:
    """That of 8 limits at 99.9999 % was called 0 % once."""
    alpha = (1 - confidence) / limits
    assert (phrases.error(alpha), phrases.sure(alpha)) == (error, sure)


def test_a_time_of_day() -> None:
    assert phrases.instant(1_700_000_000 * SECOND, 1_234_567_890) == "2023-11-14 22:13:21.234"
    assert phrases.instant(1_700_000_000 * SECOND, -50_000_000) == "2023-11-14 22:13:19.950"
    assert phrases.instant(2**63, 2**70) == "unknown"


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "< 1 %"), (0.004, "< 1 %"), (0.016, "2 %"), (0.45, "45 %"), (0.996, "> 99 %"), (1.0, "> 99 %")],
)
def test_a_forecast_is_never_certain(share: float, text: str) -> None:
    assert phrases.chance(share) == text


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
    [
        ["show", f"a{EVIL}"],
        ["judge", f"a{EVIL}"],
        ["show", "x", "--limit", f"1{EVIL}"],
        [f"a{EVIL}"],
        ["export", "x", "--format", f"a{EVIL}"],
        ["loads", f"a{EVIL}"],
        ["profiles", f"a{EVIL}"],
        ["run", "--load", f"a{EVIL}"],
        ["run", f"--x{EVIL}"],
        ["lab", "check", "--kernel", f"a{EVIL}", "--max", "1us"],
    ],
    ids=lambda words: words[0].partition("\x1b")[0],
)
def test_a_refused_argument(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert printed(capsys)


def test_what_a_record_and_the_name_of_its_file_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import msgspec

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


def test_a_load_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    definition = tmp_path / "evil.toml"
    text = 'name = "evil"\nhelp = "burns\\u001b[2J cycles"\nsource = "ours"\n[[parts]]\nload = "cpu"\n'
    definition.write_text(text)
    assert main(["loads", str(definition)]) == 0
    assert "cycles" in printed(capsys)


def test_what_goes_on_meanwhile(capsys: pytest.CaptureFixture[str]) -> None:
    guest_runner.print_progress(f"cell{EVIL}")
    assert "cell" in printed(capsys)


def test_a_sentence_of_the_agent_above_the_live_view() -> None:
    out = io.StringIO()
    LiveView(out, "20 s", on_terminal=False).say(f"load{EVIL}")
    assert not STEERS.search(out.getvalue())
    assert out.getvalue().startswith("load")


@given(st.text())
def test_nothing_that_steers_a_terminal_is_left(words: str) -> None:
    cleaned = clean(words)
    assert cleaned.isprintable()
    assert len(cleaned) == len(words)
    assert clean(cleaned) == cleaned


def test_words_stay_as_they_are() -> None:
    assert clean("Überläufe: 5 µs\tand\nmore \x1b[31m\u202e") == "Überläufe: 5 µs and more \ufffd[31m\ufffd"


@pytest.mark.parametrize("words", ["", "-1", "1.5", " 1", "²", "\u0661", "1_000", "9" * 5_000, "0x10"])
def test_what_is_no_number(words: str) -> None:
    assert whole_number(words) is None


def test_what_is_a_number() -> None:
    assert (whole_number("007"), whole_number("18446744073709551615")) == (7, 2**64 - 1)


def test_a_name_that_may_have_been_meant_is_named() -> None:
    known = ["csv", "parquet"]
    assert phrases.unknown_name("exporter", "prquet", known) == (
        "there is no exporter 'prquet' (did you mean 'parquet'?); there are: csv, parquet"
    )
    assert phrases.unknown_name("exporter", "xls", known, ", or a path") == (
        "there is no exporter 'xls'; there are: csv, parquet, or a path"
    )
