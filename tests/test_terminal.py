# SPDX-License-Identifier: Apache-2.0
"""What comes from a file, a record or an argument steers no terminal, on standard output and on standard error."""

import io
import re
from pathlib import Path

import pytest
from run_folders import INFO, latencies, write_run

from rtproof.cli.main import main
from rtproof.experiment import guest_runner
from rtproof.run.live_view import LiveView

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
