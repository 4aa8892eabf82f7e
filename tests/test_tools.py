# SPDX-License-Identifier: Apache-2.0
"""The scripts behind ``make test``: they wait for another apt-get, and a part that fails does not stop the others."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import agent_source
import draw_structure
import live_view_picture
import pytest
import structure
from draw_structure import Packages

ROOT = Path(__file__).parent.parent
LISTS = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1 (apt-get)"
ARCHIVES = "E: Could not get lock /var/cache/apt/archives/lock. It is held by process 1 (apt-get)"


def program(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(("#!/bin/sh", *lines, "")))
    path.chmod(0o755)


def run(folder: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**plain, "PATH": path, **environment},
    )


@pytest.fixture
def debian(tmp_path: Path) -> Path:
    """A system where a package is missing until apt-get has installed it; apt-get fails as files named ``busy`` say."""
    program(tmp_path / "bin/id", "echo 0")
    program(tmp_path / "bin/sleep", "echo slept >> slept")
    program(tmp_path / "bin/dpkg-query", "[ -e installed ] && echo -n installed")
    program(
        tmp_path / "bin/apt-get",
        'echo "$@" >> calls',
        'case "$*" in *update*) busy=busy-update ;; *) busy=busy-install ;; esac',
        "if [ -s $busy ]; then head -n 1 $busy >&2; sed -i 1d $busy; exit 100; fi",
        'case "$*" in *install*) touch installed ;; esac',
    )
    return tmp_path


def apt(debian: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return run(debian, "sh", str(ROOT / "tools/apt.sh"), "some-package", **environment)


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_packages_are_installed_with_patience_for_the_lock_of_dpkg(debian: Path) -> None:
    done = apt(debian)
    assert (done.returncode, done.stdout, done.stderr) == (0, "installing with apt-get: some-package\n", "")
    update, install = (debian / "calls").read_text().splitlines()
    assert update.endswith("update")
    assert install.endswith("install --yes --no-install-recommends some-package")
    assert "-o DPkg::Lock::Timeout=600" in install


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_locks_without_a_timeout_are_asked_for_again(debian: Path) -> None:
    (debian / "busy-update").write_text(f"{LISTS}\n" * 3)
    (debian / "busy-install").write_text(f"{ARCHIVES}\n" * 2)
    done = apt(debian)
    assert done.returncode == 0
    assert (debian / "installed").exists()
    assert (debian / "slept").read_text().count("slept") == 5
    assert done.stderr == "waiting for another apt-get\n" * 2


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_the_patience_ends(debian: Path) -> None:
    (debian / "busy-update").write_text(f"{LISTS}\n" * 9)
    (debian / "busy-install").write_text(f"{LISTS}\n" * 9)
    done = apt(debian, LOCK_PATIENCE_S="2")
    assert "missing, and not installed" in done.stderr
    assert LISTS in done.stderr
    assert (debian / "slept").read_text().count("slept") == 4


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_an_error_that_is_no_lock_is_told_at_once(debian: Path) -> None:
    (debian / "busy-install").write_text("E: Unable to locate package some-package\n")
    done = apt(debian)
    assert "Unable to locate package" in done.stderr
    assert "missing, and not installed" in done.stderr
    assert not (debian / "slept").exists()


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_all_parts_run_and_those_that_failed_are_named(tmp_path: Path) -> None:
    done = run(
        tmp_path, "sh", str(ROOT / "tools/parts.sh"), "echo one", "exit 3", "echo 'two words'; exit 4", "echo last"
    )
    assert done.returncode == 3
    assert done.stdout.splitlines() == [
        "echo one",
        "one",
        "exit 3",
        "echo 'two words'; exit 4",
        "two words",
        "echo last",
        "last",
    ]
    assert done.stderr.splitlines() == [
        "",
        "failed with exit code 3: exit 3",
        "failed with exit code 4: echo 'two words'; exit 4",
    ]


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_parts_that_all_succeed_end_with_the_last_line_of_the_last(tmp_path: Path) -> None:
    done = run(tmp_path, "sh", str(ROOT / "tools/parts.sh"), "true", "echo 7 passed")
    assert (done.returncode, done.stderr, done.stdout.splitlines()[-1]) == (0, "", "7 passed")


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_who_interrupts_a_part_ends_all(tmp_path: Path) -> None:
    done = run(tmp_path, "sh", str(ROOT / "tools/parts.sh"), "exit 130", "echo last")
    assert (done.returncode, done.stdout) == (130, "exit 130\n")


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
@pytest.mark.parametrize("failing", ["agent", "environment", "pytest"])
def test_make_test_runs_everything_whatever_fails(failing: str, tmp_path: Path) -> None:
    """Every part is replaced by one that notes that it ran."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools/parts.sh", tmp_path / "tools")
    ends = {part: f"exit {int(part == failing)}" for part in ("agent", "environment", "pytest")}
    for script in ("apt", "kernels"):
        program(tmp_path / f"tools/{script}.sh", f"echo {script} >> ran")
    program(tmp_path / "tools/venv.sh", "echo environment >> ran", ends["environment"])
    program(tmp_path / ".venv/bin/python", "echo pytest >> ran", "echo 7 of pytest", ends["pytest"])
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent/Makefile").write_text(f"check:\n\t@echo agent >> ../ran; {ends['agent']}\n")
    done = run(tmp_path, "make", "test")
    ran = (tmp_path / "ran").read_text().split()
    assert ran[0] == "apt"
    assert set(ran) >= {"agent", "environment", "pytest"}
    assert ran.count("agent") == 3
    assert ran[-1] == "pytest"
    assert done.returncode != 0
    assert "failed with exit code" in done.stderr
    assert {"agent": "agent-checks", "environment": "environment", "pytest": "-m pytest"}[failing] in done.stderr


# The table of profiles in docs/profiles.md, from results to Markdown, and what is said of it.


MARKS = "before\n<!-- tools/profile_table.py writes from here -->\nold\n<!-- to here: the profiles -->\nafter\n"
RT, PLAIN = "debian-6.1-rt", "debian-6.1 preempt=none"


def analysis(largest_ns: int, out_of_band: int = 0) -> dict[str, Any]:
    return {
        "record": {"kernel_release": "6.1.0-rt" if largest_ns < 10_000 else "6.1.0"},
        "pooled": {"observed": {"max_ns": largest_ns}},
        "stages": [{"field": "top", "observed": {"max_ns": 1_000}}, {"field": "end", "observed": {"max_ns": 2_000}}],
        "cycles": {"short_count": out_of_band, "long_count": 1, "counted_count": 1_800},
    }


def cell(key: str, *article: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    results = [{"system": RT, "analysis": analysis(6_249)}, {"system": PLAIN, "analysis": analysis(1_234_567, 40)}]
    return {"key": key, "results": results, "article": [{"key": name, "figures": found} for name, found in article]}


def us(value: int, at_least: bool = False) -> dict[str, Any]:
    return {"value": value * 1_000, "at_least": at_least}


def count(value: int) -> dict[str, Any]:
    return {"value": value, "at_least": False}


def cycles(below: int, above: int) -> dict[str, Any]:
    return {"below": count(below), "above": count(above), "count": count(11_000)}


GPIO = (("gpio-rt", {"max": us(608)}), ("gpio-g45-rt", {"max": us(618)}), ("gpio-plain", {"max": us(30_000, True)}))
THREADS = ("imx6-rt", {"thread 0.max": us(166), "thread 1.max": us(187)})
RESULTS = {
    "bootlin-gpio": [cell("loaded", *GPIO)],
    "bootlin-timer": [cell("clock-nanosleep", ("g20-rt", {"max": us(177)})), cell("posix-timer")],
    "bootlin-xenomai": [cell("user")],
    "akamina": [cell("loaded")],
    "ten-ms": [cell("fifo--stress", ("fifo", cycles(0, 0))), cell("other--stress", ("other", cycles(3, 2)))],
    "simple-rt-app": [cell("loaded", ("plain", {"top.max": us(1_642)}), ("rt", {"top.max": us(546)}))],
    "toradex": [cell("loaded", THREADS, ("imx6-voluntary", {"thread 0.max": us(23_350)}))],
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "tools").mkdir()
    (tmp_path / "docs").mkdir()
    for name in ("profile_table.py", "lab_table.py"):
        shutil.copy(ROOT / "tools" / name, tmp_path / "tools")
    (tmp_path / "docs" / "profiles.md").write_text(MARKS)
    for name, cells in RESULTS.items():
        (tmp_path / "found" / name).mkdir(parents=True)
        (tmp_path / "found" / name / "result.json").write_text(json.dumps({"cells": cells}))
    return tmp_path


def write(checkout: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(checkout / "tools" / "profile_table.py"), str(checkout / "found")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_results_become_a_table_between_the_marks(checkout: Path) -> None:
    assert write(checkout).returncode == 0
    text = (checkout / "docs" / "profiles.md").read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    rows = {line.split(" | ")[0]: line for line in text.splitlines() if line.startswith("| ")}
    assert rows["| bootlin-gpio, edge to answer"].endswith(" | 6.2 | 1,234.6 | 608 to 618 | > 30,000 |")
    assert rows["| bootlin-timer, clock_nanosleep"].endswith(" | 6.2 | 1,234.6 | 177 |  |")
    assert rows["| simple-rt-app, top of loop"].endswith(" | 1.0 | 1.0 | 546 | 1,642 |")
    assert rows["| toradex, random interrupts (plain: voluntary, full)"].endswith(" | 187 | 23,350 |")
    (ten,) = (row for name, row in rows.items() if name.startswith("| ten-ms"))
    assert ten.endswith(" | 1 of 1,800 | 41 of 1,800 | 0 of 11,000 | 5 of 11,000 |")
    assert "Made with 6.1.0, 6.1.0-rt." in text


def test_without_the_marks_nothing_is_written(checkout: Path) -> None:
    (checkout / "docs" / "profiles.md").write_text("no marks\n")
    done = write(checkout)
    assert done.returncode == 1
    assert done.stderr == "profiles.md does not have the marks any more\n"
    assert (checkout / "docs" / "profiles.md").read_text() == "no marks\n"


MARKED = (ROOT / "docs" / "profiles.md").read_text().partition("profile_table.py writes from here")[2]
TABLE = [
    [part.strip() for part in line.strip("|").split("|")]
    for line in MARKED.partition("to here: the profiles")[0].splitlines()
    if line.startswith("| ") and "---" not in line and not line.startswith("| profile, us")
]


def numbers(text: str) -> list[float]:
    """Largest values of each system, or how many cycles were out of the band."""
    return [float(each.replace(",", "")) for each in re.findall(r"[\d,]+(?:\.\d+)?", text.partition(" of ")[0])]


@pytest.mark.parametrize("row", TABLE, ids=[row[0].split(",")[0] for row in TABLE])
def test_every_profile_tells_the_plain_kernel_from_preempt_rt(row: list[str]) -> None:
    label, rt, *plain = row[0], *numbers(row[1]), *numbers(row[2].replace(", ", " "))
    assert rt < min(plain), label


def test_every_profile_has_a_row() -> None:
    assert {row[0].split(",")[0] for row in TABLE} == set(RESULTS)


# The picture of the packages: it shows the source as it is, and each arrow leads downwards.


SVG = "{http://www.w3.org/2000/svg}"
SMALL = Packages(
    {"top": 3, "left": 1, "right": 2, "base": 1},
    {("top", "left"): 1, ("top", "right"): 5, ("top", "base"): 70, ("left", "base"): 2, ("right", "base"): 16},
)


@pytest.fixture(scope="module")
def drawn() -> str:
    """The picture of the source as it is."""
    return draw_structure.draw(draw_structure.read_packages(structure.ROOT))


def groups(picture: str, kind: str) -> list[ElementTree.Element]:
    root = ElementTree.fromstring(picture)
    return [each for each in root.iter(f"{SVG}g") if each.get("class") == kind]


def titles(picture: str, kind: str) -> list[str]:
    return [each.findtext(f"{SVG}title", "") for each in groups(picture, kind)]


def tops(picture: str) -> dict[str, int]:
    """The upper edge of each box."""
    boxes = ((each.findtext(f"{SVG}text", ""), each.find(f"{SVG}rect")) for each in groups(picture, "box"))
    return {name: int(box.get("y", "")) for name, box in boxes if box is not None}


def test_the_committed_picture_shows_the_packages_and_arrows_of_the_source(drawn: str) -> None:
    committed = draw_structure.PICTURE.read_text(encoding="utf-8")
    if draw_structure.without_numbers(committed) != draw_structure.without_numbers(drawn):
        pytest.fail("packages or their imports have changed: run python tools/draw_structure.py")


def test_every_package_of_the_source_is_drawn(drawn: str) -> None:
    source = structure.ROOT / "src" / "rtproof"
    folders = {path.parent.name for path in source.glob("*/*.py")} | {path.stem for path in source.glob("[!_]*.py")}
    assert set(tops(drawn)) == folders


def test_packages_are_read_with_their_modules_and_imports(tmp_path: Path) -> None:
    source = tmp_path / "src" / "rtproof"
    (source / "p").mkdir(parents=True)
    for name, text in {
        "__init__": "",
        "__main__": "import rtproof.a",
        "a": "import rtproof.p.x\nfrom rtproof import p\nfrom rtproof import __version__",
        "p/__init__": "",
        "p/x": "import rtproof.p",
    }.items():
        (source / f"{name}.py").write_text(text)
    assert draw_structure.read_packages(tmp_path) == Packages({"a": 1, "p": 2}, {("a", "p"): 2})


def test_an_arrow_is_faint_if_its_package_is_reached_through_others() -> None:
    picture = draw_structure.draw(SMALL)
    assert titles(picture, "indirect") == ["top imports base: 70 imports"]
    assert sorted(titles(picture, "direct")) == [
        "left imports base: 2 imports",
        "right imports base: 16 imports",
        "top imports left: 1 import",
        "top imports right: 5 imports",
    ]
    assert titles(picture, "box") == ["base: 1 module", "left: 1 module", "right: 2 modules", "top: 3 modules"]


def test_a_package_stands_above_what_it_imports() -> None:
    top = tops(draw_structure.draw(SMALL))
    assert top["top"] < top["left"] == top["right"] < top["base"]


def test_boxes_of_the_source_do_not_overlap_and_are_within_the_picture(drawn: str) -> None:
    rects = [rect for each in groups(drawn, "box") if (rect := each.find(f"{SVG}rect")) is not None]
    places = sorted((int(rect.get("y", "")), int(rect.get("x", ""))) for rect in rects)
    neighbours = [(one, two) for one, two in pairwise(places) if one[0] == two[0]]
    assert neighbours
    assert all(two[1] - one[1] > draw_structure.BOX_WIDTH for one, two in neighbours)
    _, _, width, height = map(int, ElementTree.fromstring(drawn).get("viewBox", "").split())
    assert all(0 < x < width - draw_structure.BOX_WIDTH and 0 < y < height for y, x in places)


def test_arrows_widen_in_steps() -> None:
    assert [draw_structure.width_of(count) for count in (1, 3, 4, 15, 16, 63, 64)] == [1, 1, 2, 2, 3, 3, 4]


def test_only_numbers_may_differ_from_the_committed_picture() -> None:
    plain = draw_structure.without_numbers(draw_structure.draw(SMALL))
    grown = Packages({**SMALL.modules, "top": 9}, {**SMALL.imports, ("left", "base"): 40})
    assert draw_structure.without_numbers(draw_structure.draw(grown)) == plain
    other = Packages(SMALL.modules, {**SMALL.imports, ("left", "right"): 1})
    assert draw_structure.without_numbers(draw_structure.draw(other)) != plain


def test_the_order_in_which_packages_are_found_does_not_matter() -> None:
    turned = Packages(dict(sorted(SMALL.modules.items())), dict(sorted(SMALL.imports.items(), reverse=True)))
    assert draw_structure.draw(turned) == draw_structure.draw(SMALL)


def test_few_arrows_cross() -> None:
    layers: draw_structure.Layers = [["c", "d"], ["a", "b"]]
    crossed = [["a", "d"], ["b", "c"]]
    assert draw_structure.crossings(layers, crossed) == 1
    best = draw_structure.ordered_layers({"a": 1, "b": 1, "c": 0, "d": 0}, crossed)
    assert draw_structure.crossings(best, crossed) == 0


def test_a_circle_of_packages_is_named() -> None:
    with pytest.raises(SystemExit, match=r"in a circle have no layers: left, top"):
        draw_structure.draw(Packages(SMALL.modules, {**SMALL.imports, ("left", "top"): 1}))


def test_the_picture_says_in_words_what_it_shows_in_light_and_dark() -> None:
    picture = draw_structure.draw(SMALL)
    root = ElementTree.fromstring(picture)
    assert root.findtext(f"{SVG}title") == draw_structure.TITLE
    assert root.findtext(f"{SVG}desc", "").startswith("From top to bottom: top; left, right; base. ")
    assert root.get("aria-labelledby") == "title description"
    assert "prefers-color-scheme: dark" in root.findtext(f"{SVG}style", "")
    assert not re.search(r"https?://(?!www\.w3\.org)", picture)


# The figures of the repository's structure: they are no worse than committed, and each counts what it says.


COMMITTED = ROOT / "tools" / "structure.json"
HELP = "if it is worth it: python tools/structure.py --write tools/structure.json"


def tree(folder: Path, files: Mapping[str, str]) -> Path:
    """The folder, with these files in it by their paths."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def host(folder: Path, modules: Mapping[str, str]) -> Path:
    """The folder, with these modules of the host in it."""
    return tree(folder, {f"src/rtproof/{name}.py": text for name, text in modules.items()})


def figure(folder: Path, key: str) -> structure.Figure:
    """One figure of a made-up repository, which becomes one of git."""
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    subprocess.run(["git", "-C", folder, "add", "--all"], check=True)
    return next(each for each in structure.figures(folder) if each.key == key)


def test_no_figure_is_worse_than_committed() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("git lists the files of the repository, and this is a copy without it")
    committed = structure.read_values(COMMITTED)
    assert structure.complaints(structure.figures(ROOT), committed) == [], HELP


# Imports


@pytest.mark.parametrize(
    "statement",
    [
        "import rtproof.b",
        "from rtproof import b",
        "from rtproof.b import name",
        "from . import b",
        "from .b import name",
        "if True:\n  import rtproof.b",
    ],
)
def test_every_way_to_import_a_module_is_seen(statement: str, tmp_path: Path) -> None:
    modules = structure.host_modules(host(tmp_path, {"a": statement, "b": "name = 1"}))
    assert structure.host_imports(modules) == [structure.Import("rtproof.a", "rtproof.b", late=False)]


@pytest.mark.parametrize("statement", ["def f():\n  import rtproof.b", "if TYPE_CHECKING:\n  import rtproof.b"])
def test_a_late_import_is_told_from_one_at_the_top(statement: str, tmp_path: Path) -> None:
    modules = structure.host_modules(host(tmp_path, {"a": statement, "b": ""}))
    assert structure.host_imports(modules) == [structure.Import("rtproof.a", "rtproof.b", late=True)]


def test_a_name_of_a_package_is_imported_from_its_own_file(tmp_path: Path) -> None:
    root = host(tmp_path, {"a": "from rtproof.p import name, q", "p/__init__": "name = 1", "p/q": ""})
    imports = structure.host_imports(structure.host_modules(root))
    assert [each.imported for each in imports] == ["rtproof.p", "rtproof.p.q"]


def test_a_second_importer_takes_a_module_off_the_list(tmp_path: Path) -> None:
    root = host(tmp_path, {"a": "from rtproof import c", "b": "", "c": ""})
    assert figure(root, "single_importers").items == ("rtproof.c by rtproof.a",)
    host(tmp_path, {"b": "def f():\n  from rtproof import c"})
    assert figure(root, "single_importers").value == 0


def test_a_module_that_imports_another_twice_is_one_importer(tmp_path: Path) -> None:
    root = host(tmp_path, {"a": "import rtproof.b\nfrom rtproof.b import name", "b": "name = 1"})
    assert figure(root, "single_importers").items == ("rtproof.b by rtproof.a",)


def test_plug_ins_and_packages_may_have_one_importer(tmp_path: Path) -> None:
    root = host(
        tmp_path,
        {"a": "from rtproof import targets\nimport rtproof.targets.x", "targets/__init__": "", "targets/x": ""},
    )
    assert figure(root, "single_importers").value == 0


def test_a_planted_circle_is_found(tmp_path: Path) -> None:
    root = host(tmp_path, {"a": "import rtproof.b", "b": "import rtproof.c", "c": "", "d": "import rtproof.a"})
    assert figure(root, "circles_at_start").value == 0
    host(tmp_path, {"c": "import rtproof.a"})
    assert figure(root, "circles_at_start").items == ("3: rtproof.a rtproof.b rtproof.c",)


def test_a_circle_through_a_function_is_in_one_figure_only(tmp_path: Path) -> None:
    root = host(tmp_path, {"a": "import rtproof.b", "b": "def f():\n  import rtproof.a"})
    assert figure(root, "circles_at_start").value == 0
    assert figure(root, "circles").value == 1


def test_packages_may_be_in_a_circle_where_modules_are_not(tmp_path: Path) -> None:
    root = host(tmp_path, {"p/a": "import rtproof.q.b", "q/b": "", "q/c": "import rtproof.p.a"})
    assert figure(root, "circles").value == 0
    assert figure(root, "package_circles").items == ("2: p q",)


def test_circles_that_share_no_node_are_counted_apart() -> None:
    arrows = [("a", "b"), ("b", "a"), ("b", "c"), ("c", "d"), ("d", "c"), ("d", "e"), ("f", "f")]
    assert structure.circles(structure.graph_of(arrows)) == [["a", "b"], ["c", "d"]]


def test_imports_inside_functions_are_counted_once_each(tmp_path: Path) -> None:
    inner = "import os\ndef f():\n  import json\n  def g():\n    import re, sys\nclass C:\n  import ast\n"
    root = host(tmp_path, {"a": inner, "b": "if TYPE_CHECKING:\n  import os\nif typing.TYPE_CHECKING:\n  import os\n"})
    assert figure(root, "function_imports").items == ("rtproof.a:3", "rtproof.a:5")
    assert figure(root, "type_blocks").items == ("rtproof.b:1", "rtproof.b:3")


# Names and sizes


def test_names_that_stand_twice_are_counted_once_each(tmp_path: Path) -> None:
    one, two = "class Asked: pass\nclass Cell: pass", "class Cell: pass\nclass Row: pass"
    root = host(tmp_path, {"p/x": one, "q/x": two, "q/y": "", "p/__init__": "", "q/__init__": "", "p/commands/x": ""})
    assert figure(root, "repeated_modules").items == ("x: rtproof.p.x, rtproof.q.x",)
    assert figure(root, "repeated_classes").items == ("Cell: rtproof.p.x, rtproof.q.x",)
    assert figure(root, "asked_classes").items == ("rtproof.p.x",)


def test_files_and_lines_are_counted(tmp_path: Path) -> None:
    root = host(tmp_path, {"a": "1\n\n2\n", "b": "3"})
    tree(root, {"agent/a.c": "int a;\n", "agent/sub/b.h": "\n\n", "agent/tests/t.c": "\n" * 9, "tests/test_a.py": ""})
    values = {each.key: each.value for each in [figure(root, "files"), *structure.figures(root)]}
    assert (values["host_files"], values["host_lines"]) == (2, 4)
    assert (values["agent_files"], values["agent_lines"]) == (2, 3)
    assert (values["files"], values["test_files"]) == (6, 1)


def test_test_functions_are_counted_without_their_parameters(tmp_path: Path) -> None:
    text = "@parametrize\ndef test_a(): ...\nclass T:\n  async def test_b(self): ...\ndef helper():\n  test_a()\n"
    assert figure(tree(tmp_path, {"tests/test_x.py": text, "tests/cases.py": text}), "test_functions").value == 2


@pytest.mark.parametrize(
    ("text", "complexity"),
    [
        ("def f(): pass", 1),
        ("def f():\n  if a and b and c: pass\n  elif d: pass\n  else: pass", 5),
        ("def f():\n  for x in y:\n    while z: pass", 3),
        ("def f():\n  try: pass\n  except E: pass\n  except F: pass\n  finally: pass", 3),
        ("def f(): return [a if b else c for a in d if e]", 4),
        ("def f():\n  match a:\n    case 1: pass\n    case _: pass", 3),
        ("def f():\n  def g():\n    if a: pass\n  return g", 1),
    ],
)
def test_the_complexity_of_a_python_function(text: str, complexity: int) -> None:
    assert structure.python_complexity(ast.parse(text).body[0]) == complexity


def test_only_python_functions_above_the_bound_are_listed(tmp_path: Path) -> None:
    body = "\n  if a: pass"
    root = host(tmp_path, {"a": f"def ten():{body * 9}\ndef eleven():{body * 10}\n"})
    assert figure(root, "complex_python").items == ("11 rtproof.a.eleven",)


# The agent


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("static int f(void)\n{\n\treturn 1;\n}\n", [("f", 1)]),
        ("int f(int a) { if (a && b || c) return a ? 1 : 2; else return 3; }", [("f", 5)]),
        ("int f(int a) { for (;;) while (a) do g(); while (b); }", [("f", 4)]),
        ("int f(int a) { switch (a) { case 1: case 2: return 1; default: return 2; } }", [("f", 3)]),
        ("int f(void) { /* if && */ puts(\"if (a) && {\"); // while }\n return '?' + '{'; }", [("f", 1)]),
        ("int f(void) { puts(\"\\\"if (\"); return '\\''; }", [("f", 1)]),
        ("#define g(a) \\\n\tif (a) {\nint f(void) { return 1; }", [("f", 1)]),
        ("#error don't\nint f(void) { return 1; } /* isn't */", [("f", 1)]),
        ("struct s { int a; }; enum e { A, B }; static const int t[] = { sizeof(int), 2 };", []),
        ("static const struct s t = { .f = g, .n = sizeof(a) };\nint h(void) { return 1; }", [("h", 1)]),
        ("__attribute__((aligned(64))) int f(int a) { if (a) return 1; return 2; }", [("f", 2)]),
        ("struct __attribute__((packed)) s { int a; };\nint f(void) { return 1; }", [("f", 1)]),
        ("void f(void) { }\nint g(void) { while (1) ; }", [("f", 1), ("g", 2)]),
        ("int f(int a)\n{\n#ifdef X\n\tif (a)\n#else\n\tif (!a)\n#endif\n\t\treturn 1;\n}", [("f", 3)]),
    ],
)
def test_the_complexity_of_c_functions(text: str, found: list[tuple[str, int]]) -> None:
    assert agent_source.functions(text) == found


@pytest.mark.parametrize("text", ["int f(void) { if (a) { }", "int f(void) { } }"])
def test_braces_that_do_not_match_end_the_count_with_the_name_of_the_file(text: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"agent/sub/x\.c: there is an? (opening|closing) brace"):
        agent_source.complex_functions(tree(tmp_path, {"agent/sub/x.c": text}), 15)


def test_only_c_functions_above_the_bound_are_listed(tmp_path: Path) -> None:
    text = f"int fifteen(void) {{ {'if (a) b(); ' * 14} }}\nint sixteen(void) {{ {'if (a) b(); ' * 15} }}"
    assert figure(tree(tmp_path, {"agent/sub/x.c": text}), "complex_c").items == ("16 agent/sub/x.c sixteen",)


def test_a_c_file_and_its_header_are_one_in_the_circles(tmp_path: Path) -> None:
    root = tree(tmp_path, {"agent/a.c": '#include "a.h"\n#include "sub/b.h"\n', "agent/a.h": "", "agent/sub/b.h": ""})
    assert figure(root, "agent_circles").value == 0
    tree(tmp_path, {"agent/sub/b.c": '#include <a.h>\n#include "../a.h"\n'})
    assert figure(root, "agent_circles").items == ("2: a sub/b",)


def test_an_include_is_looked_for_beside_the_file_first(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        {"agent/x.h": "", "agent/sub/x.h": "", "agent/sub/y.c": '#include "x.h"', "agent/z.c": '#include "x.h"'},
    )
    assert agent_source.includes(root) == [("sub/y", "sub/x"), ("z", "x")]


def test_an_include_from_a_folder_of_includes_is_found_wherever_the_file_is(tmp_path: Path) -> None:
    root = tree(tmp_path, {"agent/deep/x.h": "", "agent/y.c": '#include "x.h"\n#include "made_by_the_build.h"'})
    assert agent_source.includes(root) == [("y", "deep/x")]
    tree(tmp_path, {"agent/other/x.h": ""})
    with pytest.raises(SystemExit, match=r"agent/y\.c includes x\.h: nobody can say"):
        agent_source.includes(root)


def test_a_circle_of_calls_is_found_behind_one_header(tmp_path: Path) -> None:
    header = "int f(void);\nint g(void);\n"
    a, b = '#include "all.h"\nint f(void) { return g(); }', '#include "all.h"\nint g(void) { return f(); }'
    root = tree(tmp_path, {"agent/all.h": header, "agent/a.c": a, "agent/b.c": b})
    assert figure(root, "agent_circles").value == 0
    assert figure(root, "agent_circles_used").items == ("2: a b",)


def test_static_functions_of_one_name_are_no_calls(tmp_path: Path) -> None:
    a, b = "static int f(void) { return g(); }\nint g(void) { return f(); }", "static int f(void) { return g(); }"
    assert agent_source.uses(tree(tmp_path, {"agent/a.c": a, "agent/b.c": b})) == [("a", "a"), ("b", "a")]


# The comparison


def of(value: int, has_margin: bool = True, more_is_worse: bool = True) -> structure.Figure:
    return structure.Figure("key", "meaning", value, (), has_margin, more_is_worse)


@pytest.mark.parametrize(
    ("figure", "committed", "is_worse"),
    [
        (of(11), 10, False),
        (of(12), 10, True),
        (of(1_020), 1_000, False),
        (of(1_021), 1_000, True),
        (of(0), 1_000, False),
        (of(1, has_margin=False), 0, True),
        (of(0, has_margin=False), 0, False),
        (of(980, more_is_worse=False), 1_000, False),
        (of(979, more_is_worse=False), 1_000, True),
        (of(2_000, more_is_worse=False), 1_000, False),
    ],
)
def test_a_figure_may_be_worse_by_its_margin(figure: structure.Figure, committed: int, is_worse: bool) -> None:
    assert bool(structure.complaints([figure], {"key": committed})) is is_worse


def test_the_sentence_has_both_values_and_what_is_accepted() -> None:
    (sentence,) = structure.complaints([of(1_234)], {"key": 1_000})
    assert sentence == "key: meaning: 1,234 now, 1,000 committed, at most 1,020 accepted"


def test_circles_and_asked_have_no_margin(tmp_path: Path) -> None:
    figure(tmp_path, "files")
    strict = {each.key for each in structure.figures(tmp_path) if not each.has_margin}
    assert {key for key in strict if "circles" not in key} == {"asked_classes"}
    assert {"circles", "circles_at_start", "package_circles", "agent_circles", "agent_circles_used"} <= strict


def test_a_figure_without_its_partner_is_named() -> None:
    assert len(structure.complaints([of(1)], {"other": 1})) == 2


def test_figures_that_are_written_pass_and_worse_ones_do_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = host(tmp_path / "root", {"a": "import rtproof.b", "b": ""})
    figure(root, "files")
    stored = str(tmp_path / "figures.json")
    assert structure.main([str(root), "--write", stored]) == 0
    assert structure.main([str(root), "--check", stored]) == 0
    host(root, {"b": "import rtproof.a"})
    assert structure.main([str(root), "--check", stored]) == 1
    assert "circles: circles of host modules by all imports: 1 now, 0 committed" in capsys.readouterr().out


def test_json_and_the_table_have_the_same_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figure(host(tmp_path, {"a": "import rtproof.b", "b": ""}), "files")
    assert structure.main([str(tmp_path), "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert structure.main([str(tmp_path)]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert {row[-1]: int(row[0].replace(",", "")) for row in rows} == values
    assert structure.main([str(tmp_path), "--show", "single_importers"]) == 0
    assert capsys.readouterr().out == "rtproof.b by rtproof.a\n"


@pytest.mark.parametrize("content", ["", "[]", '{"files": "many"}', '{"files": true}', "\xff", None])
def test_a_file_without_figures_ends_with_one_sentence(
    content: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figure(tmp_path, "files")
    stored = tmp_path / "figures.json"
    if content is not None:
        stored.write_bytes(content.encode("latin-1"))
    assert structure.main([str(tmp_path), "--check", str(stored)]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert len(output.err.splitlines()) == 1
    assert str(stored) in output.err


@pytest.mark.parametrize("words", [["--show", "nothing"], ["--write", "/proc/none/figures.json"]])
def test_what_cannot_be_done_is_said(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figure(tmp_path, "files")
    assert structure.main([str(tmp_path), *words]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_folder_without_git_and_source_that_cannot_be_parsed_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert structure.main([str(tmp_path)]) == 2
    assert f"git cannot list the files of {tmp_path}" in capsys.readouterr().err
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    assert structure.main([str(host(tmp_path, {"a": "def"}))]) == 2
    assert "a.py" in capsys.readouterr().err


def test_the_picture_of_the_live_view_keeps_colours_and_bold_words() -> None:
    """The codes are those that tmux prints; text stays text, whatever it holds."""
    screen = "a <b> \x1b[1m\x1b[32mPROVEN\x1b[0m in 3 h \x1b[31mx\x1b[39m y"
    drawn = live_view_picture.html_of_screen(screen)
    assert drawn == (
        'a &lt;b&gt; <span style="font-weight:bold;color:#56d364;">PROVEN</span> in 3 h '
        '<span style="color:#ff7b72;">x</span> y'
    )
