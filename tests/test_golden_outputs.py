# SPDX-License-Identifier: Apache-2.0
"""Everything that rtproof prints of the stored inputs is what is stored beside them.

``tests/golden_outputs/cases.toml`` has the inputs and their commands, ``expected/`` the outputs. After a change that
was wanted, ``pytest tests/test_golden_outputs.py --update-golden`` writes them anew; read the diff before the commit.
Commit 527903ee has the programs that made the inputs (``tests/golden_outputs/make_inputs.py``, ``store_inputs.py``).
"""

import difflib
import gzip
import shlex
import shutil
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import golden_words
import pytest

from rtproof.cli.main import main

CORPUS = Path(__file__).parent / "golden_outputs"
EXPECTED = CORPUS / "expected"
MOST_LINES = 80
"""Of a difference."""


@dataclass(frozen=True)
class Case:
    """inputs: their paths in inputs/, or in tests/ if they begin with data/. commands: without ``rtproof``."""

    name: str
    inputs: tuple[str, ...]
    commands: tuple[str, ...]

    @property
    def expected(self) -> Path:
        return EXPECTED / f"{self.name}.txt"


def cases() -> list[Case]:
    table = tomllib.loads((CORPUS / "cases.toml").read_text(encoding="utf-8"))
    return [_case(name, row, table["kinds"]) for name, row in table["cases"].items()]


def _case(name: str, row: dict[str, list[str]], kinds: dict[str, list[str]]) -> Case:
    inputs = row.get("inputs", [])
    commands = [*(command for kind in row.get("kinds", []) for command in kinds[kind]), *row.get("more", [])]
    names = [Path(each).name.removesuffix(".gz") for each in inputs]
    each_input = [
        command.replace("EACH", name) for command in commands for name in (names if "EACH" in command else [""])
    ]
    return Case(name, tuple(inputs), tuple(command.replace("INPUT", (names or [""])[0]) for command in each_input))


def transcript(case: Case, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What the commands of a case print and write, in a folder that holds copies of its inputs."""
    for each in case.inputs:
        _copy_input(each, folder)
    return "\n".join(part for command in case.commands for part in _outputs(command, folder, capsys)) + "\n"


def _copy_input(name: str, folder: Path) -> None:
    copy = folder / Path(name).name.removesuffix(".gz")
    if _place(name).is_dir():
        shutil.copytree(_place(name), copy)
    else:
        copy.write_bytes(read_input(name))


def _place(name: str) -> Path:
    return (Path(__file__).parent if name.startswith("data/") else CORPUS / "inputs") / name


def read_input(name: str) -> bytes:
    """A file, also one in a .zip, and what a .gz holds."""
    archive, inside, member = name.partition(".zip/")
    if inside:
        return ZipFile(_place(f"{archive}.zip")).read(member)
    content = _place(name).read_bytes()
    return gzip.decompress(content) if name.endswith(".gz") else content


def _outputs(command: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[str]:
    """The command, its exit code, each output that is not empty, and what it did to files. New files are removed."""
    before = _files(folder)
    code = main(shlex.split(command))
    printed, after = capsys.readouterr(), _files(folder)
    yield f"$ rtproof {command}\nexit code {code}"
    outputs = {"standard output": printed.out.encode(), "standard error": printed.err.encode()}
    for path in sorted(before.keys() | after.keys()):
        file = f"file {path.relative_to(folder)}"
        if path not in after:
            yield f">>> {file} was removed"
        elif path not in before:
            outputs[file] = after[path]
            path.unlink()
        elif before[path] != after[path]:
            yield f">>> {file} was changed"
    for name, content in outputs.items():
        if content or name.startswith("file"):
            yield f">>> {name}{_ends(content)}\n{golden_words.normalised(name, content, [folder])}"


def _files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _ends(content: bytes) -> str:
    """What the lines of the corpus cannot show of an output."""
    strange = " with CRLF" if b"\r\n" in content else ""
    return strange + ("" if content.endswith(b"\n") else " without a newline at its end" if content else " is empty")


def difference(expected: str, found: str) -> str:
    lines = list(difflib.unified_diff(expected.splitlines(), found.splitlines(), "expected", "found", n=3, lineterm=""))
    more = len(lines) - MOST_LINES
    return "\n".join([*lines[:MOST_LINES], *([f"... and {more} more lines"] if more > 0 else [])])


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path.parent))  # reports of defects lie there
    for name, value in {"COLUMNS": "100", "LC_ALL": "C.UTF-8", "TZ": "UTC", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_the_outputs_are_those_stored(
    case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    found = transcript(case, tmp_path, capsys)
    if request.config.getoption("--update-golden"):
        EXPECTED.mkdir(exist_ok=True)
        case.expected.write_text(found, encoding="utf-8")
        return
    expected = case.expected.read_text(encoding="utf-8") if case.expected.exists() else ""
    if found != expected:
        pytest.fail(f"{difference(expected, found)}\nIs that wanted? Then --update-golden stores it.", pytrace=False)


def test_each_expected_file_has_its_case(request: pytest.FixtureRequest) -> None:
    strange = {path.name for path in EXPECTED.iterdir()} - {case.expected.name for case in cases()}
    if request.config.getoption("--update-golden"):
        for name in strange:
            (EXPECTED / name).unlink()
        return
    assert not strange
