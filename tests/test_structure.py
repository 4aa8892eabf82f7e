# SPDX-License-Identifier: Apache-2.0
"""The figures of the repository's structure: they are no worse than committed, and each counts what it says."""

import ast
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import agent_source
import pytest
import structure

ROOT = Path(__file__).parent.parent
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
