# SPDX-License-Identifier: Apache-2.0
"""``rtproof run --profile`` from the command line to the files it leaves, with an agent that behaves as it is told."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import fake_agent
import pytest
from test_cli_run import HOURLY, started

from rtproof.cli.main import main
from rtproof.record import run_folder

PROFILE = """
schema = 1
title = "Cells that behave as they are told"
article = "bootlin"
about = "What happens to each."
columns = ["n", "min", "max", "verdict"]
given = "results of other tools"
{requirement}
[options]
period = "1ms"
duration = "{duration}"
[[parameter]]
name = "colour"
help = "of the board"
default = "green"
[[way]]
name = "first"
[[axis]]
name = "load"
{values}
"""
VALUE = """
[[axis.value]]
name = "{name}"
options = {{ load = ["{name}"] }}
"""
LIMIT = '[requirement]\nlimit = "500us"\nat_most = "1/h"'
LATENCY = """== Sampling period: 1000 us
== Test mode: periodic user-mode task
RTD|      8.720|     32.945|    106.589|       0|     0|      8.720|    106.589
"""


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def profile(*behaviours: str, requirement: str = "", duration: str = "10s") -> Path:
    values = "".join(VALUE.format(name=name) for name in behaviours)
    file = Path("own.toml")
    file.write_text(PROFILE.format(values=values, requirement=requirement, duration=duration))
    return file


def run(file: Path, *arguments: str, behaviour: str = "does_its_load") -> int:
    agent = fake_agent.install(Path(), behaviour).absolute()
    return main(["run", "--profile", str(file), "--agent", str(agent), "--output", "a", *arguments])


def test_every_cell_is_a_run_folder_and_the_page_leads_to_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(profile("good", "late"), "--duration", "1s") == 0
    assert capsys.readouterr().out.endswith("\nreport: a/report.html\n")
    left = ["campaign.json", "cells", "report.html", "result.json", "table.md"]
    assert sorted(path.name for path in Path("a").iterdir()) == left
    assert sorted(path.name for path in Path("a/cells").iterdir()) == ["good", "good.html", "late", "late.html"]
    assert '<a href="./cells/late.html">' in Path("a/report.html").read_text()
    assert "700.000" in Path("a/table.md").read_text()
    assert run_folder.open_run("a/cells/good").info is not None


def test_a_profile_may_leave_the_probe_to_the_agent() -> None:
    file = profile("good")
    file.write_text(
        file.read_text().replace('[[parameter]]\nname = "colour"\nhelp = "of the board"\ndefault = "green"', "")
    )
    assert "colour" not in file.read_text()
    assert run(file, "--duration", "1s") == 0


def test_json_is_all_that_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(profile("good", "refuses"), "--json", "--duration", "1s") == 2
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["exit_code"]) == ("rtproof.campaign", 2)
    good, failed = found["cells"]
    assert (good["length_ns"], good["article_length_ns"]) == (10**9, 10**10)
    assert failed["results"][0]["failure"] == "there is no CPU 99 on this machine"
    assert failed["results"][0]["analysis"] is None


def test_the_observer_traces_each_cell_by_turns_as_long_as_its_length_allows() -> None:
    assert run(profile("tells_its_arguments"), "--observer", "--samples", "40000", "--trace", "seed=5") == 0
    said = (Path("a") / "cells" / "tells-its-arguments" / "agent.log").read_text()
    assert "--trace seed=5 --trace-blocks 500ms" in said


def test_a_cell_that_fails_is_a_row_and_the_others_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(profile("refuses", "good", "dies", "writes_nonsense"), "--duration", "1s") == 2
    assert "rtproof: refuses: there is no CPU 99 on this machine" in capsys.readouterr().err
    assert [path.name for path in sorted(Path("a/cells").glob("*.html"))] == ["dies.html", "good.html"]


@pytest.mark.parametrize(
    ("behaviours", "limit", "code"),
    [(("good",), "", 0), (("good",), LIMIT, 4), (("good", "late"), LIMIT, 1), (("late", "refuses"), LIMIT, 2)],
)
def test_the_exit_code_is_the_worst_of_all_cells(behaviours: tuple[str, ...], limit: str, code: int) -> None:
    assert run(profile(*behaviours, requirement=limit), "--duration", "1s", "--no-report") == code
    assert list(Path("a/cells").glob("*.html")) == []


def test_the_requirement_of_the_profile_is_fixed_before_the_run_and_the_user_s_wins(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run(profile("good", requirement=LIMIT), "--duration", "1s")
    info = run_folder.open_run("a/cells/good").info
    assert info is not None
    assert info.requirements == (HOURLY,)
    Path("a").rename("b")
    capsys.readouterr()
    assert run(profile("good", requirement=LIMIT), "--duration", "1s", "--limit", "1us") == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "Changed against the profile: limit is 1us, never exceeded instead of 500us at most once per 1h." in out


def test_options_of_the_user_reach_the_agent_and_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    file = profile("tells_its_arguments")
    assert run(file, "--samples", "7", "--priority", "50", "--set", "colour=red", "--cpus", "0") == 0
    said = (Path("a") / "cells" / "tells-its-arguments" / "agent.log").read_text()
    for words in ("--samples 7 ", "--priority 50 ", "--cpus 0 ", "--probe timer:colour=red "):
        assert words in said
    assert "--duration" not in said
    assert "Shortened: 7 ms instead of 10.0 s." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('columns = ["n", "colour"]', "the profile own: columns: there is no column 'colour'; there are: n, min"),
        ('extras = ["colour"]', "the profile own: extras: there is no section 'colour'; there are: thresholds"),
        ('article = "moon"', "there is no article 'moon'; there are: akamina"),
        ('file = [{ name = "a", format = "moon" }]', "there is no exporter 'moon'; there are: app-csv, bins"),
        ('file = [{ name = "a", format = "bins", options = { moon = "1" } }]', "the format bins has no option 'moon'"),
        ('row = [{ when = { load = "good" }, keys = ["g99"] }]', "row: the article bootlin has no row 'g99'"),
    ],
)
def test_what_the_page_cannot_show_is_refused_before_anything_is_measured(
    line: str, sentence: str, refused: Callable[..., str]
) -> None:
    file = profile("good")
    key = line.partition(" ")[0]
    kept = [each for each in file.read_text().splitlines() if not each.startswith(f"{key} =")]
    file.write_text("\n".join([line, *kept]))
    for command in (["run", "--output", "a", "--profile"], ["profiles"], ["lab", "profile"]):
        assert sentence in refused(*command, file)
    assert not Path("a").exists()


FIGURES = """
title = "Figures of our own"
source = "a report"
about = "Of a board."
[[row]]
key = "old"
label = "the old board"
section = "1"
board = "old"
kernel = "4.19"
numbers = [{ name = "latency", count = 5, min = "3 us", mean = "4.5 us", max = "17 us" }]
"""
ROW_OF_OURS = """
[[row]]
when = { load = "good" }
keys = ["old"]
"""


def of_ours(*behaviours: str) -> Path:
    """A profile in a folder, with an article beside it."""
    file = profile(*behaviours)
    Path("mine").mkdir()
    Path("mine/figures.toml").write_text(FIGURES)
    moved = Path("mine/own.toml")
    moved.write_text(file.read_text().replace('"bootlin"', '"figures.toml"') + ROW_OF_OURS)
    return moved


def test_an_article_of_the_user_s_own_stands_beside() -> None:
    assert run(of_ours("good", "late"), "--duration", "1s") == 0
    (line,) = (line for line in Path("a/table.md").read_text().splitlines() if line.startswith("|  | max | 17 us |"))
    largest = json.loads(Path("a/result.json").read_text())["cells"][0]["results"][0]["analysis"]["pooled"]["observed"]
    assert line.split(" | ")[3] == f"{largest['max_ns'] / 1_000:,.3f} us"
    found = json.loads(Path("a/result.json").read_text())
    assert found["profile"]["article"] == "figures"
    assert [[row["key"] for row in cell["article"]] for cell in found["cells"]] == [["old"], []]


BINS = """
[[bin]]
name = "latency"
width = "4us"
count = 3
file = "bins.csv"
[[bin]]
name = "interrupt latency"
stage = "irq"
width = "4us"
count = 3
file = "irq.csv"
[[file]]
name = "loops.csv"
format = "app-csv"
[[file]]
name = "hist.txt"
format = "hdr"
"""


def test_files_of_the_article_lie_beside_each_cell(capsys: pytest.CaptureFixture[str]) -> None:
    file = profile("good", "refuses")
    file.write_text(file.read_text() + BINS)
    assert run(file, "--duration", "1s", "--no-report") == 2
    err = capsys.readouterr().err
    assert sorted(path.name for path in Path("a/cells").iterdir()) == ["good", "good.bins.csv", "good.hist.txt"]
    assert Path("a/cells/good.bins.csv").read_text().splitlines()[1:] == [
        ",0,0",
        "0,4000,0",
        "4000,8000,0",
        "8000,12000,1000",
        "12000,,0",
    ]
    assert "no good.irq.csv: what was measured does not tell the interrupt latency\n" in err
    assert "no good.loops.csv: app-csv needs a run of the probe app" in err
    page = json.loads(Path("a/result.json").read_text())
    assert [cell["results"][0]["files"] for cell in page["cells"]] == [
        ["cells/good.bins.csv", "cells/good.hist.txt"],
        [],
    ]


def test_ctrl_c_keeps_what_is_measured_and_says_so() -> None:
    file = profile("good", "until_interrupted", "late").absolute()
    agent = fake_agent.install(Path(), "does_its_load").absolute()
    arguments = ("--profile", str(file), "--agent", str(agent), "--output", "a", "--duration", "1h")
    with started(*arguments, wait_for="rtproof-agent: ready\n") as process:
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert process.returncode == 130
    assert "rtproof: interrupted: 2 of 3 cells are measured and kept" in err
    end = run_folder.open_run("a/cells/until-interrupted").record.end
    assert end is not None
    assert end.reason.name == "INTERRUPTED"
    assert Path("a/report.html").exists()
    assert not Path("a/cells/late").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--profile", "moon"], "there is no profile 'moon'; there are: akamina"),
        (["--profile", "own.toml"], "own.toml: options: there is no key 'colour'"),
        (["--set", "chip=0"], "--set needs a --profile"),
        (["--given", "x"], "--given needs a --profile"),
        (["--profile", "akamina", "--set", "chip=0"], "akamina has nothing to set named 'chip'; there are: load"),
        (["--profile", "akamina", "--set", "load=all"], "has no load 'all'; there are: unloaded, loaded"),
        (["--profile", "akamina", "--set", "load=loaded", "--set", "load=unloaded"], "'load'"),
        (["--profile", "ten-ms", "--set", "policy=fifo", "--set", "load=idle"], "no cell with all"),
        (["--profile", "toradex", "--given", "x"], "has no place for results of other tools"),
        (["--profile", "akamina", "--load", "cpu"], "unloaded and loaded of the profile akamina are the same"),
        (["--profile", "bootlin-gpio"], "the profile bootlin-gpio can't know chip, the chip of the two lines"),
        (["--profile", "bootlin-xenomai", "--given", "nowhere.txt"], "cannot read nowhere.txt"),
    ],
)
def test_nonsense_is_one_sentence_and_leaves_nothing(
    arguments: list[str], words: str, refused: Callable[..., str]
) -> None:
    Path("own.toml").write_text(
        PROFILE.format(values=VALUE.format(name="good"), requirement="", duration='1s"\ncolour="red')
    )
    agent = fake_agent.install(Path(), "good").absolute()
    assert words in refused("run", "--agent", agent, "--output", "a", *arguments)
    assert not Path("a").exists()


def test_the_reason_that_every_cell_has_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    agent = str(fake_agent.install(Path(), "good").absolute())
    assert main(["run", "--profile", "ten-ms", "--target", "simulated", "--agent", agent, "--output", "a"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert sum("is tried instead" in line for line in lines) == len({line for line in lines if "is tried" in line}) == 3
    assert sum(line.startswith("[") for line in lines) == 5


def test_a_pipe_in_place_of_a_file_is_one_sentence(refused: Callable[..., str]) -> None:
    """Reading it would wait for a writer."""
    os.mkfifo("pipe.toml")
    whole = ["run", "--profile", "pipe.toml"], ["profiles", "pipe.toml"], ["lab", "profile", "pipe.toml"]
    given = ["run", "--profile", "bootlin-xenomai", "--given", "pipe.toml"]
    for words in (*whole, given, ["matrix", "pipe.toml"]):
        assert refused(*words) == "rtproof: cannot read pipe.toml: it is a pipe or a device and not a file\n"
    of_ours("good")
    Path("mine/figures.toml").unlink()
    os.mkfifo("mine/figures.toml")
    assert "cannot read mine/figures.toml: it is a pipe" in refused("run", "--profile", "mine/own.toml")
