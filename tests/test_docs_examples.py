# SPDX-License-Identifier: Apache-2.0
"""Examples in the pages are run, and every command line that a page names is one that the program takes."""

import re
import shlex
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import click
import pytest
from docs_examples import ROOT, ExampleError, Page, is_as_shown, parse_page, read_page, run_page

from rtproof.cli.main import cli

FOLDERS = ("tutorials", "how-to", "python")
PATHS = [path for folder in FOLDERS for path in sorted((ROOT / "docs" / folder).glob("*.md"))]


def _cases(*, slow: bool) -> list[object]:
    """A page whose marks are wrong is a case of the ordinary tests, and fails there."""
    found: list[object] = []
    for path in PATHS:
        name = f"{path.parent.name}/{path.stem}"
        try:
            page = read_page(path)
        except ExampleError:
            page = None
        if slow and page and page.has_slow_part:
            found.append(pytest.param(path, id=name))
        elif not slow and not (page and page.is_all_slow):
            found.append(pytest.param(path, id=name, marks=[pytest.mark.real] if page and page.measures else []))
    return found


def run_or_skip(path: Path, folder: Path, *, slow: bool) -> None:
    reasons = run_page(read_page(path), folder, slow=slow)
    if reasons:
        pytest.skip("; ".join(reasons))


@pytest.mark.parametrize("path", _cases(slow=False))
def test_the_examples_of_a_page_do_what_it_says(path: Path, tmp_path: Path) -> None:
    run_or_skip(path, tmp_path, slow=False)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_page_says_where_a_reader_gets_the_run_that_it_opens(path: Path) -> None:
    for name in read_page(path).marks.golden:
        assert f"tests/data/golden/{name}.rtrec" in path.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("path", _cases(slow=True))
def test_with_its_slow_examples(path: Path, tmp_path: Path) -> None:
    run_or_skip(path, tmp_path, slow=True)


# Self-tests of the runner.


def page(text: str) -> Page:
    return parse_page("page.md", f"# Page\n\n{text}")


def fence(language: str, *lines: str, mark: str = "") -> str:
    return "".join(f"{line}\n" for line in (*([mark] if mark else []), f"```{language}", *lines, "```"))


RIGHT = {
    "a command": fence("console", "$ echo one", "one"),
    "numbers and white space": fence(
        "console", "$ echo '1,234.5   us in 20261123T193806Z-vm'", "9 us in 20250101T000000Z-a-b"
    ),
    "small bars and rules": fence("console", "$ echo '▁▂█ ------'", "▇▇ ---"),
    "left out lines": fence("console", "$ seq 3; echo end", "1", "...", "end"),
    "nothing was left out": fence("console", "$ echo a; echo b", "a", "...", "b"),
    "a full stop before what is left out": fence("console", "$ echo One. Two.", "One.", "...", "Two."),
    "the exit code": fence("console", "$ (exit 4)  # exit code 4"),
    "one of the exit codes": fence("console", "$ (exit 3)  # exit code 1, 3 or 4"),
    "both outputs": fence("console", "$ echo a; echo b >&2", "a", "b"),
    "a continued command": fence("console", "$ echo one \\", "    two", "one two"),
    "one shell for all": fence("console", "$ mkdir n && cd n && a=b") + fence("console", "$ echo ${PWD##*/} $a", "n b"),
    "the last exit code": fence("console", "$ false  # exit code 1", "$ [ $? = 1 ]"),
    "one namespace": fence("python", "value = 'word'") + fence("pycon", ">>> value", "'word'", ">>> 1.5", "2.5"),
    "one folder": fence("console", "$ echo text >file") + fence("python", "assert open('file').read() == 'text\\n'"),
    "not run": fence("console", "$ false", mark="% not run: it fails"),
    "a file": fence("sh", "echo from a file", mark="% file: a.sh") + fence("console", "$ sh a.sh", "from a file"),
    "inside of a directive": "````{note}\n" + fence("console", "$ true") + "````\n" + fence("console", "$ true"),
    "indented": "1. step\n\n   ```console\n   $ echo one\n   one\n   ```\n",
}  # fmt: skip
WRONG = {
    "a wrong exit code": (fence("console", "$ true", "$ (exit 4)"), r"page.md:5: exit code 4, but 0 is expected\n"),
    "the exit code 0": (fence("console", "$ true  # exit code 4"), r"page.md:4: exit code 0, but 4 is expected"),
    "wrong output": (
        fence("console", "$ echo one", "two"),
        r"page.md:4: the output is not as shown\ncommand:\n    echo one\nexpected:\n    two\nprinted:\n    one$",
    ),
    "output that goes on": (fence("console", "$ echo one; echo more", "one"), r"page.md:4: the output is not as shown"),
    "the end of the shell": (fence("console", "$ exit 0", "$ true"), r"page.md:4: the command ended the shell"),
    "no command": (fence("console", "echo one"), r"page.md:4: a console begins with '\$ COMMAND'"),
    "a wrong doctest": (fence("pycon", ">>> 'a'", "'b'"), r"(?s)page.md:4: an example.*Expected:.*'b'.*Got:.*'a'"),
    "no doctest": (fence("pycon", "1 + 1"), r"page.md:4: a pycon block needs"),
    "an exception": (fence("python", "a = 1", "a.none"), r"(?s)page.md:4: the example raises.*line 5.*a\.none"),
    "an unknown mark": (fence("console", "$ true", mark="% sloww"), r"there is no mark '% sloww' here"),
    "a mark of the top": (fence("console", "$ true", mark="% golden: i386"), r"there is no mark '% golden: i386' here"),
    "not run without a reason": (fence("console", "$ true", mark="% not run:"), r"the mark '% not run:' lacks"),
    "a reason without its colon": (fence("console", "$ true", mark="% not run"), r"the mark '% not run' lacks"),
    "a mark before no fence": (f"% slow\n\n{fence('console', '$ true')}", r"page.md:4: the mark '% slow' stands"),
    "commands that are not run": (fence("sh", "true"), r"page.md:4: a fence 'sh' is not run: make it a console"),
}  # fmt: skip


@pytest.mark.parametrize("text", RIGHT.values(), ids=RIGHT)
def test_a_right_example_passes(text: str, tmp_path: Path) -> None:
    assert run_page(page(text), tmp_path, slow=False) == []


@pytest.mark.parametrize(("text", "sentence"), WRONG.values(), ids=WRONG)
def test_a_wrong_example_fails_with_page_and_line(text: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(ExampleError, match=sentence):
        run_page(page(text), tmp_path, slow=False)


def test_a_command_that_takes_too_long_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("docs_examples.COMMAND_PATIENCE_S", 0.2)
    with pytest.raises(ExampleError, match=r"page.md:4: the command ended the shell or took too long"):
        run_page(page(fence("console", "$ sleep 60")), tmp_path, slow=False)


def test_slow_examples_are_run_by_the_slow_tests_only(tmp_path: Path) -> None:
    slow = page(fence("console", "$ false", mark="% slow"))
    assert slow.has_slow_part
    for name in ("ordinary", "slow"):
        (tmp_path / name).mkdir()
    assert run_page(slow, tmp_path / "ordinary", slow=False) == []
    with pytest.raises(ExampleError, match="exit code 1"):
        run_page(slow, tmp_path / "slow", slow=True)


def test_what_lacks_a_program_is_left_out_with_the_reason(tmp_path: Path) -> None:
    text = fence("console", "$ false", mark="% needs: sh no-such-program") + fence("console", "$ touch here")
    assert run_page(page(text), tmp_path, slow=False) == ["page.md:5: there is no no-such-program"]
    assert (tmp_path / "page" / "here").exists()


def test_golden_runs_are_copied(tmp_path: Path) -> None:
    shown = fence("console", "$ rtproof show runs/x86_64-1.3  # exit code 1", "...", "REFUTED", "...")
    golden = parse_page("page.md", f"% golden: x86_64-1.3\n\n# Page\n\n{shown}")
    assert run_page(golden, tmp_path, slow=False) == []


def test_an_unknown_golden_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(ExampleError, match=r"page.md:1: there is no golden run 'none'"):
        run_page(parse_page("page.md", "% golden: none\n\n# Page\n"), tmp_path, slow=False)


@pytest.mark.parametrize(
    ("shown", "printed"), [("word", "other"), ("a 1", "a one"), ("a ... c", "a b d"), ("a", "a b")]
)
def test_other_words_are_another_output(shown: str, printed: str) -> None:
    assert not is_as_shown(shown, printed)


# Every command line that a page names is one that the program takes.


PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "kmod/README.md")),
    *(path for path in sorted((ROOT / "docs").rglob("*.md")) if "generated" not in path.parts),
]
BLOCK = re.compile(
    r"^ *(`{3,})[^\n]*\n(?P<fenced>.*?)^ *\1 *$|^ {4,}(?P<indented>[$r][^\n]*)$", re.MULTILINE | re.DOTALL
)
INLINE = re.compile(r"`(rtproof\s[^`]*)`")
TYPED = re.compile(
    r"(?:^|[;&|(])[ \t]*(?:[-$#] )*(?:run: )?(?:(?:sudo|nice|time|if|!|[A-Z_]+=\S*) )*(?=(rtproof (?!\w+:)[^\n]*))",
    re.MULTILINE,
)
OPERATORS = re.compile(r"[;&|<>()]+")
PLACEHOLDER = re.compile(r"[^a-z]*[A-Z][^a-z]*")


def command_lines(text: str) -> list[tuple[int, str]]:
    """The command lines in fences and indented blocks, each with its line."""
    text = re.sub(r"\\\n", "  ", text)
    blocks = [(each.start(each.lastgroup), each[each.lastgroup]) for each in BLOCK.finditer(text) if each.lastgroup]
    found = [(at + each.start(1), each[1]) for at, block in blocks for each in TYPED.finditer(block)]
    return [(text.count("\n", 0, at) + 1, line) for at, line in sorted(found)]


def lines_in_sentences(text: str) -> list[tuple[int, str]]:
    """The command lines with an option that stand in sentences, each with its line."""
    prose = BLOCK.sub(lambda found: "\n" * found[0].count("\n"), text)
    found = [(each.start(1), " ".join(each[1].split())) for each in INLINE.finditer(prose) if " -" in each[1]]
    return [(prose.count("\n", 0, at) + 1, line) for at, line in found]


def _each(lines_of: Callable[[str], list[tuple[int, str]]]) -> list[object]:
    return [
        pytest.param(line, id=f"{path.relative_to(ROOT)}:{number}")
        for path in PAGES
        for number, line in lines_of(path.read_text(encoding="utf-8"))
    ]


LINES, SENTENCES = _each(command_lines), _each(lines_in_sentences)


def shell_words(line: str) -> list[str]:
    """The words of the first command of a line."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if OPERATORS.fullmatch(word):
            return words[:-1] if words[-1].isdigit() and ">" in word else words
        words.append(word)
    return words


def parse_line(line: str) -> None:
    """Raises click.UsageError if there is no such command or option, or an option does not take its value.

    Whether files are there is not asked. A value in capitals stands for one that the reader chooses.
    """
    command: click.Command = cli
    context = click.Context(cli, info_name="rtproof")
    words = shell_words(line)[1:]
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(context, words[0])
        if found is None:
            raise click.UsageError(f"there is no command {words[0]}")
        command, context, words = found, click.Context(found, parent=context, info_name=words[0]), words[1:]
    values, _, _ = command.make_parser(context).parse_args(words)
    for parameter in command.params:
        given = values.get(parameter.name or "")
        if isinstance(parameter, click.Option) and not isinstance(parameter.type, click.Path) and given is not None:
            chosen = [value for value in (given if parameter.multiple else [given]) if not _is_placeholder(value)]
            parameter.type_cast_value(context, chosen if parameter.multiple else chosen[0] if chosen else None)


def _is_placeholder(value: object) -> bool:
    return isinstance(value, str) and PLACEHOLDER.fullmatch(value) is not None


@pytest.mark.parametrize("line", LINES)
def test_the_program_takes_a_command_line_of_a_page(line: str) -> None:
    parse_line(line)


@pytest.mark.parametrize("line", SENTENCES)
def test_the_program_takes_a_command_line_in_a_sentence(line: str) -> None:
    """Its last option may stand without a value."""
    with suppress(click.BadOptionUsage):
        parse_line(line)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("rtproof rum --duration 1s", "there is no command rum"),
        ("rtproof run --durasion 1s", "No such option"),
        ("rtproof run --duration", "requires an argument"),
        ("rtproof run --duration soon", "'soon' is not a duration"),
        ("rtproof run --limit 1ms --limit soon", "'soon' is not a duration"),
    ],
)
def test_a_command_line_with_a_mistake_is_found(line: str, sentence: str) -> None:
    with pytest.raises(click.UsageError, match=sentence):
        parse_line(line)


def test_command_lines_are_found_where_pages_have_them() -> None:
    text = (
        "    rtproof run --limit 1ms || true\n\n```console\n$ rtproof show a \\\n    --json  # exit code 4\n"
        "rtproof: not a command\n```\n"
        "```yaml\n    - run: rtproof judge runs && rtproof audit\n```\n"
        "In a sentence rtproof\nruns, or `rtproof\nplan -h`.\n"
    )
    found = [shell_words(line) for _, line in command_lines(text)]
    assert found == [
        ["rtproof", "run", "--limit", "1ms"],
        ["rtproof", "show", "a", "--json"],
        ["rtproof", "judge", "runs"],
        ["rtproof", "audit"],
    ]
    assert lines_in_sentences(text) == [(12, "rtproof plan -h")]


def test_pages_name_many_commands() -> None:
    assert len(LINES) > 60
    assert len(SENTENCES) > 10
