# SPDX-License-Identifier: Apache-2.0
"""The documentation as a site and as man pages: no warning, nothing missing, no broken link, an offline search."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import check_site
import chromium
import pytest

ROOT = Path(__file__).parent.parent
NOT_COPIED = (".git", ".venv", "build", "dist", "docs", "runs")
GENERATED = "reference/generated"
needs_chromium = pytest.mark.skipif(chromium.program() is None, reason="there is no chromium")
OF_THE_THEME = ("landmark-unique", "page-has-heading-one")
"""What axe-core finds in furo's own sidebar and in Sphinx's page of the search; both are no obstacle to anybody."""


def sphinx(builder: str, output: Path, source: Path, *options: str) -> subprocess.CompletedProcess[str]:
    words = (sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", builder, *options)
    command = (*words, str(source), str(output))
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)


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


def test_every_link_leads_somewhere_and_nothing_is_loaded_from_a_network(site: Path) -> None:
    assert check_site.faults_of_site(site) == []


def test_every_link_of_the_markdown_beside_the_site_leads_somewhere() -> None:
    assert check_site.faults_of_markdown() == []


MAN_PAGES = ("rtproof", "rtproof-agent")


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
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
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
