# SPDX-License-Identifier: Apache-2.0
"""``show``, ``report`` and ``export``: everything that reads a run and adds nothing to it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import fake_agent
import pytest

from rtproof import exporters
from rtproof.cli.main import main
from rtproof.core import plugins
from rtproof.record import run_folder
from rtproof.record.writing import RecordWriter
from rtproof.report import formats

LIMIT = ["--limit", "500us"]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run whose 1000 activations were 700 us late, with a limit of 500 us fixed before it."""
    monkeypatch.chdir(tmp_path)
    folder = Path("a")
    agent = fake_agent.install(Path(), "late").absolute()
    arguments = ["--agent", str(agent), "--duration", "1s", "--no-report", "--output", str(folder), *LIMIT]
    assert main(["run", *arguments]) == 1
    return folder


@pytest.fixture(autouse=True)
def nothing_is_added(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whatever a test does, the run folder has the same bytes afterwards."""
    folder = request.getfixturevalue("run") if "run" in request.fixturenames else None
    before = contents(folder)
    yield
    assert contents(folder) == before


def contents(folder: Path | None) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.absolute().iterdir()} if folder else {}


def verdict(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    found: dict[str, object] = json.loads(capsys.readouterr().out)["verdict"]
    return found


def test_show_has_the_verdict_of_the_run(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(run)]) == 1
    assert "REFUTED" in capsys.readouterr().out.splitlines()[0]


def test_a_bare_record_has_no_requirement(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["show", str(run / "run.rtrec"), "--json"]) == 0
    assert verdict(capsys)["state"] == "NOT ASKED"


def test_the_same_limit_again_is_no_later_choice(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["show", str(run), "--json", *LIMIT]) == 1
    assert verdict(capsys)["state"] == "REFUTED"


@pytest.mark.parametrize("later", [["--limit", "600us"], [*LIMIT, "--at-most", "1/s"], [*LIMIT, "--confidence", "0.9"]])
def test_a_limit_chosen_after_the_data_decides_nothing(
    run: Path, later: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["show", str(run), "--json", *later]) == 4
    found = verdict(capsys)
    assert found["state"] == "UNDECIDED"
    assert "the limit was chosen after the data" in str(found["reasons"])


def test_json_and_text_name_the_doubt(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    main(["show", str(run), "--limit", "2ms", "--json"])
    codes = [doubt["code"] for doubt in json.loads(capsys.readouterr().out)["doubts"]]
    assert "limit-after-data" in codes
    main(["show", str(run), "--limit", "2ms"])
    assert "measure again with the limit given to rtproof run" in " ".join(capsys.readouterr().out.split())


def test_a_percentile_may_be_asked_for(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    main(["show", str(run), "--json", "--percentile", "99.95", "--percentile", "99.99999"])
    shares = [one["share_ratio"] for one in json.loads(capsys.readouterr().out)["pooled"]["observed"]["quantiles"]]
    assert shares == sorted([0.5, 0.9, 0.99, 0.999, 0.9995, 0.9999, 0.99999, 0.999999, 0.9999999])
    main(["report", str(run), "--format", "text", "--output", "-", "--percentile", "99.99999"])
    assert "99.99999 %" in capsys.readouterr().out


@pytest.mark.parametrize("name", plugins.plugin_names(formats))
def test_every_report_format(run: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["report", str(run), "--format", name]) == 0
    suffix = plugins.load_plugin(formats, name).SUFFIX
    assert capsys.readouterr().out == f"a{suffix}\n"
    assert Path(f"a{suffix}").stat().st_size > 100


def test_a_report_names_the_command_that_repeats_it(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["report", str(run), "--format", "text", "--output", "-"]) == 0
    assert "rtproof run --agent" in " ".join(capsys.readouterr().out.split())


def test_a_report_is_never_written_over(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.html").write_text("precious")
    assert main(["report", str(run)]) == 2
    assert "a.html exists already" in capsys.readouterr().err
    assert Path("a.html").read_text() == "precious"


@pytest.mark.parametrize("name", plugins.plugin_names(exporters))
def test_every_export_format(run: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    if name == "parquet":
        pytest.importorskip("duckdb")
    capsys.readouterr()
    exporter = plugins.load_plugin(exporters, name)
    if hasattr(exporter, "NEEDS"):
        assert main(["export", str(run), "--format", name]) == 2
        assert capsys.readouterr().err.startswith("rtproof: ")
        assert not Path("a" + exporter.SUFFIX).exists()
        return
    assert main(["export", str(run), "--format", name]) == 0
    path = Path("a" + exporter.SUFFIX)
    assert capsys.readouterr().out.startswith(f"{path}: ")
    assert path.stat().st_size > 100


def test_options_reach_the_export_format(run: Path) -> None:
    arguments = ["-o", "width=100us", "-o", "count=8", "--output", "b.csv"]
    assert main(["export", str(run), "--format", "bins", *arguments]) == 0
    assert "700000,800000,1000" in Path("b.csv").read_text().splitlines()


def test_files_from_a_copied_record_lie_beside_it(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copied.rtrec"
    copy.write_bytes((run / "run.rtrec").read_bytes())
    assert main(["export", str(copy), "--format", "cyclictest"]) == 0
    assert (tmp_path / "copied.hist.txt").exists()


def test_the_current_folder_may_be_the_run(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(run)
    assert main(["report", ".", "--format", "text"]) == 0
    assert Path("../a.txt").exists()
    monkeypatch.chdir("..")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["show", "nowhere"], "nowhere"),
        (["show", "a", "--limit", "soon"], "is not a duration"),
        (["show", "a", "--percentile", "100"], "is not a percentage above 0 and below 100"),
        (["report", "a", "--format", "pdf"], "there is no 'pdf' in formats; there are: html, json, markdown, text"),
        (["report", "a", "--format", "text", "--output", "no/such/folder/x"], "no/such/folder/x: no such file"),
        (["export", "a"], "--format"),
        (["export", "a", "--format", "xls"], "there is no 'xls' in exporters; there are: app-csv, bins,"),
        (["export", "a", "--format", "bins", "-o", "size=1"], "has no option 'size'; there are: width (width of a bin"),
        (["export", "a", "--format", "bins", "-o", "width=1us", "-o", "width=2us"], "is given twice"),
        (["export", "a", "--format", "bins", "-o", "width"], "is not of the form key=value"),
        (["export", "a", "--format", "csv", "-o", "x=1"], "has no option 'x'; there are: none"),
        (["export", "a", "--format", "csv", "--output", "no/such/folder/x"], "no/such/folder/x: no such file"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(
    run: Path, arguments: list[str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(Path().iterdir())
    capsys.readouterr()
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert word in err
    assert sorted(Path().iterdir()) == before


def newer_record(path: Path) -> None:
    with RecordWriter(path) as writer:
        writer.chunk(1, bytes([99, 0, 0, 0]) + bytes(60))


@pytest.mark.parametrize(
    "make",
    [
        Path.touch,
        Path.mkdir,
        newer_record,
        lambda path: path.write_bytes(b"\x7fELF" + bytes(1000)),
        lambda path: path.symlink_to("/dev/zero"),
    ],
    ids=["empty", "empty folder", "newer", "foreign", "device"],
)
def test_what_is_no_record_is_one_sentence(
    make: Callable[[Path], object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / "x")
    assert main(["show", str(tmp_path / "x")]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "x" in err


def test_a_broken_run_json_is_one_sentence(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / run_folder.RECORD_NAME).write_bytes((run / run_folder.RECORD_NAME).read_bytes())
    (folder / run_folder.INFO_NAME).write_text('{"schema_version": 1')
    capsys.readouterr()
    assert main(["show", str(folder)]) == 2
    assert "run.json is not what a run leaves" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["csv", "bins", "cyclictest", "hdr", "parquet"])
def test_standard_output_gets_the_bytes_of_the_file(
    run: Path, name: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["export", str(run), "--format", name, "--output", "there"]) == 0
    capfdbinary.readouterr()
    assert main(["export", str(run), "--format", name, "--output", "-"]) == 0
    out, err = capfdbinary.readouterr()
    assert out == Path("there").read_bytes()
    assert err.startswith(b"standard output: ")
    assert not Path("-").exists()


@pytest.mark.parametrize("name", ["parquet", "trace-dat"])
def test_no_binary_format_is_written_to_a_terminal(
    run: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(["export", str(run), "--format", name, "--output", "-"]) == 2
    assert "is binary and standard output is a terminal" in capsys.readouterr().err
