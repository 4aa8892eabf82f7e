# SPDX-License-Identifier: Apache-2.0

import ast
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from conftest import CACHE, LENGTHY, REPEATABLE
from test_ci_verdicts import proven, refuted, undecided

from rtproof.judge.analysis_model import State

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "rtproof"

MAY_IMPORT = {
    "core": "",
    "record": "core agents",
    "statistics": "",
    "agents": "core",
    "profiles": "core record",
    "loads": "core",
    "simulation": "core record",
    "vm": "core agents",
    "boards": "core agents",
    "targets": "core simulation vm boards",
    "summary": "core record statistics agents",
    "explain": "core record statistics summary",
    "tail": "core record statistics summary",
    "judge": "core record statistics summary tail",
    "audit": "core record summary",
    "tune": "core statistics",
    "compare": "core record statistics summary judge",
    "schema": "record statistics summary explain tail judge compare audit",
    "articles": "core judge",
    "importers": "core summary",
    "exporters": "core record summary explain judge",
    "lab": "core record agents loads vm summary judge",
    "report": "core record statistics profiles summary explain tail judge compare schema articles lab audit tune",
    "run": "core record targets",
    "experiment": "core record agents profiles loads targets summary explain tail judge compare schema articles "
    "importers exporters report run lab vm audit tune",
    "doctor": "core record agents loads vm boards schema exporters report lab audit experiment",
    "api": "core record summary explain judge compare schema experiment",
    "cli": "everything",
}


def imported(tree: ast.AST) -> set[str]:
    """The packages of rtproof that a module imports, anywhere in it."""
    paths = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            paths |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, (
                f"line {node.lineno}: write the import with its full name, so that the layers can be seen"
            )
            paths |= {f"{node.module}.{alias.name}" for alias in node.names}
    parts = [path.split(".") for path in paths]
    return {part[1] for part in parts if part[0] == "rtproof" and len(part) > 1 and not part[1].startswith("__")}


def trespasses(package: str, tree: ast.AST) -> list[str]:
    """A sentence for each import that the table does not allow to a module of ``package``."""
    assert package in MAY_IMPORT, f"{package} is new: give it a row in docs/layers.md and in {Path(__file__).name}"
    allowed = MAY_IMPORT[package].split()
    return [
        f"{package} may not import {other} (docs/layers.md): move what is needed to a lower layer, or hand it in"
        for other in sorted(imported(tree) - {package})
        if "everything" not in allowed and other not in allowed
    ]


def package_of(path: Path) -> str:
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def test_modules_import_only_what_their_layer_may() -> None:
    modules = [path for path in SOURCE.rglob("*.py") if not package_of(path).startswith("__")]
    assert modules
    found = {
        str(path.relative_to(SOURCE)): sentences
        for path in modules
        if (sentences := trespasses(package_of(path), ast.parse(path.read_text())))
    }
    assert found == {}


def test_a_trespass_is_found() -> None:
    for statement in (
        "import rtproof.targets",
        "from rtproof import targets",
        "from rtproof.targets import local",
        "def f():\n  import rtproof.targets.local",
    ):
        (sentence,) = trespasses("summary", ast.parse(statement))
        assert sentence.startswith("summary may not import targets")


def test_the_page_has_the_same_table() -> None:
    rows = re.findall(r"^\| (\w+) \|(.*)\|$", (ROOT / "docs" / "layers.md").read_text(), re.MULTILINE)
    assert [(name, cells.strip().replace(",", "")) for name, cells in rows] == list(MAY_IMPORT.items())


LINE = "SPDX-License-Identifier: Apache-2.0"
FOLDERS = ("agent", "src", "tests", "tools", "bench", "examples", ".ci")
SUFFIXES = {".py", ".c", ".h", ".sh", ".js", ".css", ".toml"}
TOP_FILES = ("Makefile", "agent/Makefile", "pyproject.toml", "hatch_build.py", ".ci/run")


def source_files() -> list[Path]:
    """Ours, that is, without what comes from elsewhere with its own licence."""
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    ours = [path for path in found if "vendor" not in path.parts and "data" not in path.relative_to(ROOT).parts]
    ours = [path for path in ours if not path.is_symlink()]  # of the kernel module, which is GPL-2.0
    return sorted({*ours, *(ROOT / name for name in TOP_FILES)})


def test_the_licence_stands_in_the_first_line_or_after_the_interpreter() -> None:
    for path in source_files():
        first, second, *_ = [*path.read_text(encoding="utf-8").splitlines(), "", ""]
        assert (second if first.startswith("#!") else first).strip("/*#<!-> ") == LINE, path


def test_the_licence_itself_is_there() -> None:
    assert "Apache License" in (ROOT / "LICENSE").read_text()


def test_vendored_files_bring_their_licence() -> None:
    vendored = [path for path in (ROOT / "src/rtproof/report/vendor").glob("*") if path.is_dir()]
    assert vendored
    for folder in vendored:
        assert list(folder.glob("LICENSE*")), f"{folder} has no licence file"


README = (ROOT / "README.md").read_text()


def table(page: str, heading: str) -> dict[str, dict[str, str]]:
    """Cells of the table whose first heading is given, by row and column."""
    lines = page.partition(f"| {heading} |")[2].partition("\n\n")[0].splitlines()
    columns, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {name: dict(zip(columns, cells, strict=True)) for name, *cells in rows}


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 150


def test_the_make_targets_and_links_of_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"(?:`|^    )make ([a-z][\w-]*)", README, re.MULTILINE))
    assert targets
    assert [target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)] == []
    assert [link for link in re.findall(r"\]\(([^)]+)\)", README) if not (ROOT / link).exists()] == []


def test_the_exit_codes_of_the_readme_are_those_of_the_verdicts() -> None:
    told = dict(re.findall(r"^\| ([A-Z]+) \| (\d) \|", README, re.MULTILINE))
    assert told == {state.value: str(state.exit_code) for state in State if state is not State.NOT_ASKED}


LAB = table((ROOT / "docs" / "lab.md").read_text(), "load, us")


def largest_us(cell: str) -> float:
    return float(cell.split(maxsplit=1)[0].replace(",", ""))


def test_in_the_labs_table_preempt_rt_is_below_every_plain_model() -> None:
    assert len(LAB) > 3
    for series in ("debian-6.1", "debian-6.12"):
        for load in LAB.keys() - {"idle"}:
            cells = {system: largest_us(cell) for system, cell in LAB[load].items()}
            (realtime,) = (us for system, us in cells.items() if system.split()[0] == f"{series}-rt")
            plain = [us for system, us in cells.items() if system.split()[0] == series]
            assert len(plain) == 3
            assert realtime < min(plain), (series, load)


def test_the_readmes_table_is_that_of_the_lab() -> None:
    rows = table(README, "largest latency, us")
    assert len(rows) >= 4
    for load, cells in rows.items():
        assert cells.items() <= LAB[load].items()


PAGE = (ROOT / "docs" / "ci.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)


def test_the_exit_codes_of_the_page_on_ci_are_those_of_the_verdicts() -> None:
    told = {word: int(code) for code, word in re.findall(r"^\| (\d) \| (?:all|one) ([A-Z]+)", PAGE, re.MULTILINE)}
    assert told == {state.value: state.exit_code for state in State if state is not State.NOT_ASKED}


@pytest.fixture
def shell(tmp_path: Path) -> Path:
    """A folder with a program ``rtproof`` first in the path, and a folder of runs."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "rtproof").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m rtproof "$@"\n')
    (tools / "rtproof").chmod(0o755)
    (tmp_path / "runs").mkdir()
    return tmp_path


def script(folder: Path, text: str) -> int:
    path = f"PATH={shlex.quote(str(folder / 'bin'))}:$PATH"
    done = subprocess.run(["sh", "-ec", f"{path}\n{text}"], cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode


def test_a_job_that_may_be_too_short_lets_4_pass_and_nothing_else(shell: Path) -> None:
    (line,) = [block.strip() for kind, block in BLOCKS if kind == "sh" and "-eq 4" in block]
    undecided(shell / "runs" / "a")
    assert script(shell, line) == 0
    refuted(shell / "runs" / "b")
    assert script(shell, line) == 1


def test_the_step_of_github_writes_the_summary_and_keeps_the_exit_code(shell: Path) -> None:
    (job,) = [block for kind, block in BLOCKS if kind == "yaml" and "GITHUB_STEP_SUMMARY" in block]
    step = job.partition("- run: |\n")[2].partition("      - uses")[0]
    proven(shell / "runs" / "a")
    undecided(shell / "runs" / "b")
    (shell / "summary").write_text("before\n")
    assert script(shell, f"export GITHUB_STEP_SUMMARY=summary\n{step}") == 4
    assert (shell / "summary").read_text().startswith("before\n## rtproof: UNDECIDED - the worst of 2 runs")
    assert (shell / "rtproof.xml").read_bytes().startswith(b"<?xml")


def test_the_glossary_defines_each_word_once_and_links_to_it_lead_somewhere() -> None:
    glossary = (ROOT / "docs" / "glossary.md").read_text()
    terms = re.findall(r"^### (.+)$", glossary, re.MULTILINE)
    assert len(terms) == len(set(terms)) > 20
    assert re.findall(r'^### (.+)\n\n(?:.+\n)*.*[."]$', glossary, re.MULTILINE) == terms
    anchors = {heading.lower().replace(" ", "-") for heading in re.findall(r"^#+ (.*)$", glossary, re.MULTILINE)}
    pages = "\n".join(path.read_text() for path in (ROOT / "docs").rglob("*.md"))
    linked = set(re.findall(r"glossary\.md#([\w-]+)", pages))
    assert linked
    assert linked <= anchors


# The agent's folders keep to the table of docs/layers.md, and no two of its files need each other.


AGENT = ROOT / "agent"
CONTRACTS = {"probes/probe.h", "loads/load.h"}
"""What a plug-in promises. A row of the table names them ``contracts``."""
TABLE = re.compile(r"^\| `agent/(?P<folder>[a-z/]*)` \| *(?P<may>[^|]*?) *\|", re.MULTILINE)
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def sources() -> dict[str, set[str]]:
    """Each file of the agent but its tests, and what it includes, both from the agent's folder."""
    files = [path for path in AGENT.rglob("*.[ch]") if path.relative_to(AGENT).parts[0] != "tests"]
    return {str(path.relative_to(AGENT)): set(INCLUDE.findall(path.read_text())) for path in files}


def allowed() -> dict[str, set[str]]:
    """The table: each folder, and those that it may include from."""
    text = (ROOT / "docs" / "layers.md").read_text()
    return {row["folder"].rstrip("/"): set(re.findall(r"[a-z/]+", row["may"])) for row in TABLE.finditer(text)}


def folder(file: str) -> str:
    return file.rpartition("/")[0]


def test_every_folder_is_in_the_table() -> None:
    assert {folder(file) for file in sources() if folder(file)} == set(allowed())


def test_a_folder_includes_only_what_the_table_allows() -> None:
    table_rows = allowed()
    for file, all_included in sources().items():
        may = table_rows.get(folder(file), set()) | {folder(file)}
        for included in all_included if folder(file) else ():
            assert folder(included) in may or ("contracts" in may and included in CONTRACTS), f"{file}: {included}"


def test_the_table_has_no_circle() -> None:
    TopologicalSorter({name: may - {"contracts"} for name, may in allowed().items()}).prepare()


def test_no_two_files_need_each_other() -> None:
    """A .c and its .h are one; CycleError names the files of a circle."""
    needs: dict[str, set[str]] = {}
    for file, included in sources().items():
        one = file[:-2]
        needs.setdefault(one, set()).update(name[:-2] for name in included if name[:-2] != one)
    TopologicalSorter(needs).prepare()


def test_what_is_included_is_there() -> None:
    """Each include is written from the agent's folder."""
    assert {name for included in sources().values() for name in included} <= set(sources()) | {"probes/kernel/kmod.h"}


PAGE_ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_every_path_on_the_page_is_there() -> None:
    """A file of an addition has NAME or SUBJECT in place of its name, or of its end: its folder is there."""
    paths = re.findall(r"`((?:src|agent|tools|docs)/[\w/.-]+)`", PAGE_ARCHITECTURE)
    assert len(paths) > 30
    assert [path for path in paths if not (ROOT / re.sub(r"/\w*(NAME|SUBJECT)\.\w+$", "", path)).exists()] == []


def test_the_way_to_the_exit_code_has_ten_steps_and_each_names_a_file() -> None:
    way = PAGE_ARCHITECTURE.partition("\n## From ")[2].partition("\n## ")[0]
    steps = re.split(r"\n\d+\. ", way)[1:]
    assert len(steps) == 10
    assert [step for step in steps if not re.search(r"`(src|agent)/[\w/]+\.(py|c)`", step)] == []


def test_the_files_of_the_sets_are_there() -> None:
    left_out = " ".join(LENGTHY.values()).split()
    assert [name for name in left_out if not (ROOT / "tests" / f"test_{name}.py").exists()] == []
    assert len(left_out) == len(set(left_out))
    assert set(REPEATABLE.split()) <= set(left_out)


@pytest.mark.parametrize("read", [lambda place: place.read_bytes(), lambda place: list(place.iterdir())])
def test_pytest_finds_tests_without_the_users_cache(
    read: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While pytest collects, no test runs, and then whatever reads the cache is refused."""
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    with pytest.raises(AssertionError, match="is read while pytest collects"):
        read(CACHE / "rtproof" / "agents")
