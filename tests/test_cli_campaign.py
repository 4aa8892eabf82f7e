# SPDX-License-Identifier: Apache-2.0
"""``rtproof run --profile`` from the command line to the files it leaves, with an agent that behaves as it is told."""

import errno
import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import fake_agent
import pytest
from test_cli_run import HOURLY, started

from rtproof.cli.main import main
from rtproof.experiment import local_runner, stored_runs
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
    out, err = capsys.readouterr()
    assert "[1/2] good, 0:00:01" in err
    assert "[2/2] late, 0:00:01" in err
    assert "cell 1 of 2 (good)" in err
    assert out.endswith("\nreport: a/report.html\n")
    assert "Shortened: 1.0 s instead of 10.0 s." in out
    left = ["campaign.json", "cells", "report.html", "result.json", "table.md"]
    assert sorted(path.name for path in Path("a").iterdir()) == left
    assert sorted(path.name for path in Path("a/cells").iterdir()) == ["good", "good.html", "late", "late.html"]
    assert '<a href="./cells/late.html">' in Path("a/report.html").read_text()
    assert "700.000" in Path("a/table.md").read_text()
    assert run_folder.open_run("a/cells/good").info is not None


def test_json_is_all_that_goes_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(profile("good", "refuses"), "--json", "--duration", "1s") == 2
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert (found["schema"], found["version"], found["exit_code"]) == ("rtproof.campaign", 2, 2)
    good, failed = found["cells"]
    assert good["results"][0]["analysis"]["schema"] == "rtproof.analysis"
    assert (good["length_ns"], good["article_length_ns"]) == (10**9, 10**10)
    assert failed["results"][0]["failure"] == "there is no CPU 99 on this machine"
    assert failed["results"][0]["analysis"] is None
    assert [each["rows"] for each in found["objections"]["article"]] == []
    assert "report: a/report.html" in err


def test_a_cell_that_fails_is_a_row_and_the_others_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(profile("refuses", "good", "dies", "writes_nonsense"), "--duration", "1s") == 2
    out, err = capsys.readouterr()
    assert out.count(": not measured") == 2  # above the table
    assert out.count("not measured") == 4  # and in it
    assert "rtproof: refuses: there is no CPU 99 on this machine" in err
    assert "dies: the agent was killed by SIGKILL" in " ".join(out.split())
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
    assert info.requirements == [HOURLY]
    Path("a").rename("b")
    capsys.readouterr()
    assert run(profile("good", requirement=LIMIT), "--duration", "1s", "--limit", "1us") == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "Changed: limit 1us at most once per 1h instead of 500us at most once per 1h." in out


def test_options_of_the_user_reach_the_agent_and_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    file = profile("tells_its_arguments")
    assert run(file, "--samples", "7", "--priority", "50", "--set", "colour=red", "--cpus", "0") == 0
    said = (Path("a") / "cells" / "tells-its-arguments" / "agent.log").read_text()
    for words in ("--samples 7 ", "--priority 50 ", "--cpus 0 ", "--probe timer:colour=red "):
        assert words in said
    assert "--duration" not in said
    out = capsys.readouterr().out
    assert "Shortened: 7 ms instead of 10.0 s." in out
    assert "Changed: priority 50 instead of the default." in out
    assert "Changed: colour red instead of green." in out


@pytest.mark.parametrize(
    ("behaviours", "sentence"),
    [
        (("refuses",), "there is no CPU 99 on this machine"),
        (
            ("refuses", "dies_early"),
            "no cell could be measured; refuses: there is no CPU 99 on this machine",
        ),
    ],
)
def test_where_nothing_can_be_measured_nothing_is_left(
    behaviours: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(profile(*behaviours), "--duration", "1s") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1] == f"rtproof: {sentence} ('rtproof profiles own' lists what --set takes)"
    assert not Path("a").exists()


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('columns = ["n", "colour"]', "the profile own: columns: there is no column 'colour'; there are: n, min"),
        ('extras = ["colour"]', "the profile own: extras: there is no section 'colour'; there are: matrix"),
        ('article = "moon"', "there is no article 'moon'; there are: akamina"),
        ('file = [{ name = "a", format = "moon" }]', "there is no exporter 'moon'; there are: app-csv, bins"),
        ('file = [{ name = "a", format = "bins", options = { moon = "1" } }]', "the format bins has no option 'moon'"),
        ('row = [{ when = { load = "good" }, keys = ["g99"] }]', "row: the article bootlin has no row 'g99'"),
    ],
)
def test_what_the_page_cannot_show_is_refused_before_anything_is_measured(
    line: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = profile("good")
    key = line.partition(" ")[0]
    kept = [each for each in file.read_text().splitlines() if not each.startswith(f"{key} =")]
    file.write_text("\n".join([line, *kept]))
    for command in (["run", "--output", "a", "--profile"], ["profiles"], ["lab", "profile"]):
        assert main([*command, str(file)]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("rtproof: ")
        assert sentence in err
        assert err.count("\n") == 1
    assert not Path("a").exists()


def test_folders_made_for_nothing_are_taken_back_and_others_stay() -> None:
    Path("mine").mkdir()
    file, agent = profile("refuses"), fake_agent.install(Path(), "refuses")
    for of_profile in ([], ["--profile", str(file)]):
        words = ["run", *of_profile, "--agent", str(agent), "--duration", "1s", "--output", "mine/new/a"]
        assert main(words) == 2
        assert list(Path("mine").iterdir()) == []


def test_a_folder_that_cannot_be_made_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a").touch()
    file, agent = profile("good", "late"), fake_agent.install(Path(), "does_its_load")
    assert main(["run", "--profile", str(file), "--agent", str(agent), "--output", "a/b"]) == 2
    assert capsys.readouterr().err == "rtproof: cannot make the folder a/b: Not a directory\n"


def test_a_setting_is_given_once(capsys: pytest.CaptureFixture[str]) -> None:
    twice = ["--set", "colour=red", "--set", "colour=blue"]
    for command in (["run", "--profile"], ["lab", "profile"]):
        assert main([*command, str(profile("good")), *twice]) == 2
        assert capsys.readouterr().err == "rtproof: the option 'colour' of the profile own is given twice\n"


def test_axes_choose_cells() -> None:
    assert run(profile("good", "refuses"), "--set", "load=good", "--duration", "1s") == 0


def test_results_of_other_tools_stand_beside(capsys: pytest.CaptureFixture[str]) -> None:
    Path("latency.txt").write_text(LATENCY)
    assert run(profile("good"), "--duration", "1s", "--given", "latency.txt") == 0
    out = capsys.readouterr().out
    assert "given:" in out
    assert "106.589" in out


def test_a_program_whose_output_nobody_can_read_costs_no_cell(capsys: pytest.CaptureFixture[str]) -> None:
    file = profile("good")
    file.write_text(file.read_text() + '[[program]]\nlabel = "theirs"\ncommand = ["echo", "{seconds}"]\n')
    assert run(file, "--duration", "1s") == 0
    assert "rtproof: theirs: a/given/1.txt is not the output of a tool" in capsys.readouterr().err
    assert Path("a/report.html").exists()


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


def of_ours(*behaviours: str, figures: str = FIGURES, more: str = ROW_OF_OURS) -> Path:
    """A profile in a folder, with an article beside it."""
    file = profile(*behaviours)
    Path("mine").mkdir()
    Path("mine/figures.toml").write_text(figures)
    moved = Path("mine/own.toml")
    moved.write_text(file.read_text().replace('"bootlin"', '"figures.toml"') + more)
    return moved


def test_an_article_of_the_user_s_own_stands_beside(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(of_ours("good", "late"), "--duration", "1s") == 0
    assert "| article: the old board | 5 | 3 | 17 |" in Path("a/table.md").read_text()
    out = capsys.readouterr().out
    assert "Source: Figures of our own, a report." in out
    found = json.loads(Path("a/result.json").read_text())
    assert found["profile"]["article"] == "figures"
    assert [[row["key"] for row in cell["article"]] for cell in found["cells"]] == [["old"], []]


@pytest.mark.parametrize(
    ("figures", "more", "sentence"),
    [
        (
            FIGURES.replace("mean", "maen"),
            ROW_OF_OURS,
            "mine/figures.toml, row 'old': there is no key 'maen' in numbers",
        ),
        (
            FIGURES.replace("17 us", "17"),
            ROW_OF_OURS,
            "figures.toml, row 'old': numbers 'latency': max: '17' is not a time",
        ),
        ("", ROW_OF_OURS, "mine/figures.toml: the key 'title' is missing"),
        (FIGURES, ROW_OF_OURS.replace("old", "new"), "row: the article figures has no row 'new'"),
        ("\0" * 9, "", "mine/figures.toml is not TOML"),
    ],
)
def test_a_wrong_article_of_the_user_s_own_is_one_sentence(
    figures: str, more: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(of_ours("good", figures=figures, more=more)) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert sentence in err
    assert not Path("a").exists()


def test_an_article_that_is_not_there_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    file = of_ours("good")
    Path("mine/figures.toml").unlink()
    assert run(file) == 2
    assert capsys.readouterr().err == "rtproof: cannot read mine/figures.toml: No such file or directory\n"
    Path("mine/figures.toml").mkdir()
    assert run(file) == 2
    assert capsys.readouterr().err == "rtproof: cannot read mine/figures.toml: Is a directory\n"


def test_the_example_of_the_manual_runs(capsys: pytest.CaptureFixture[str]) -> None:
    manual = (Path(__file__).parent.parent / "docs" / "profiles.md").read_text()
    for name, text in re.findall(r"`([a-z-]+\.toml)` [^`\n]*:\n\n```toml\n(.*?)```", manual, re.DOTALL):
        Path(name).write_text(text)
    assert sorted(path.name for path in Path().iterdir()) == ["winch-figures.toml", "winch.toml"]
    assert run(Path("winch.toml"), "--duration", "1s", behaviour="good") == 4
    out = " ".join(capsys.readouterr().out.split())
    assert "899,998 12 31 148" in out
    assert "Source: Control loop of the winch, our report 7, page 12." in out
    assert len(Path("a/cells/busy.bins.csv").read_text().splitlines()) == 503


def test_a_disk_that_is_full_costs_no_figure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(stored_runs, "write_new_file", full)
    assert run(profile("good", "late"), "--duration", "1s") == 2
    out, err = capsys.readouterr()
    assert "rtproof: no a/cells/good.html: No space left on device\n" in err
    assert err.endswith("rtproof: no space left on the disk while writing a/report.html\n")
    assert "700.000" in out
    assert {path.name for path in Path("a/cells").iterdir()} == {"good", "late"}


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
    assert "Files as the article kept them: cells/good.bins.csv, cells/good.hist.txt." in Path("a/table.md").read_text()


def test_ctrl_c_in_a_program_costs_no_cell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> Iterator[tuple[str, Path]]:
        Path("latency.txt").write_text(LATENCY)
        yield "theirs", Path("latency.txt")
        raise KeyboardInterrupt

    monkeypatch.setattr(local_runner, "run_programs", interrupted)
    assert run(profile("good"), "--duration", "1s") == 130
    out, err = capsys.readouterr()
    assert "106.589" in out
    assert err.endswith("rtproof: interrupted: 1 of 1 cells are measured and kept\n")
    assert Path("a/report.html").exists()


def test_ctrl_c_keeps_what_is_measured_and_says_so() -> None:
    file = profile("good", "until_interrupted", "late").absolute()
    agent = fake_agent.install(Path(), "does_its_load").absolute()
    arguments = ("--profile", str(file), "--agent", str(agent), "--output", "a", "--duration", "1h")
    with started(*arguments, wait_for="rtproof-agent: ready\n") as process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert process.returncode == 130
    assert "rtproof: interrupted: 2 of 3 cells are measured and kept" in err
    assert "not measured: the campaign was interrupted before" in out
    assert "it was interrupted; what it measured until then is kept and judged" in out
    end = run_folder.open_run("a/cells/until-interrupted").record.end
    assert end is not None
    assert end.reason.name == "INTERRUPTED"
    assert Path("a/report.html").exists()
    assert not Path("a/cells/late").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--profile", "moon"], "there is no profile 'moon'; there are: akamina"),
        (["--profile", "own.toml"], "own.toml: there is no key 'colour' in options"),
        (["--set", "chip=0"], "--set needs a --profile"),
        (["--given", "x"], "--given needs a --profile"),
        (
            ["--profile", "akamina", "--set", "chip=0"],
            "akamina has nothing to set named 'chip'; there are: load",
        ),
        (["--profile", "akamina", "--set", "load=all"], "has no load 'all'; there are: unloaded, loaded"),
        (["--profile", "toradex", "--given", "x"], "has no place for results of other tools"),
        (
            ["--profile", "akamina", "--load", "cpu"],
            "the cells unloaded and loaded of the profile akamina are the same",
        ),
        (["--profile", "akamina", "--duration", "1s", "--samples", "7"], "exclude each other"),
        (["--profile", "bootlin-gpio"], "the profile bootlin-gpio can't know chip, the chip of the two lines"),
        (["--profile", "bootlin-xenomai", "--given", "nowhere.txt"], "cannot read nowhere.txt"),
    ],
)
def test_nonsense_is_one_sentence_and_leaves_nothing(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("own.toml").write_text(
        PROFILE.format(values=VALUE.format(name="good"), requirement="", duration='1s"\ncolour="red')
    )
    agent = fake_agent.install(Path(), "good").absolute()
    assert main(["run", "--agent", str(agent), "--output", "a", *arguments]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert words in err
    assert not Path("a").exists()


def test_what_exists_is_refused_before_anything_runs(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a").mkdir()
    assert run(profile("good")) == 2
    assert "a exists already" in capsys.readouterr().err


def test_a_pipe_in_place_of_a_file_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """Reading it would wait for a writer."""
    os.mkfifo("pipe.toml")
    whole = ["run", "--profile", "pipe.toml"], ["profiles", "pipe.toml"], ["lab", "profile", "pipe.toml"]
    given = ["run", "--profile", "bootlin-xenomai", "--given", "pipe.toml"]
    for words in (*whole, given, ["matrix", "pipe.toml"]):
        assert main(words) == 2
        assert capsys.readouterr().err == "rtproof: cannot read pipe.toml: it is a pipe or a device and not a file\n"
    of_ours("good")
    Path("mine/figures.toml").unlink()
    os.mkfifo("mine/figures.toml")
    assert main(["run", "--profile", "mine/own.toml"]) == 2
    assert "cannot read mine/figures.toml: it is a pipe" in capsys.readouterr().err
