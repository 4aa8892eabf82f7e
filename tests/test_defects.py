# SPDX-License-Identifier: Apache-2.0
"""A defect is no verdict: whatever is raised, wherever, one sentence says it and the exit code is 2, never 1."""

import importlib
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import click
import duckdb
import fake_agent
import msgspec
import pytest
from run_folders import latencies, write_run

from rtproof import __version__, exporters, importers
from rtproof.agents.architectures import host_architecture
from rtproof.cli.main import cli, main
from rtproof.core import defects, plugins
from rtproof.core.errors import UserError
from rtproof.report import formats

DATA = Path(__file__).parent / "data"
ABSENT = "no module of this name"
PLANT = ZeroDivisionError("planted\nhere")

COMMANDS: dict[str, tuple[tuple[str, ...], str]] = {
    "agent build": ((), "rtproof.agents.build.build_agent"),
    "agent files": ((), "rtproof.agents.build.packaged_programs"),
    "agent list": ((), "rtproof.agents.build.find_agent"),
    "agent path": ((), "rtproof.agents.build.find_agent"),
    "agent version": ((), "rtproof.agents.build.find_agent"),
    "attach": (("a",), "rtproof.record.unfinished_run.read"),
    "audit": (("a",), "rtproof.audit.judgement.audit"),
    "compare": (("a", "--against", "b", "--no-report"), "rtproof.report.pages.comparison_page.comparison_sections"),
    "completion": (("bash",), "rtproof.cli.commands.completion.get_completion_class"),
    "cyclictest": (("-D", "1"), "rtproof.cli.option_values.agent_values"),
    "doctor": (("reports",), "rtproof.doctor.examination.examine"),
    "explain": (("a",), "rtproof.experiment.explained_runs.explain_run"),
    "export": (("a", "--format", "csv"), "rtproof.judge.analyse.analyse"),
    "history": (("a", "b", "--no-report"), "rtproof.compare.history.analyse_history"),
    "judge": (("a", "b", "--limit", "1ms"), "rtproof.report.pages.ci_verdicts.ci_text"),
    "lab verify": (("result.json",), "rtproof.lab.verify_inputs.read_comparison"),
    "lab cache": ((), "rtproof.cli.commands.lab.cache.cache_entries"),
    "lab cache bound": (("--mib", "1", "all"), "rtproof.cli.commands.lab.cache.bound_cache"),
    "lab cache clear": (("all",), "rtproof.cli.commands.lab.cache.bound_cache"),
    "lab check": (("--kernel", "k", "--max", "20us"), "rtproof.experiment.guest_runner.named_kernels"),
    "lab compare": (("--kernel", "k", "--load", "mmap"), "rtproof.experiment.guest_runner.named_kernels"),
    "lab explain": (("--kernel", "k", "--load", "mmap"), "rtproof.experiment.guest_runner.named_kernels"),
    "lab kernels": ((), "rtproof.lab.kernel_catalogue.list_kernels"),
    "lab kernels fetch": (("debian-6.12",), "rtproof.lab.kernel_catalogue.fetch_kernel"),
    "lab module": (("--kernel", "debian-6.12"), "rtproof.lab.kernel_catalogue.module_for_kernel"),
    "lab profile": (("akamina",), "rtproof.experiment.guest_runner.profile_kernels"),
    "lab qemu": ((), "rtproof.vm.emulators.emulators"),
    "lab ten-ms": ((), "rtproof.experiment.guest_runner.profile_kernels"),
    "loads": ((), "rtproof.agents.build.find_agent"),
    "matrix": (("a",), "rtproof.report.pages.matrix_page.matrix_sections"),
    "plan": (("--limit", "1ms", "--at-most", "1/h"), "rtproof.judge.planning.plan_lengths"),
    "profiles": ((), "rtproof.profiles.names"),
    "report": (("a",), "rtproof.judge.analyse.analyse"),
    "run": (("--agent", "agent-late", "--duration", "1s"), "rtproof.run.session.run_session"),
    "show": (("a",), "rtproof.judge.analyse.analyse"),
    "stop": (("a",), "rtproof.record.unfinished_run.read"),
    "tune": (("--knobs", "printk"), "rtproof.tune.knobs.chosen_knobs"),
    "undo": ((), "rtproof.experiment.target_runs.open_named_target"),
    "watch": ((), "rtproof.run.running_records.running_records"),
}
"""Arguments that each command takes, and what it calls on its way, where the exception is planted."""


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two runs and an agent; tracebacks are kept in its ``kept``."""
    (tmp_path / "kept").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "kept"))
    monkeypatch.delenv(defects.DEBUG, raising=False)
    monkeypatch.chdir(tmp_path)
    for name, seed in (("a", 1), ("b", 2)):
        write_run(Path(name), latencies(seed, 1_000))
    fake_agent.install(Path(), "late")
    return tmp_path


def plant(monkeypatch: pytest.MonkeyPatch, place: str, error: BaseException = PLANT) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    module_name, _, name = place.rpartition(".")
    module = importlib.import_module(module_name)
    planted = getattr(module, name)
    monkeypatch.setattr(module, name, fail)
    for each in [each for each in sys.modules.values() if getattr(each, "__name__", "").startswith("rtproof.")]:
        if getattr(each, name, None) is planted:
            monkeypatch.setattr(each, name, fail)


def the_sentence(capsys: pytest.CaptureFixture[str]) -> str:
    """All that was printed, which is one line on standard error but for what says that something begins."""
    out, err = capsys.readouterr()
    err = err.removeprefix(f"building the agent for {host_architecture().name}\n")
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("rtproof: ")
    assert "Traceback" not in err
    return err


def leaves(command: click.Command, context: click.Context, words: tuple[str, ...]) -> Iterator[str]:
    """Every command that does something of its own, also a group that may be called alone."""
    if not isinstance(command, click.Group):
        yield " ".join(words)
        return
    if command.invoke_without_command:
        yield " ".join(words)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from leaves(found, click.Context(found, parent=context), (*words, name))


def test_every_command_has_a_plant() -> None:
    assert sorted(leaves(cli, click.Context(cli, **cli.context_settings), ())) == sorted(COMMANDS)


@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize("command", COMMANDS)
def test_an_exception_in_a_command_is_a_sentence_and_2(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words, place = COMMANDS[command]
    plant(monkeypatch, place)
    assert main([*command.split(), *words]) == 2
    said = the_sentence(capsys)
    assert "this is a defect of rtproof" in said
    assert "ZeroDivisionError: planted here" in said
    assert "please report it" in said
    assert "Traceback" in kept(said).read_text()


def kept(said: str) -> Path:
    """The file that a sentence names."""
    return Path(said.split("with the file ")[1].strip())


IMPORTED = {
    "cyclictest": DATA / "cyclictest" / "histogram.txt",
    "cyclictest-json": DATA / "cyclictest" / "result.json",
}
"""An importer of text and one of JSON: every importer is called in one place."""


@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize("name", IMPORTED)
@pytest.mark.parametrize("function", ["looks_like", "read"])
@pytest.mark.parametrize("command", ["show", "judge"])
def test_an_exception_in_an_importer_is_a_sentence_and_2(
    name: str, function: str, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = plugins.load_plugin(importers, name)
    plant(monkeypatch, f"{module.__name__}.{function}")
    code = main([command, str(IMPORTED[name]), *(["--limit", "1ms"] if command == "judge" else [])])
    out, err = capsys.readouterr()
    assert code == 2
    assert "Traceback" not in out + err
    assert "ZeroDivisionError: planted here" in " ".join((out + err).split())
    if command != "judge":
        assert (out, err.count("\n")) == ("", 1)


@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize("name", plugins.plugin_names(exporters))
def test_an_exception_in_an_exporter_is_a_sentence_and_2(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(monkeypatch, f"{plugins.load_plugin(exporters, name).__name__}.export")
    assert main(["export", "a", "--format", name]) == 2
    assert "ZeroDivisionError" in the_sentence(capsys)


@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize("name", plugins.plugin_names(formats))
def test_an_exception_in_a_report_format_is_a_sentence_and_2_and_leaves_no_file(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = set(Path().iterdir())
    plant(monkeypatch, f"{plugins.load_plugin(formats, name).__name__}.draw")
    for output in ((), ("--output", "-")):
        assert main(["report", "a", "--format", name, *output]) == 2
        assert "ZeroDivisionError" in the_sentence(capsys)
    assert set(Path().iterdir()) == before


class SpeechlessError(Exception):
    """Fails even to say what it is."""

    def __str__(self) -> str:
        raise ValueError


def recursion() -> Exception:
    return RecursionError("maximum recursion depth exceeded")


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (MemoryError(), "there is too little memory"),
        (recursion(), "RecursionError: maximum recursion"),
        (AssertionError(), "defect of rtproof"),
        (SpeechlessError(), "SpeechlessError"),
        (UnicodeEncodeError("utf-8", "\udcff", 0, 1, "surrogates"), "UnicodeEncodeError"),
        (msgspec.ValidationError("Expected `int`"), "ValidationError: Expected `int`"),
        (duckdb.IOException("IO Error: x"), "IO Error: x"),
        (pickle.PicklingError("cannot"), "PicklingError"),
        (subprocess.CalledProcessError(3, ["gcc"]), "CalledProcessError"),
        (ModuleNotFoundError("No module named 'duckdb'", name="duckdb"), "the Python package 'duckdb' cannot be"),
        (ImportError("libfoo.so: no", name="numpy._core"), "the Python package 'numpy._core' cannot be loaded"),
        (ModuleNotFoundError("No module named 'rtproof.x'", name="rtproof.x"), "defect of rtproof"),
        (TimeoutError(), "rtproof: timeouterror"),
        (OSError(24, "Too many open files"), "too many open files"),
        (OSError(28, "No space left on device"), "no space left on the disk while writing the output"),
        (UserError("a\x1b[31mb\x07\u202e"), "rtproof: a\N{REPLACEMENT CHARACTER}[31mb"),
        (SystemExit("it says why"), "it says why"),
        (click.ClickException("bad\x1b[2J"), "bad\N{REPLACEMENT CHARACTER}[2J"),
        (ValueError("x" * 100_000), "x ... x"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
@pytest.mark.usefixtures("desk")
def test_every_kind_of_exception_is_a_sentence_and_2(
    error: BaseException, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(monkeypatch, "rtproof.judge.analyse.analyse", error)
    assert main(["show", "a"]) == 2
    said = the_sentence(capsys)
    assert says in said
    assert len(said) < 2_500
    assert all(c.isprintable() for c in said.rstrip("\n"))


@pytest.mark.usefixtures("desk")
def test_a_variable_shows_the_traceback_in_place_of_the_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(defects.DEBUG, "1")
    plant(monkeypatch, "rtproof.judge.analyse.analyse")
    assert main(["show", "a"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Traceback")
    assert err.splitlines()[-1].startswith("rtproof: this is a defect")
    assert list(Path("kept").iterdir()) == []


@pytest.mark.usefixtures("desk")
def test_an_exception_that_ends_a_thread_is_no_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise PLANT

    def with_thread(*_: object) -> object:
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
        return lambda *_: SimpleNamespace(source=lambda: "")

    hook = threading.excepthook
    monkeypatch.setattr("rtproof.cli.commands.completion.get_completion_class", with_thread)
    assert main(["completion", "bash"]) == 2
    assert f"defect of rtproof {__version__} and no verdict: ZeroDivisionError" in capsys.readouterr().err
    assert threading.excepthook is hook


def test_an_exception_in_each_worker_process_is_a_sentence_for_each_run(
    desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(monkeypatch, "rtproof.judge.analyse.analyse")
    assert main(["history", "a", "b", "--no-report"]) == 2
    assert "no run can be read: a: this is a defect" in the_sentence(capsys)
    assert len(list((desk / "kept").iterdir())) == 2


def process(code: str, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """A process that runs the code and then the command line as ``python -m rtproof`` does."""
    run = "; import sys, runpy; sys.argv[0] = 'rtproof'; runpy.run_module('rtproof', run_name='__main__')"
    path = {"PYTHONPATH": ":".join(filter(None, sys.path))}
    return subprocess.run(
        [sys.executable, "-c", code + run, *words],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | path | environment,
    )


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import sys; sys.modules['click'] = None", "the Python package 'click' cannot be loaded"),
        ("import sys; sys.modules['rtproof.cli.main'] = None", "this is a defect of rtproof"),
        (f"import sys; sys.modules['numpy'] = None; sys.{ABSENT.replace(' ', '_')} = 1", "the Python package 'numpy'"),
        ("import rtproof.record.run_folder as r; r.open_run = None", "this is a defect of rtproof"),
    ],
)
def test_what_cannot_even_start_is_a_sentence_and_2(code: str, says: str, desk: Path) -> None:
    done = process(code, "show", "a", TMPDIR=str(desk / "kept"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert says in done.stderr


def test_a_check_for_bisect_cannot_test_a_commit_by_a_defect(
    desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Git takes 2 for a bad commit, and 125 for one that cannot be tested."""
    plant(monkeypatch, "rtproof.experiment.guest_runner.named_kernels")
    assert main(["lab", "check", "--kernel", "k", "--max", "20us", "--bisect"]) == 125
    assert "ZeroDivisionError" in the_sentence(capsys)
    assert len(list((desk / "kept").iterdir())) == 1
