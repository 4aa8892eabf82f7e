# SPDX-License-Identifier: Apache-2.0
"""``rtproof cyclictest``: cyclictest's options, lines and JSON; beside the real program where it is installed."""

import re
import shlex
import shutil
import subprocess
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rtproof.cli.commands import cyclictest as front_command
from rtproof.cli.main import main
from rtproof.experiment import target_runs
from rtproof.experiment.cyclictest_output import CyclictestOutput
from rtproof.experiment.run_request import RunRequest
from rtproof.run.session import AgentOutcome

DATA = Path(__file__).parent / "data/cyclictest"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[RunRequest, Any]]:
    """What would be measured, in place of measuring it."""
    found: list[tuple[RunRequest, Any]] = []

    def keep_request(request: RunRequest, *, quiet: bool) -> tuple[Path, AgentOutcome]:
        found.append((request, quiet))
        return Path(), AgentOutcome(0, "")

    def keep_output(output: CyclictestOutput, *_: object) -> int:
        found[-1] = (found[-1][0], output)
        return 0

    monkeypatch.setattr(target_runs, "measure_once", keep_request)
    monkeypatch.setattr(CyclictestOutput, "print_run", keep_output)
    return found


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ("-D 10", "--period 1ms --duration 10s --threads 1 --policy other --dma-latency 0"),
        (
            "-m -S -p 80 -i 200 -D 1M -q",
            "--period 200us --duration 1min --policy fifo --priority 80 --dma-latency 0 STEP",
        ),
        ("-mqSp90 -i200 -h400 -D1h", "--period 200us --duration 1h --policy fifo --priority 90 --dma-latency 0"),
        ("-t -d 0 -D 1d", "--period 1ms --duration 1d --policy other --dma-latency 0"),
        ("-t 2 -d 7 -D 1", "--period 1ms --duration 1s --threads 2 --policy other --dma-latency 0 --period-step 7us"),
        ("-a 0-1 -t2 -l 50", "--period 1ms --samples 50 --threads 2 --cpus 0-1 --policy other --dma-latency 0 STEP"),
        ("-t -a -p 5 --policy rr", "--period 1ms --duration 30d --policy rr --priority 5 --dma-latency 0 STEP"),
        (
            "-p 5 --policy other -D 1",
            "--period 1ms --duration 1s --threads 1 --policy fifo --priority 5 --dma-latency 0",
        ),
        (
            "-m -a -t -s -n -p99 -l 9",
            "--period 1ms --samples 9 --policy fifo --priority 99 --method nanosleep --dma-latency 0 STEP",
        ),
        ("-x -r -l 9", "--period 1ms --samples 9 --threads 1 --policy other --method posix_timer --dma-latency 0"),
        (
            "-r -A 9 -l 9",
            "--period 1ms --samples 9 --threads 1 --policy other --method clock_nanosleep_relative "
            "--phase 9us --dma-latency 0",
        ),
        (
            "--secaligned 9 -b 5 -l 9",
            "--period 1ms --samples 9 --threads 1 --policy other --phase 0ns --dma-latency 0 --align 9us --break 5us",
        ),
        ("-D 1 -l 1000", "--period 1ms --samples 1000 --threads 1 --policy other --dma-latency 0"),
        ("-D 1 -l 1001", "--period 1ms --duration 1s --threads 1 --policy other --dma-latency 0"),
        ("-N -b 5 -D 1", "--period 1ms --duration 1s --threads 1 --policy other --dma-latency 0 --break 5ns"),
        ("--laptop -D 1 -n -u -M", "--period 1ms --duration 1s --threads 1 --policy other --dma-latency off"),
        ("--latency 30 -D 1", "--period 1ms --duration 1s --threads 1 --policy other --dma-latency 30"),
    ],
)
def test_the_agent_is_asked_for_the_same(options: str, arguments: str, asked: list[tuple[RunRequest, Any]]) -> None:
    assert main(["cyclictest", *options.split()]) == 0
    ((wanted, _),) = asked
    words = arguments.replace("STEP", "--period-step 500us").split()
    pairs = [list(wanted.arguments[at : at + 2]) for at in range(0, len(wanted.arguments), 2)]
    assert sorted(pairs) == sorted([words[at], words[at + 1]] for at in range(0, len(words), 2))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("-A 5 --secaligned", "-A and --secaligned exclude each other"),
        ("-A x", "microseconds, not 'x'"),
        ("-o 3", "give -v, too"),
        ("--histfile x", "--histfile needs -h or -H"),
        ("-c 1", "-c is refused"),
        ("-a !0-4095", "leaves no CPU"),
        ("-D soon", "soon"),
        ("-X", "No such option"),
        ("-t many -D 1", "many"),
        ("-t many --policy rr", "many"),
        ("-u --json no/x", "its folder does not exist"),
        ("-h 5 --json no-x --histfile ./no-x", "--json and --histfile name one file"),
        ("-p 100", "100"),
        ("-i 0", "0"),
    ],
)
def test_what_makes_no_sense_is_refused(options: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cyclictest", *options.split()]) == 1
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
    assert main(["cyclictest", "--limit", "1ms", *options.split()]) == 2  # 1 would mean EXCEEDED


@pytest.mark.parametrize(("options", "code"), [("", 1), ("--limit 1ms", 2)])
def test_a_reader_that_has_gone_is_an_error_of_cyclictest(
    options: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lose_reader(*_: object, **__: object) -> int:
        raise BrokenPipeError

    monkeypatch.setattr(target_runs, "measure_once", lose_reader)
    assert main(["cyclictest", *options.split()]) == code
    assert capsys.readouterr().err == ""


def test_a_result_that_exists_is_not_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.json").write_text("mine")
    assert main(["cyclictest", "-D", "1", "--json", "x.json"]) == 1
    assert "x.json" in capsys.readouterr().err
    assert (tmp_path / "x.json").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


STORED = tomllib.loads((DATA / "outputs-2.6.toml").read_text())
FREE = re.compile(r"-?\b\d+(\.\d+)?\b")


def shape(printed: str) -> list[str]:
    """The kinds of lines of an output, each once: its words, with N for numbers."""
    text = re.sub(r"\{ *\}", "{}", re.sub(r"\x1b\[\d+[AB]", "", printed))
    of_machine = r'("(?:cmdline:|rt_test_version:|start_time|end_time|nodename|release|version|machine)"): "[^"]+"'
    lines = [FREE.sub("N", re.sub(of_machine, r"\1: TEXT", line)) for line in text.splitlines()]
    lines = [re.sub(r"(?<=[(:]) +", "", re.sub(r"\s+", " ", line)).strip() for line in lines]
    return list(dict.fromkeys(re.sub(r"^(# Thread N:).*", r"\1", line) for line in lines if line))


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs to print: of two threads, of one, and one that a latency ended."""
    folder = tmp_path_factory.mktemp("measured")
    runs = {"-t 2": "-q -l 400 -t 2", "": "-q -l 400", "-b 1": "-q -l 20 -b 1"}  # a busy machine misses many of 400
    for number, options in enumerate(runs.values()):
        assert main(["cyclictest", *options.split(), "--output", str(folder / str(number))]) == 0
    return {key: folder / str(number) for number, key in enumerate(runs)}


@pytest.mark.parametrize("case", [*STORED["measured"], *STORED["broken"]], ids=lambda case: case["options"])
def test_the_output_has_the_lines_of_the_real_program(
    case: dict[str, str],
    measured: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    run = measured[next(key for key in ("-b 1", "-t 2", "") if key in case["options"])]
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("run.json", "run.rtrec"):
        shutil.copy(run / name, folder)
    monkeypatch.setattr(target_runs, "measure_once", lambda *_, **__: (folder, AgentOutcome(0, "")))
    capfd.readouterr()
    assert main(["cyclictest", *shlex.split(case["options"])]) == 0
    theirs, ours = shape(case["output"]), shape(capfd.readouterr().out)
    if "-v" in case["options"]:  # the real program's line of the device may stand anywhere before the values
        theirs, ours = sorted(theirs), sorted(ours)
    assert ours == theirs


@pytest.mark.parametrize("case", STORED["measured"][:4], ids=lambda case: case["options"])
def test_the_stored_outputs_are_those_of_the_program_here(case: dict[str, str]) -> None:
    real = shutil.which("cyclictest")
    if not real:
        pytest.skip("cyclictest of rt-tests is not installed")
    theirs = subprocess.run([real, *shlex.split(case["options"])], capture_output=True, text=True, check=False)
    if theirs.returncode:
        pytest.skip(f"cyclictest does not run here: {theirs.stderr[:100]}")
    assert shape(theirs.stdout) == shape(case["output"])


ANSWERS_ITS_HELP = ("--frobnicate", "-q -l")
"""cyclictest prints its help and ends with 0, although it measured nothing. Here that is an error, too."""


@pytest.mark.parametrize("case", STORED["exit_code"], ids=lambda case: case["options"])
def test_an_error_has_the_exit_code_of_the_real_program(case: dict[str, Any]) -> None:
    assert main(["cyclictest", *case["options"].split()]) == (
        1 if case["options"] in ANSWERS_ITS_HELP else case["code"]
    )


OF_HELP = re.compile(r"^[ \t]*(-\w)?(?: \S+| \[\S+\])?[ \t]+(--[\w-]+)(\[?=[^ \t]+| \[[^]]+\])?", re.M)


def test_every_option_of_the_help_of_2_6_has_a_row_and_is_handled(
    asked: list[tuple[RunRequest, Any]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is done, told to change nothing, or refused in a sentence. Nothing is ignored silently."""
    monkeypatch.setattr(front_command, "_has_smi_counter", lambda: True)
    known = {name: each for each in front_command.command.params for name in each.opts}
    listed = [found.groups() for found in OF_HELP.finditer((DATA / "help-2.6.txt").read_text())]
    assert {long for _, long, _ in listed} >= {"--affinity", "--spike-nodes", "--posix_timers", "--default-system"}
    assert len(listed) == 40
    main(["cyclictest", "-D", "1"])
    usual = asked.pop()
    for short, long, value in listed:
        row = known[long]
        assert short is None or short in row.opts
        takes_value, name = not getattr(row, "is_flag", False), str(row.name)
        assert bool(value) <= takes_value, long
        capsys.readouterr()
        code = main(
            ["cyclictest", "-D", "9", *BESIDE.get(long, ()), long, *([VALUES.get(long, "7")] if takes_value else [])]
        )
        said = capsys.readouterr().err
        if name in front_command.REFUSED:
            assert (code, said.count("\n")) == (1, 1), long
            continue
        assert code == 0, said
        ((wanted, output),) = asked
        asked.clear()
        base = replace(usual[1], command=output.command)
        changes = (wanted.arguments, output) != (usual[0].arguments, base)
        idle = front_command.IDLE.get(name)
        assert idle in said if idle else changes or long in DONE_ANYWAY, long


BESIDE = {"--oscope": ("-v",), "--spike-nodes": ("--spike", "5"), "--histfile": ("-h", "5"), "--distance": ("-t", "2")}
VALUES = {
    "--clock": "1",
    "--affinity": "0",
    "--policy": "rr",
    "--duration": "5",
    "--interval": "2000",
    "--json": "a",
    "--histfile": "b",
}
DONE_ANYWAY = {"--mlockall"}
