# SPDX-License-Identifier: Apache-2.0
"""The documentation as a site and as man pages: no warning, nothing missing, no broken link, an offline search."""

import html
import inspect
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import agent_pages
import check_site
import chromium
import command_pages
import markdown_text
import pytest
import reference_pages

from rtproof import exporters, importers, loads, profiles, targets
from rtproof.agents import build
from rtproof.boards import console_login
from rtproof.core import defects, plugins
from rtproof.judge.analysis_model import State
from rtproof.judge.objections import rules
from rtproof.lab import debian_packages
from rtproof.report import formats

ROOT = Path(__file__).parent.parent
NOT_COPIED = (".git", ".venv", "build", "dist", "docs", "runs")
COMMANDS = command_pages.all_commands()
GENERATED = "reference/generated"
needs_chromium = pytest.mark.skipif(chromium.program() is None, reason="there is no chromium")
OF_THE_THEME = ("landmark-unique", "page-has-heading-one")
"""What axe-core finds in furo's own sidebar and in Sphinx's page of the search; both are no obstacle to anybody."""


def sphinx(builder: str, output: Path, source: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = (
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "--keep-going",
        "-b",
        builder,
        *options,
        str(source),
        str(output),
    )
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)


def copy_docs(folder: Path) -> Path:
    """The pages in a tree of their own, where generated pages disturb nobody, with the rest of the checkout beside."""
    for path in ROOT.iterdir():
        if path.name not in NOT_COPIED:
            (folder / path.name).symlink_to(path)
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("generated", "__pycache__"))
    return folder / "docs"


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_docs(tmp_path_factory.mktemp("checkout"))


@pytest.fixture(scope="module")
def site(docs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = sphinx("html", folder, docs)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder


@pytest.fixture(scope="module")
def man(docs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("man")
    done = sphinx("man", folder, docs / "man", "-c", str(docs), "-D", "root_doc=rtproof")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Browser]:
    with chromium.browser(tmp_path_factory.mktemp("browser")) as running:
        yield running


def text_of(page: Path) -> str:
    """The words of a page in one line, without quotes, which the pages replace by another font."""
    return plain(html.unescape(re.sub(r"<[^>]*>", "", page.read_text(encoding="utf-8"))))


def plain(text: str) -> str:
    return re.sub(r"['`]", "", " ".join(text.split()))


def test_every_link_leads_somewhere_and_nothing_is_loaded_from_a_network(site: Path) -> None:
    assert check_site.faults_of_site(site) == []


def test_every_link_of_the_markdown_beside_the_site_leads_somewhere() -> None:
    assert check_site.faults_of_markdown() == []


STYLE = "_static/site.css"
PLANTED = {
    "gone.html leads to no file": ("index.html", 'href="verdict.html"', 'href="gone.html"'),
    "#gone leads to no place in its page": ("index.html", 'href="#reference"', 'href="#gone"'),
    "it loads https://a.org/a.png from a network": ("loads.html", "<body", '<img src="https://a.org/a.png"><body'),
    "a.png leads to no file": ("loads.html", "<body", '<img srcset="a.png 2x"><body'),
    "http://a.org/ is no https address": ("loads.html", "<body", '<a href="http://a.org/"></a><body'),
    "it loads //a.org/a.css from a network": (STYLE, "code.literal", '@import "//a.org/a.css"; code'),
}


def test_the_check_finds_planted_faults_and_nothing_else(site: Path, tmp_path: Path) -> None:
    broken = tmp_path / "site"
    shutil.copytree(site, broken, ignore=shutil.ignore_patterns(".doctrees"))
    for page, before, after in PLANTED.values():
        text = (broken / page).read_text(encoding="utf-8")
        assert before in text
        (broken / page).write_text(text.replace(before, after, 1), encoding="utf-8")
    assert sorted(check_site.faults_of_site(broken)) == sorted(f"{row[0]}: {fault}" for fault, row in PLANTED.items())


def test_a_markdown_page_with_a_broken_link_is_named(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# A `b` c\n\n[x](#a-b-c) [y](other.md) [z](#gone) ![p](p.png)\n")
    assert check_site.faults_of_markdown(tmp_path) == [
        "README.md: other.md leads to no file",
        "README.md: #gone leads to no place in its page",
        "README.md: p.png leads to no file",
    ]


def test_a_folder_without_a_site_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_site.main(tmp_path) == 1
    assert "run make docs" in capsys.readouterr().out


def test_sphinx_refuses_a_link_to_nowhere(docs: Path, site: Path, tmp_path: Path) -> None:
    """Only the changed page is read again."""
    page = docs / "fuzz.md"
    before = page.read_text()
    page.write_text(f"{before}\n[a](gone.md) [b](verdict.md#no-such-place) [c](#nor-this)\n")
    try:
        done = sphinx("dummy", tmp_path, docs, "-d", str(site / ".doctrees"))
    finally:
        page.write_text(before)
    assert done.returncode == 1
    assert all(name in done.stderr for name in ("gone.md", "no-such-place", "nor-this"))
    assert done.stderr.count("WARNING") == 3


@pytest.mark.parametrize("each", COMMANDS, ids=lambda each: each.name)
def test_every_command_has_a_page_with_all_its_options_and_arguments(
    site: Path, each: command_pages.DocumentedCommand
) -> None:
    page = site / GENERATED / f"commands/{each.name}.html"
    text, ids = text_of(page), check_site.links_of(page).ids
    assert plain(each.synopsis) in text
    for option in each.options:
        for name in [*option.opts, *option.secondary_opts]:
            assert f"cmdoption-{each.words.replace(' ', '-')}-{name.lstrip('-')}" in ids
        assert plain(command_pages.option_help(option)[0]) in text
    for argument in each.arguments:
        assert command_pages.argument_name(argument) in text
    for paragraph in each.help.split("\n\n"):
        assert plain(paragraph.removeprefix("\b").replace("``", "")) in text


def test_a_command_without_words_on_its_exit_code_never_chooses_one() -> None:
    silent = [each for each in COMMANDS if command_pages.exit_sentence(each) == command_pages.WITHOUT_CODES]
    assert len(silent) > 5
    for each in silent:
        assert each.command.callback is None or ".exit(" not in inspect.getsource(inspect.unwrap(each.command.callback))


def test_the_page_of_exit_codes_has_every_state_and_command(site: Path) -> None:
    text = text_of(site / GENERATED / "exit-codes.html")
    for state in State:
        assert f"{state.exit_code} {state.value}" in text
    assert "130" in text
    assert "5 rtproof doctor only: a feature is not ready" in text
    assert all(each.words in text for each in COMMANDS if command_pages.is_leaf(each))


def test_the_man_page_writes_an_exit_code_as_the_page_of_all_does() -> None:
    text = command_pages.man_exit_status()
    assert "130\n: Ctrl-C ended the command before" in text
    assert "5\n: `rtproof doctor` only: a feature is not ready." in text


PLUGINS = {
    "targets": targets,
    "export-formats": exporters,
    "report-formats": formats,
    "readable-formats": importers,
    "objection-rules": rules,
}


@pytest.mark.parametrize("page", PLUGINS)
def test_every_plug_in_has_its_place_with_its_docstring_and_options(site: Path, page: str) -> None:
    text = text_of(site / GENERATED / f"{page}.html")
    for name in plugins.plugin_names(PLUGINS[page]):
        module = plugins.load_plugin(PLUGINS[page], name)
        title = getattr(module, "TOOL", getattr(module, "CODE", name))
        assert f"{title}" in text
        assert plain((module.__doc__ or "").partition("\n\n")[0].replace("``", "")) in text
        for option, meaning in getattr(module, "OPTIONS", {}).items():
            assert plain(f"{option} {meaning}") in text


def test_every_profile_and_load_has_its_place(site: Path) -> None:
    text = text_of(site / GENERATED / "profiles.html")
    assert all(plain(profiles.load(name).about) in text for name in profiles.names())
    text = text_of(site / GENERATED / "loads.html")
    assert all(plain((loads.find(name) or pytest.fail(name)).help) in text for name in loads.names())


def test_all_that_the_agent_lists_is_on_the_pages(site: Path) -> None:
    listed = build.listed_rows(build.agent_prints(build.find_agent(), "list"))
    pages = {kind: text_of(site / GENERATED / f"{kind}.html") for kind in ("probes", "loads")}
    assert {row[0] for row in listed} == {"probe", "probe_option", "method", "load", "load_option"}
    for kind, *names, words in listed:
        if names[0] == "program":
            continue
        page = pages["loads" if kind.startswith("load") else "probes"]
        assert plain(build.help_without_missing(words)) in page
        assert names[-1] in page
    assert not any(build.NOT_HERE in page for page in pages.values())


def test_all_options_of_the_agent_are_on_its_page(site: Path) -> None:
    text = text_of(site / "man/rtproof-agent.html")
    shown = build.agent_prints(build.find_agent(), "help").partition("\n\n")
    options = agent_pages.options()
    assert len(options) == len(shown[2].splitlines())
    assert all(plain(f"{words}") in text and plain(meaning) in text for words, meaning in options)
    assert all(plain(line) in text for line in agent_pages.usage())
    assert len(agent_pages.usage()) == len(shown[0].splitlines())


MAN_PAGES = ("rtproof", "rtproof-agent")
SECTIONS = [
    "NAME",
    "SYNOPSIS",
    "DESCRIPTION",
    "OPTIONS",
    "COMMANDS",
    "EXIT_STATUS",
    "ENVIRONMENT",
    "FILES",
    "EXAMPLES",
    "SEE_ALSO",
    "AUTHOR",
]


@pytest.mark.parametrize("name", MAN_PAGES)
def test_a_man_page_has_its_sections(man: Path, name: str) -> None:
    text = (man / f"{name}.1").read_text()
    sections = [each.replace(" ", "_").upper() for each in re.findall(r"^\.SH (.*)$", text, re.MULTILINE)]
    assert sections == SECTIONS
    assert f'.TH "{name.upper()}" "1"' in text


def test_the_man_page_has_every_command_with_its_options(man: Path) -> None:
    text = (man / "rtproof.1").read_text().replace("\\-", "-").replace("\\(aq", "'").replace("\\&", "")
    parts = dict(zip(*[iter(re.split(r"^\.SS (.*)\n", text, flags=re.MULTILINE)[1:])] * 2, strict=True))
    assert list(parts) == [each.words for each in COMMANDS[1:]]
    for each in COMMANDS[1:]:
        for option in each.options:
            assert "--help" in option.opts or command_pages.signature(option) in parts[each.words]


def test_the_man_page_names_the_variables_that_the_program_reads(man: Path) -> None:
    text = (man / "rtproof.1").read_text().partition(".SH ENVIRONMENT")[2].partition(".SH FILES")[0]
    for name in (defects.DEBUG, console_login.PASSWORD_VARIABLE, debian_packages.MIRROR_VARIABLE):
        assert name in text.replace("\\_", "_")


LINTERS = {
    "man": ("--warnings", "-l"),
    "groff": ("-man", "-ww", "-z"),
    "mandoc": ("-T", "lint", "-W", "warning"),
}


@pytest.mark.parametrize("program", LINTERS)
@pytest.mark.parametrize("name", MAN_PAGES)
def test_a_man_page_gives_no_warning(man: Path, name: str, program: str) -> None:
    if not shutil.which(program):
        pytest.skip(f"there is no program {program}")
    command = (program, *LINTERS[program], str(man / f"{name}.1"))
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert program == "man" or done.stdout == ""


FOUND = """new Promise((done) => {
  const look = () => {
    const ended = document.querySelector("#search-results .search-summary")?.textContent.includes("found");
    const links = [...document.querySelectorAll("#search-results li a")].map((each) => each.href);
    ended ? done(links) : setTimeout(look, 50);
  };
  look();
})"""


@needs_chromium
@pytest.mark.parametrize("words", ["episode", "--until-decided", "hwlatdetect"])
def test_the_search_works_from_files(started: chromium.Browser, site: Path, words: str) -> None:
    page = chromium.load(started, site / "search.html", 1280, "light", f"?q={words}")
    links = page.evaluate(FOUND)
    assert links
    assert all(link.startswith(site.as_uri()) for link in links)
    assert page.messages() == []
    assert all(url.startswith(("file:", "data:")) for url in page.requests())


PAGES = ("index.html", f"{GENERATED}/commands/run.html", "search.html")


@needs_chromium
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_for_everybody(started: chromium.Browser, site: Path, name: str, width: int, scheme: str) -> None:
    page = chromium.load(started, site / name, width, scheme)
    assert page.messages() == []
    assert all(url.startswith(("file:", "data:")) for url in page.requests())
    assert page.evaluate("document.documentElement.scrollWidth > innerWidth") is False
    assert [fault for fault in chromium.accessibility_faults(page) if fault[0] not in OF_THE_THEME] == []


@needs_chromium
def test_the_theme_follows_the_system(started: chromium.Browser, site: Path) -> None:
    page = chromium.load(started, site / "index.html", 1280, "light")
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.scheme("dark")
    assert page.evaluate(colour) != light


@needs_chromium
def test_the_first_key_leads_to_the_content(started: chromium.Browser, site: Path) -> None:
    page = chromium.load(started, site / "index.html", 1280, "light")
    for kind in ("keyDown", "keyUp"):
        started.call("Input.dispatchKeyEvent", page.session, type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
    page.settle()
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#furo-main-content"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("with -o and --no-report, not a-b", "with `-o` and `--no-report`, not a-b"),
        ("``a_b`` and a_b <c> [d|e]*", r"`a_b` and a\_b \<c\> \[d\|e\]\*"),
        ("see 'rtproof run --x'; it's so", "see [`rtproof run --x`](run.md); it's so"),
        ("see 'rtproof' and https://a.org/b_c.", "see `rtproof` and <https://a.org/b_c>."),
        ("1. one", r"1\. one"),
        ("- one", r"\- one"),
    ],
)
def test_words_of_the_program_become_markdown(text: str, expected: str) -> None:
    assert markdown_text.inline(text, lambda words: "run.md" if words.startswith("rtproof run") else None) == expected


def test_paragraphs_keep_their_lines_where_they_are_asked_to() -> None:
    assert (
        markdown_text.prose("a\nb\n\n\b\nc\n  d\n\n    e\n    f") == "a b\n\n```text\nc\n  d\n```\n\n```text\ne\nf\n```"
    )
    assert markdown_text.code("a`b") == "``a`b``"


def test_pages_that_are_the_same_are_left_and_old_ones_deleted(tmp_path: Path) -> None:
    reference_pages.write({"a.md": "one", "b/c.md": "two"}, tmp_path)
    before = (tmp_path / "a.md").stat().st_mtime_ns
    reference_pages.write({"a.md": "one", "d.md": "three"}, tmp_path)
    assert (tmp_path / "a.md").stat().st_mtime_ns == before
    assert sorted(path.name for path in tmp_path.rglob("*.md")) == ["a.md", "d.md"]
