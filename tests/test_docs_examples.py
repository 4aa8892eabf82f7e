# SPDX-License-Identifier: Apache-2.0
"""Examples in the pages are run, and every command line that a page names is one that the program takes."""

import re
import shlex
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import click
import pytest
from docs_examples import ROOT, ExampleError, read_page, run_page

from rtproof.cli.main import cli

FOLDERS = ("tutorials", "how-to", "python")
PATHS = [
    *(path for folder in FOLDERS for path in sorted((ROOT / "docs" / folder).glob("*.md"))),
    *(ROOT / "docs" / name for name in ("boards.md", "pytest.md")),
]


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


@pytest.mark.slow
@pytest.mark.parametrize("path", _cases(slow=True))
def test_with_its_slow_examples(path: Path, tmp_path: Path) -> None:
    run_or_skip(path, tmp_path, slow=True)


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
    context = click.Context(cli, info_name="rtproof", **cli.context_settings)
    words = shell_words(line)[1:]
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(context, words[0])
        if found is None:
            raise click.UsageError(f"there is no command {words[0]}")
        command, context, words = found, click.Context(found, parent=context, info_name=words[0]), words[1:]
    values, _, _ = command.make_parser(context).parse_args(words)
    for parameter in command.params:
        given = values.get(parameter.name or "")
        if given is not None:  # click puts the value of an option without one here: -t
            given, _ = parameter.consume_value(context, values)
        if isinstance(parameter, click.Option) and not isinstance(parameter.type, click.Path) and given is not None:
            chosen = [value for value in (given if parameter.multiple else [given]) if not _is_placeholder(value)]
            parameter.type_cast_value(context, chosen if parameter.multiple else chosen[0] if chosen else None)


def _is_placeholder(value: object) -> bool:
    return isinstance(value, str) and PLACEHOLDER.fullmatch(value) is not None


def mistakes(lines_of: Callable[[str], list[tuple[int, str]]], ignored: tuple[type[Exception], ...] = ()) -> list[str]:
    """The command lines that the program does not take, each with its place."""
    found = [(path, *each) for path in PAGES for each in lines_of(path.read_text(encoding="utf-8"))]
    assert len(found) > 10
    wrong = []
    for path, number, line in found:
        try:
            with suppress(*ignored):
                parse_line(line)
        except click.UsageError as error:
            wrong.append(f"{path.relative_to(ROOT)}:{number}: {error.format_message()}")
    return wrong


def test_the_program_takes_the_command_lines_of_the_pages() -> None:
    """In a sentence the last option of a line may stand without a value."""
    assert mistakes(command_lines) == []
    assert mistakes(lines_in_sentences, (click.BadOptionUsage,)) == []
    with pytest.raises(click.UsageError, match="No such option"):
        parse_line("rtproof run --durasion 1s")
