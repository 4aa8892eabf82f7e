# SPDX-License-Identifier: Apache-2.0
"""A campaign's page made again from its folder: the same bytes, or one sentence."""

import errno
import hashlib
import json
import shutil
import signal
from collections.abc import Callable
from contextlib import chdir
from dataclasses import replace
from pathlib import Path

import fake_agent
import pytest
from test_cli_campaign import BINS, LATENCY, LIMIT, profile, run
from test_cli_run import started

from rtproof import articles, profiles
from rtproof.cli.main import main
from rtproof.experiment import campaign_folder
from rtproof.experiment.campaign_folder import StoredCampaign
from rtproof.experiment.target_runner import CellEnd
from rtproof.report.blocks import Table
from rtproof.report.pages.campaign_cells import OtherToolResult

MADE = ("report.html", "result.json", "table.md")


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of two cells, made once; the tests below spoil copies."""
    place = tmp_path_factory.mktemp("campaign")
    with chdir(place):
        assert run(profile("good", "late", requirement=LIMIT), "--duration", "1s") == 1
    return place / "a"


@pytest.fixture
def copied(campaign: Path) -> None:
    shutil.copytree(campaign, "a")


def taken_away(folder: Path) -> dict[str, bytes]:
    """What the run wrote of itself, which is gone then."""
    found = {name: (folder / name).read_bytes() for name in MADE}
    for name in MADE:
        (folder / name).unlink()
    return found


def assert_remade(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In its place, and with nothing but the folder elsewhere, which is all that the JSON may tell besides."""
    wrote = taken_away(folder)
    other = Path("copied/elsewhere")
    shutil.copytree(folder, other)
    capsys.readouterr()
    assert main(["report", str(other)]) == 0
    assert sorted(capsys.readouterr().out.split()) == [str(other / name) for name in MADE]
    for name, content in wrote.items():
        assert (other / name).read_bytes().replace(b'"copied/elsewhere/', b'"a/') == content, name
    assert main(["report", str(folder)]) == 0
    assert taken_away(folder) == wrote


def test_everything_is_as_the_run_wrote_it(capsys: pytest.CaptureFixture[str]) -> None:
    file = profile("good", "refuses", "late", "dies", "writes_nonsense", requirement=LIMIT)
    file.write_text(file.read_text() + BINS)
    Path("latency.txt").write_text(LATENCY)
    more = ("--set", "colour=red", "--given", "latency.txt", "--percentile", "12.5", "--priority", "50")
    assert run(file, "--duration", "1s", *more) == 2
    for gone in (file, Path("latency.txt")):
        gone.unlink()
    assert_remade(Path("a"), capsys)


def test_a_campaign_that_was_interrupted_is_remade(capsys: pytest.CaptureFixture[str]) -> None:
    file = profile("good", "until_interrupted", "late").absolute()
    agent = fake_agent.install(Path(), "does_its_load").absolute()
    arguments = ("--profile", str(file), "--agent", str(agent), "--output", "a", "--duration", "1h")
    with started(*arguments, wait_for="rtproof-agent: ready\n") as process:
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert process.returncode == 130
    assert_remade(Path("a"), capsys)


def test_what_a_host_that_stopped_left_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It never came to its page, but had written down each cell that had ended."""
    whole = campaign_folder.write_campaign_file

    def until_it_stops(folder: Path, campaign: campaign_folder.StoredCampaign) -> None:
        if len(campaign.cells) == 1:
            whole(folder, campaign)

    monkeypatch.setattr(campaign_folder, "write_campaign_file", until_it_stops)
    assert run(profile("good", "late", "good-too"), "--duration", "1s") in (0, 2)
    taken_away(Path("a"))
    shutil.rmtree("a/cells/good-too", ignore_errors=True)
    capsys.readouterr()
    assert main(["show", "a", "--all"]) == 2
    out = " ".join(capsys.readouterr().out.split())
    assert "good-too: not measured: the campaign ended before" in out
    assert "late: the campaign ended while it was measured" in out
    assert main(["report", "a"]) == 0
    assert Path("a/report.html").exists()


def test_show_has_the_answer_of_the_run_and_ends_with_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(profile("good", "late", requirement=LIMIT), "--duration", "1s") == 1
    printed = capsys.readouterr().out
    assert main(["show", "a"]) == 1
    assert capsys.readouterr().out.startswith("REFUTED   1 of 2 cells. late: ")
    assert main(["show", "a", "--all"]) == 1
    answer = printed.partition("\n\n")[0]
    assert answer
    assert answer in capsys.readouterr().out
    assert main(["show", "a", "--json"]) == 1
    assert capsys.readouterr().out.encode() == Path("a/result.json").read_bytes()


@pytest.mark.usefixtures("copied")
def test_only_what_is_missing_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a/table.md").unlink()
    Path("a/report.html").write_text("mine")
    capsys.readouterr()
    assert main(["report", "a"]) == 0
    assert capsys.readouterr().out == "a/table.md\n"
    assert Path("a/report.html").read_text() == "mine"
    assert main(["report", "a"]) == 2
    assert "has its report.html, table.md, result.json already" in capsys.readouterr().err


@pytest.mark.usefixtures("copied")
def test_a_report_takes_sections_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["report", "a", "--format", "markdown", "--section", "conditions", "--output", "-"]) == 0
    headings = [line for line in capsys.readouterr().out.splitlines() if line.startswith("## ")]
    assert len(headings) == 1
    for more, sentence in (
        (["--section", "moon", "-o", "-"], "there is no section 'moon'; there are: result,"),
        (["--section", "conditions"], "say with --output where another goes"),
        (["--section", "conditions", "--format", "json", "-o", "-"], "the JSON of a profile has no sections"),
    ):
        assert main(["report", "a", *more]) == 2
        assert sentence in capsys.readouterr().err


def flip(place: Path) -> None:
    """One bit of the last byte."""
    content = bytearray(place.read_bytes())
    content[-1] ^= 1
    place.write_bytes(content)


def edit(before: str, after: str) -> None:
    place = Path("a/campaign.json")
    text = place.read_text()
    assert before in text
    place.write_text(text.replace(before, after, 1))


def newer() -> None:
    edit('"version": 2', '"version": 3')


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda: Path("a/campaign.json").unlink(), "a has no campaign.json, so its page can't be made again"),
        (lambda: edit("posix", "xisop"), "a/campaign.json has changed since the run"),
        (lambda: Path("a/campaign.json").write_bytes(b"\xff"), "a/campaign.json is not what a campaign leaves"),
        (lambda: Path("a/campaign.json").write_text("[" * 100_000), "a/campaign.json is not what a campaign leaves"),
        (newer, "a/campaign.json has version 3, newer than 2"),
    ],
)
@pytest.mark.usefixtures("copied")
def test_a_folder_that_is_not_as_it_was_left_is_one_sentence(
    spoil: Callable[[], None], sentence: str, refused: Callable[..., str]
) -> None:
    spoil()
    for name in MADE:
        Path("a", name).unlink()
    for command in ("report", "show"):
        assert sentence in refused(command, "a")
    assert not any(Path("a", name).exists() for name in MADE)


@pytest.mark.parametrize(
    ("spoil", "sentence", "lost"),
    [
        (lambda: shutil.rmtree("a/cells"), "cannot read a/cells/good/run.rtrec: No such file", 2),
        (lambda: flip(Path("a/cells/late/run.rtrec")), "a/cells/late has changed since the campaign", 1),
    ],
)
@pytest.mark.usefixtures("copied")
def test_a_cell_that_is_not_as_it_was_left_is_shown_and_makes_no_page(
    spoil: Callable[[], None],
    sentence: str,
    lost: int,
    refused: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    spoil()
    for name in MADE:
        Path("a", name).unlink()
    assert sentence in refused("report", "a")
    assert not any(Path("a", name).exists() for name in MADE)
    assert main(["show", "a"]) == 2
    out = capsys.readouterr().out
    assert sentence in out
    assert out.count("ERROR      no result") + out.count("ERROR    no result") == lost
    assert main(["show", "a", "--json"]) == 2
    assert sentence in capsys.readouterr().out


@pytest.mark.usefixtures("copied")
def test_cells_without_their_campaign_are_shown_where_the_refusal_says(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a/campaign.json").unlink()
    assert main(["show", "a"]) == 2
    command = capsys.readouterr().err.split("'rtproof ")[1].partition("'")[0]
    assert main(command.split()) == 1
    rows = capsys.readouterr().out.split("\n\n")[1].splitlines()
    assert [line.split()[0] for line in rows] == ["run", "late", "good"]
    shutil.rmtree("a/cells")
    Path("a/cells").mkdir()
    assert main(["show", "a"]) == 2
    assert capsys.readouterr().err.endswith("its page can't be made again\n")


@pytest.mark.usefixtures("copied")
def test_the_runs_of_a_campaign_are_judged_each_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither what the campaign keeps of itself nor its page is taken for another run."""
    assert main(["judge", "a"]) == 1
    assert "REFUTED - the worst of 2 runs" in capsys.readouterr().out
    assert main(["history", "a", "--json", "--no-report"]) == 0
    out = capsys.readouterr().out
    assert [name in out for name in ("a/cells/good", "a/cells/late", "campaign.json")] == [True, True, False]


# ``campaign.json`` gives back what was written, to the type of every number, and nothing but that.


CELLS = (
    CellEnd("a", "0" * 64, 1, ("no module",), "it was interrupted", True, ("cells/a.csv",)),
    CellEnd("b", failure="é"),
    CellEnd("b", "1" * 64, 0, system="debian-6.1 preempt=none"),
)
MAKING = (Table("What made it", ("what", "value"), (("QEMU", "10.0"),)),)
GIVEN = (OtherToolResult("their latency", "latency", 3, 1, 2.5, None, ("a note",)),)


def campaign_cli_campaignfile(name: str = "toradex") -> StoredCampaign:
    profile = profiles.load(name)
    return StoredCampaign(
        "rtproof run", profile, articles.load(profile.article), "a board", (0.5, 0.99999), CELLS, GIVEN, MAKING
    )


@pytest.mark.parametrize("name", profiles.names())
def test_every_profile_and_article_comes_back(name: str, tmp_path: Path) -> None:
    wrote = campaign_cli_campaignfile(name)
    campaign_folder.write_campaign_file(tmp_path, wrote)
    found = campaign_folder.read_campaign_file(tmp_path)
    assert found == wrote
    values = [
        [(type(figure.value), type(figure.step)) for row in each.article.rows for figure in row.figures.values()]
        for each in (found, wrote)
    ]
    assert values[0] == values[1]
    assert values[0]
    assert [repr(each) for each in found.given] == [repr(each) for each in wrote.given]


def test_a_full_disk_leaves_the_last_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign_folder.write_campaign_file(tmp_path, campaign_cli_campaignfile())

    def full(_opened: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("rtproof.core.files.os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        campaign_folder.write_campaign_file(tmp_path, replace(campaign_cli_campaignfile(), cells=()))
    assert campaign_folder.read_campaign_file(tmp_path).cells == CELLS


@pytest.mark.usefixtures("copied")
@pytest.mark.parametrize("key", ["..", "a/b", "k" * 300, "", "\x00"])
def test_the_name_of_a_cell_is_one_of_a_file_in_the_folder(key: str, refused: Callable[..., str]) -> None:
    place = Path("a/campaign.json")
    told = json.loads(place.read_text())
    for cell in (*told["campaign"]["profile"]["cells"], *told["campaign"]["cells"]):
        cell["key"] = key if cell["key"] == "good" else cell["key"]
    packed = json.dumps(told["campaign"], ensure_ascii=False, separators=(",", ":"))
    told["sha256"] = hashlib.sha256(packed.encode()).hexdigest()
    place.write_text(json.dumps(told))
    assert "no cell can have the name" in refused("show", "a")
