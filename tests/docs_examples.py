# SPDX-License-Identifier: Apache-2.0
"""Examples in the pages of docs/: reads them from a page and runs them, so that what a page shows is what happens.

Of a page's fences these are run, from top to bottom, in one new folder:

* ``console``: each line ``$ COMMAND`` (continued by a backslash at its end), by one bash for the whole page. The exit
  code must be 0, unless the command ends with ``  # exit code 4`` or ``  # exit code 1, 3 or 4``. Lines below a command
  are what it prints (standard output and error); they are compared if there are any.
* ``python``: in one namespace for the whole page. ``pycon``: doctests in the same namespace.

Shown and printed output are compared after ``normalised``: white space is one space, a number stands for any number,
and ``...`` for any text; times match in any unit. A comment line of MyST directly before a fence is a mark:

* ``% not run: REASON``: never run. ``% slow``: only run by the slow tests.
* ``% needs: WORDS``: left out, and the page's test skipped with the reason, unless all are here. A word is a program,
  ``python:MODULE``, ``kernel:NAME`` of the lab's catalogue, ``root``, ``real-time`` (the right to use real-time
  priorities), or ``tracing`` (of the kernel).
* ``% file: NAME``: the fence, of any language, is written to this file of the folder instead of being run.

Above the page's title stand marks for the whole page: ``% slow``, ``% needs: WORDS``, and

* ``% golden: NAME...``: each is copied to ``runs/NAME``. A NAME is a record of ``tests/data/golden`` without its
  ``.rtrec``, such as ``x86_64-1.3`` (two threads; a limit is EXCEEDED) or ``recorder-1.6`` (with the kernel's events
  of a late activation).
* ``% board: NAME``: ``ssh NAME`` reaches a board that the test makes, as root (``board_servers``).
"""

import contextlib
import doctest
import importlib.util
import io
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import board_servers
import lab_kernels
import pytest

from rtproof.judge.analysis_model import State

ROOT = Path(__file__).parents[1]
DATA = Path(__file__).parent / "data"
RUN_LANGUAGES = {"console", "python", "pycon"}
LANGUAGES_OF_COMMANDS = {"sh", "bash", "shell"}
"""Fences that a reader takes for commands, though they are not run: they need a mark that says so."""
PATIENCE_S = 900.0
"""How long a command may take: much longer than any takes on a busy machine."""
MEASURING = re.compile(
    r"\b(rtproof (run|cyclictest|attach|stop|tune(?! --list))|sh nightly\.sh)\b(?!.*--target simulated)"
)
TRACE = Path("/sys/kernel/tracing/trace")
KEPT_VARIABLES = ("ZIG_GLOBAL_CACHE_DIR", "TMPDIR", "LANG")

FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,}|~{3,})(?P<language>\S*)")
MARK = re.compile(r"^ *% ?(?P<text>.*?)\s*$")
EXIT_CODES = re.compile(r"\s+# exit codes? (?P<codes>\d+(?:(?:, | or )\d+)*)$")
NUMBERS = re.compile(r"\b\d{8}T\d{6}Z-[\w-]+|\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b|[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
"""Names of runs, hashes, and numbers with their sign, commas, fraction and exponent."""
LEFT_OUT = re.compile(r"(?<!\.)\.\.\.(?!\.)")


class ExampleError(AssertionError):
    """A page's example is wrong, or does something other than the page says. The sentence names page and line."""


@dataclass(frozen=True)
class Marks:
    """What the comment lines before a fence, or above the title, say."""

    not_run: str = ""
    slow: bool = False
    needs: tuple[str, ...] = ()
    file: str = ""
    golden: tuple[str, ...] = ()
    board: str = ""


@dataclass(frozen=True)
class Fence:
    """A fenced block. line: of its first line inside, from 1 on; text: without the page's indentation."""

    line: int
    language: str
    marks: Marks
    text: str


@dataclass(frozen=True)
class Command:
    """A command of a console. output: what the page shows below it, or an empty text if it shows nothing."""

    line: int
    text: str
    exit_codes: tuple[int, ...]
    output: str


@dataclass(frozen=True)
class Page:
    """A page's fences that are run or written, in their order. name: its path below the checkout."""

    name: str
    marks: Marks
    fences: tuple[Fence, ...]

    @property
    def has_slow_part(self) -> bool:
        return self.marks.slow or any(fence.marks.slow for fence in self.fences)

    @property
    def is_all_slow(self) -> bool:
        return all(self.marks.slow or fence.marks.slow or fence.marks.not_run for fence in self.fences)

    @property
    def measures(self) -> bool:
        """Whether a command measures this machine."""
        return any("rtproof run" in fence.text or "rtproof.run(" in fence.text for fence in self.fences)


# From text to examples.


def read_page(path: Path) -> Page:
    """The examples of a page. Raises ExampleError if a mark or a console makes no sense."""
    name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name
    return parse_page(name, path.read_text(encoding="utf-8"))


def parse_page(name: str, text: str) -> Page:
    """As ``read_page``, from the text of a page."""
    lines = text.splitlines()
    title = next((number for number, line in enumerate(lines) if line.startswith("# ")), len(lines))
    top = parse_marks(name, 1, [found["text"] for line in lines[:title] if (found := MARK.match(line))], at_top=True)
    fences = tuple(_fences(name, lines, title))
    for fence in fences:
        if fence.language == "console" and not fence.marks.file:
            console_commands(name, fence)
    return Page(name, top, fences)


def _fences(name: str, lines: Sequence[str], begin: int) -> Iterator[Fence]:
    """The fences from this line on that have marks or are run. Directives are looked into."""
    directives: list[str] = []
    marked: list[str] = []
    rest = iter(enumerate(lines[begin:], begin))
    for number, line in rest:
        opened = FENCE.match(line)
        mark = MARK.match(line)
        if opened is None and mark is None and marked:
            raise ExampleError(f"{name}:{number + 1}: the mark '% {marked[-1]}' stands before no fence")
        if mark is not None:
            marked.append(mark["text"])
        if opened is None:
            continue
        if directives and line.strip() == directives[-1]:
            directives.pop()
        elif opened["language"].startswith("{"):
            directives.append(opened["ticks"])
        else:
            marks = parse_marks(name, number, marked, at_top=False)
            body = _body(opened, rest)
            yield from _wanted(name, Fence(number + 2, opened["language"], marks, body))
        marked = []


def _body(opened: re.Match[str], rest: Iterator[tuple[int, str]]) -> str:
    body = []
    for _, line in rest:
        if line.strip().startswith(opened["ticks"]) and not line.strip().strip(opened["ticks"][0]):
            break
        body.append(line.removeprefix(opened["indent"]))
    return "".join(f"{line}\n" for line in body)


def _wanted(name: str, fence: Fence) -> Iterator[Fence]:
    marks = fence.marks
    if fence.language in LANGUAGES_OF_COMMANDS and not (marks.not_run or marks.file):
        raise ExampleError(
            f"{name}:{fence.line}: a fence {fence.language!r} is not run: make it a console with '$ ', or give it the "
            "mark '% not run: REASON' or '% file: NAME'"
        )
    if fence.language in RUN_LANGUAGES or marks != Marks():
        yield fence


def parse_marks(name: str, line: int, texts: Sequence[str], *, at_top: bool) -> Marks:
    """The marks that stand together. Raises ExampleError for one that does not exist, or not there, or lacks a word."""
    found: dict[str, object] = {}
    for text in texts:
        key, _, value = (part.strip() for part in text.partition(":"))
        field = key.replace(" ", "_")
        if key == "SPDX-License-Identifier":
            continue
        if field not in (("slow", "needs", "golden", "board") if at_top else ("not_run", "slow", "needs", "file")):
            raise ExampleError(f"{name}:{line}: there is no mark '% {text}' {'at the top' if at_top else 'here'}")
        if (field == "slow") != (not value):
            raise ExampleError(f"{name}:{line}: the mark '% {text}' lacks what it needs, or has too much")
        found[field] = True if field == "slow" else tuple(value.split()) if field in ("needs", "golden") else value
    return Marks(**found)  # type: ignore[arg-type]


def console_commands(name: str, fence: Fence) -> list[Command]:
    """The commands of a console, each with the output that the page shows."""
    groups: list[tuple[int, list[str], list[str]]] = []
    continued = False
    for number, line in enumerate(fence.text.splitlines(), fence.line):
        if line.startswith("$ ") and not continued:
            groups.append((number, [line[2:]], []))
        elif not groups:
            raise ExampleError(f"{name}:{number}: a console begins with '$ COMMAND'")
        elif continued:
            groups[-1][1].append(line)
        else:
            groups[-1][2].append(line)
        continued = bool(groups[-1][1]) and groups[-1][1][-1].endswith("\\") and not groups[-1][2]
    return [_command(line, "\n".join(words), "\n".join(output).strip()) for line, words, output in groups]


def _command(line: int, text: str, output: str) -> Command:
    found = EXIT_CODES.search(text)
    codes = tuple(int(code) for code in re.findall(r"\d+", found["codes"])) if found else (0,)
    return Command(line, text[: found.start()] if found else text, codes, output)


# What is compared.


def normalised(text: str) -> str:
    """The text with one space for white space, ``#`` for numbers, ``s`` for any unit of time, and one sign for rules
    and small bars.
    """
    text = re.sub(r"\b(?:ns|us|ms|min|h)\b", "s", NUMBERS.sub("#", text))
    text = re.sub(r"[▁-█]+", "▇", text)
    text = re.sub(r"[-=─━]{3,}", "---", text)
    return re.sub(r"# s(?: # s)+", "# s", " ".join(text.split()))


def is_as_shown(shown: str, printed: str) -> bool:
    """Whether what a command printed is what the page shows."""
    pieces = [re.escape(normalised(piece)) for piece in LEFT_OUT.split(shown)]
    return re.fullmatch(".*".join(pieces), normalised(printed)) is not None


class _Checker(doctest.OutputChecker):
    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return is_as_shown(want, got) or super().check_output(want, got, optionflags)


# What an example needs.


def lacking(word: str) -> str:
    """Why what this word of ``% needs:`` names is not here; an empty text if it is."""
    kind, colon, value = word.partition(":")
    if colon:
        return {"python": _lacking_module, "kernel": _lacking_kernel}[kind](value)
    if word in RIGHTS:
        return RIGHTS[word]()
    return "" if shutil.which(word, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") else f"there is no {word}"


def _lacking_real_time() -> str:
    """Asks in another process, because this one keeps its policy."""
    setting = "import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(80))"
    done = subprocess.run([sys.executable, "-c", setting], capture_output=True, check=False)
    return "real-time priorities are not permitted here" if done.returncode else ""


def _lacking_module(name: str) -> str:
    return "" if importlib.util.find_spec(name) else f"there is no Python module {name}"


def _lacking_kernel(name: str) -> str:
    try:
        lab_kernels.kernel(name)
    except pytest.skip.Exception as reason:
        return str(reason)
    return ""


RIGHTS = {
    "root": lambda: "" if os.geteuid() == 0 else "only root can do this",
    "tracing": lambda: "" if os.access(TRACE, os.W_OK) else "the kernel's tracing cannot be used here",
    "real-time": _lacking_real_time,
}


# Running.


def environment(folder: Path) -> dict[str, str]:
    """Variables for a page's commands: nothing of this user's but the cache of agents and kernels."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    places = (folder / "bin", Path(sys.executable).parent)
    path = ":".join([*map(str, places), os.environ.get("PATH", os.defpath)])
    return kept | {
        "HOME": str(folder / "home"),
        "PATH": path,
        "XDG_CACHE_HOME": cache,
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "TERM": "dumb",
        "COLUMNS": "80",
    }


class Shell:
    """A bash that runs one command after the other."""

    def __init__(self, scratch: Path, folder: Path, variables: dict[str, str]) -> None:
        self.scratch, self.status = scratch, 0
        self.process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"], cwd=folder, env=variables, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0,
        )  # fmt: skip

    def run(self, command: str) -> tuple[int | None, str]:
        """Run a command; its exit code and what it printed. None if it ended the shell, or took too long."""
        script, output = self.scratch / "command.sh", self.scratch / "output"
        script.write_text(f"{command}\n")
        assert self.process.stdin is not None
        line = f"(exit {self.status}); . '{script}' </dev/null >'{output}' 2>&1; echo \"status $?\"\n"
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(line.encode())
        status = self._answer()
        if status is not None:
            self.status = status
        return status, output.read_text(errors="replace") if output.exists() else ""

    def _answer(self) -> int | None:
        assert self.process.stdout is not None
        answer, end = b"", time.monotonic() + PATIENCE_S
        while (found := re.search(rb"status (\d+)\n", answer)) is None:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, end - time.monotonic()))
            piece = os.read(self.process.stdout.fileno(), 4096) if ready else b""
            if not piece:
                return None
            answer += piece
        return int(found[1])

    def close(self) -> None:
        """End the shell, and what it left running."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


def run_page(page: Page, scratch: Path, *, slow: bool) -> list[str]:
    """Run a page's examples in new folders below ``scratch``; why some were left out. Raises ExampleError.

    slow: whether the slow ones are run, too.
    """
    folder = scratch / "page"
    for place in (folder, scratch / "bin", scratch / "home"):
        place.mkdir()
    _put_golden_runs(page, folder)
    with contextlib.ExitStack() as stack:
        if page.marks.board:
            (scratch / "board").mkdir()
            served = board_servers.board(scratch / "board", "sshd")
            _put_board(page.marks.board, scratch, stack.enter_context(served))
        return _run_fences(page, scratch, folder, stack, slow=slow)


def _run_fences(page: Page, scratch: Path, folder: Path, stack: contextlib.ExitStack, *, slow: bool) -> list[str]:
    variables = environment(scratch)
    shell = Shell(scratch, folder, variables)
    stack.callback(shell.close)
    namespace: dict[str, object] = {"__name__": "__main__"}
    reasons = []
    for fence in page.fences:
        if fence.marks.not_run or (not slow and (fence.marks.slow or page.marks.slow)):
            continue
        reason = next(filter(None, map(lacking, (*page.marks.needs, *fence.marks.needs))), "")
        if reason:
            reasons.append(f"{page.name}:{fence.line}: {reason}")
        elif fence.marks.file:
            (folder / fence.marks.file).write_text(fence.text)
        elif fence.language == "console":
            for command in console_commands(page.name, fence):
                if verdict := _run_command(page.name, command, shell):
                    return [*reasons, f"{page.name}:{command.line}: the run is {verdict} here, as on a busy machine"]
        else:
            with contextlib.chdir(folder), mock.patch.dict(os.environ, variables):
                _run_python(page.name, fence, namespace)
    return reasons


def _run_command(page: str, command: Command, shell: Shell) -> str:
    """The verdict of a run that a busy machine made worse than the page says, or an empty text. Raises ExampleError."""
    code, printed = shell.run(command.text)
    worse = (State.EXCEEDED, State.REFUTED, State.UNDECIDED)
    late = () if State.REFUTED.exit_code in command.exit_codes else worse
    found: str = next((each.value for each in (State.INVALID, *late) if each.exit_code == code), "")
    if found and found in printed and code not in command.exit_codes and MEASURING.search(command.text):
        return found
    if code is None:
        problem = "the command ended the shell or took too long"
    elif code not in command.exit_codes:
        problem = f"exit code {code}, but {' or '.join(map(str, command.exit_codes))} is expected"
    elif command.output and not is_as_shown(command.output, printed):
        problem = "the output is not as shown"
    else:
        return ""
    raise ExampleError(
        f"{page}:{command.line}: {problem}\ncommand:\n{_indented(command.text)}\n"
        f"expected:\n{_indented(command.output or '(any output)')}\nprinted:\n{_indented(printed.rstrip())}"
    )


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def _run_python(page: str, fence: Fence, namespace: dict[str, object]) -> None:
    if fence.language == "pycon":
        _run_doctest(page, fence, namespace)
        return
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile("\n" * (fence.line - 1) + fence.text, page, "exec"), namespace)
    except Exception:
        raise ExampleError(
            f"{page}:{fence.line}: the example raises\n{_indented(traceback.format_exc())}\nexample:\n"
            f"{_indented(fence.text)}"
        ) from None


def _run_doctest(page: str, fence: Fence, namespace: dict[str, object]) -> None:
    try:
        test = doctest.DocTestParser().get_doctest(fence.text, namespace, page, page, fence.line - 1)
    except ValueError as error:
        raise ExampleError(f"{page}:{fence.line}: {error}") from None
    test.globs = namespace  # not a copy, because later blocks use the names
    told: list[str] = []
    runner = doctest.DocTestRunner(_Checker(), verbose=False)
    if not test.examples:
        raise ExampleError(f"{page}:{fence.line}: a pycon block needs a line '>>> '")
    if runner.run(test, out=told.append, clear_globs=False).failed:
        raise ExampleError(f"{page}:{fence.line}: an example in this block is wrong\n{''.join(told)}")


def _put_golden_runs(page: Page, folder: Path) -> None:
    for name in page.marks.golden:
        (folder / "runs" / name).mkdir(parents=True)
        shutil.copy(DATA / "golden" / f"{name}.rtrec", folder / "runs" / name / "run.rtrec")


def _put_board(name: str, scratch: Path, board: board_servers.Board) -> None:
    """Have ``ssh NAME`` reach the board: ssh reads the configuration of the account, whatever HOME says."""
    config = Path(board.options[-1].partition("=")[2])
    config.write_text(re.sub(r"(?m)^Host .*$", f"Host {name}", config.read_text()))
    wrapper = scratch / "bin" / "ssh"
    wrapper.write_text(f"#!/bin/sh\nexec {shutil.which('ssh')} -F '{config}' \"$@\"\n")
    wrapper.chmod(0o755)
