# SPDX-License-Identifier: Apache-2.0
"""Whatever a file holds, a command ends in bounded time with one of the five exit codes, and steers no terminal."""

import re
import time
from pathlib import Path

import pytest
from mutations import mutated
from test_importers import END, POINTS, TEXT

from rtproof import importers
from rtproof.cli.main import main
from rtproof.core.errors import UserError
from rtproof.importers import cyclictest, cyclictest_json, jitterdebugger, xenomai

DATA = Path(__file__).parent / "data"
LIVE = "policy: fifo: loadavg: 4.31\nT: 0 ( 1845) P:80 I:1000 C:1799993 Min: 10 Act: 19 Avg: 44 Max: 23350\n"
FILES = {
    "histogram.txt": (DATA / "cyclictest" / "histogram.txt").read_bytes(),
    "result.json": (DATA / "cyclictest" / "result.json").read_bytes(),
    "stall.json": (DATA / "cyclictest" / "stall.json").read_bytes(),
    "jitterdebugger.json": (DATA / "jitterdebugger.json").read_bytes(),
    "latency.txt": (TEXT + END).encode(),
    "points.txt": POINTS.encode(),
    "live.txt": LIVE.encode(),
    "vector.rtrec": (DATA / "golden" / "vector.rtrec").read_bytes(),
    "x86_64.rtrec": (DATA / "golden" / "x86_64.rtrec").read_bytes(),
}
COMMANDS = (
    ("show", "{}"),
    ("show", "{}", "--limit", "100us", "--at-most", "1/s", "--json"),
    ("judge", "{}", "--limit", "1ms", "--fixed-beforehand", "--markdown", "-"),
    ("report", "{}", "--output", "-"),
    ("compare", "{}", "--against", "whole", "--although-different", "--no-report"),
    ("export", "{}", "--format", "cyclictest", "--output", "-"),
)
LONGEST_S = 20
SEEDS = {".rtrec": 3}
MOST_SEEDS = 10
"""Of each file with each command; a record takes longer. Bigger numbers were run by hand."""


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_a_sentence_or_a_result(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("whole").write_bytes(FILES[name])
    for number in range(SEEDS.get(Path(name).suffix, MOST_SEEDS) * len(COMMANDS)):
        file = Path(name)
        file.write_bytes(mutated(FILES[name], number))
        command = [word.format(name) for word in COMMANDS[number % len(COMMANDS)]]
        began = time.monotonic()
        code = main(command)
        took_s = time.monotonic() - began
        out, err = capsys.readouterr()
        about = f"seed {number}: {' '.join(command)}: {out[-300:]}{err}"
        assert code in (0, 1, 2, 3, 4), about
        assert took_s < LONGEST_S, about
        assert "defect of" not in " ".join((out + err).split()), about
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", out + err), about
        assert out or code, about


XENOMAI = TEXT + END
HISTOGRAM = (DATA / "cyclictest" / "histogram.txt").read_text()
JSON = (DATA / "cyclictest" / "result.json").read_text()
JITTER = (DATA / "jitterdebugger.json").read_text()
DIGITS = "9" * 5_000


def changed(text: str, pattern: str, new: str) -> str:
    """The first place that the pattern's group fits, replaced."""
    found = re.search(pattern, text, re.MULTILINE)
    assert found, pattern
    return text[: found.start(1)] + new + text[found.end(1) :]


@pytest.mark.parametrize(
    ("module", "text", "says"),
    [
        (xenomai, changed(XENOMAI, r"^RTS\|\s+(8\.720)", "1e999"), "larger than any clock"),
        (xenomai, changed(XENOMAI, r"^RTS.*\|\s+(1)\|", "0.1"), "0.1 stands where a whole number belongs"),
        (xenomai, changed(XENOMAI, r"^HSD\|\s+avg.*\|\s+(3)$", DIGITS), r"\(5,000 characters\) is larger"),
        (xenomai, changed(XENOMAI, r"^HSD\|\s+avg\|\s+106 -\s*(107) ", str(2**63)), "no computer"),
        (xenomai, changed(XENOMAI, r"^HSD\|\s+avg.*\|\s+(3)$", str(2**62)), "no computer"),
        (xenomai, changed(XENOMAI, r"period: (1000)", DIGITS), r"\(5,000 characters\)"),
        (xenomai, POINTS.replace("5.5 11", "5.5 1e999"), "it has no line of figures"),
        (xenomai, POINTS.replace("5.5 11", "5.5 " + DIGITS), r"\(5,000 characters\)"),
        (xenomai, POINTS.replace("5.5 11", "1e999 11"), "larger than any clock"),
        (cyclictest, changed(HISTOGRAM, r"^\d{6} (\d+)", DIGITS), r"\(5,000 characters\)"),
        (cyclictest, changed(HISTOGRAM, r"^(\d{6}) \d+", DIGITS), r"\(5,000 characters\)"),
        (cyclictest, changed(HISTOGRAM, r"^\d{6} (\d+)", str(2**63)), "no computer"),
        (cyclictest, changed(HISTOGRAM, r"^\d{6} (\d+)", str(2**62)), "no computer"),
        (cyclictest, LIVE.replace("1799993", DIGITS), r"\(5,000 characters\)"),
        (cyclictest_json, changed(JSON, r'"\d+": (\d+)', "1e999"), "not of its form"),
        (cyclictest_json, changed(JSON, r'"\d+": (\d+)', DIGITS), "not of its form|no computer"),
        (cyclictest_json, changed(JSON, r'"cycles": (\d+)', str(-5)), "makes no sense"),
        (cyclictest_json, changed(JSON, r'"avg": ([\d.]+)', "1e300"), "makes no sense"),
        (cyclictest_json, changed(JSON, r'"min": (\d+)', str(-(2**63))), "larger than any clock"),
        (jitterdebugger, changed(JITTER, r'"\d+":\s*(\d+)', str(2**63)), "no computer"),
        (jitterdebugger, changed(JITTER, r'"count":\s*(\d+)', DIGITS), "not of its form|larger"),
    ],
)
def test_a_number_that_no_tool_prints_is_a_sentence(module: object, text: str, says: str) -> None:
    with pytest.raises(UserError, match=says) as refused:
        module.read(text)  # type: ignore[attr-defined]
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("module", "text", "says"),
    [
        (
            xenomai,
            XENOMAI.replace("2000|     30.000", "2001|     30.000"),
            "2,001 samples, and its histogram adds up to",
        ),
        (cyclictest, changed(HISTOGRAM, r"^# Total: (\d+)", "000000001"), "its line Total says 1 for thread 0"),
        (cyclictest, re.sub(r"^# Min Latencies:.*$", "# Min Latencies:", HISTOGRAM, flags=re.M), "has 0 figures"),
        (cyclictest, re.sub(r"^(# Avg Latencies: \d+).*$", r"\1", HISTOGRAM, flags=re.M), "has 1 figures"),
        (
            cyclictest_json,
            changed(JSON, r'"cycles": (\d+)', "3"),
            "thread 0 counts 3 values, and its histogram adds up",
        ),
        (cyclictest_json, changed(JSON, r'"end_time": "(.*?)"', "Fri, 20 Nov 2020 23:20:21 +0000"), "before it began"),
        (jitterdebugger, changed(JITTER, r'"count":\s*(\d+)', "3"), "thread 0 counts 3 values, and its histogram adds"),
    ],
)
def test_figures_that_contradict_each_other_are_faults_of_the_file(module: object, text: str, says: str) -> None:
    found = module.read(text)  # type: ignore[attr-defined]
    assert any(says in fault for fault in found.faults), found.faults


def test_a_file_that_ended_before_it_began_has_no_length() -> None:
    assert cyclictest_json.read(JSON).duration_ns is not None
    turned = changed(JSON, r'"end_time": "(.*?)"', "Fri, 20 Nov 2020 23:20:21 +0000")
    assert cyclictest_json.read(turned).duration_ns is None


def test_whole_files_have_no_faults(tmp_path: Path) -> None:
    for name in ("histogram.txt", "result.json", "jitterdebugger.json", "latency.txt", "points.txt", "live.txt"):
        (tmp_path / name).write_bytes(FILES[name])
        assert importers.read(tmp_path / name).faults == ()
