# SPDX-License-Identifier: Apache-2.0
"""usage: check_site.py SITE    names links that lead nowhere, of a folder of HTML pages and of README.md and its like

A page may link to the web with https, but load nothing from there: no font, script, style or picture.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parent.parent
NO_FILE = ("mailto", "data")
_URL_IN_CSS = re.compile(r"""url\(\s*["']?([^"')]+)["']?\s*\)|@import\s+["']([^"']+)""")


@dataclass
class Links(HTMLParser):
    """Of one page: every id, every address that it links to, and every address that a browser loads with it."""

    ids: set[str] = field(default_factory=set)
    linked: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value is not None}
        self.ids.update(values[name] for name in ("id", "name") if name in values)
        places = self.linked if tag == "a" else self.loaded
        places += [values[name] for name in ("href", "src") if name in values]
        self.loaded += [each.split()[0] for each in values.get("srcset", "").split(",") if each.strip()]


@cache
def links_of(page: Path) -> Links:
    """The links of an HTML page."""
    links = Links()
    links.feed(page.read_text(encoding="utf-8"))
    return links


@cache
def links_of_markdown(page: Path) -> Links:
    """The links of a Markdown page. Its ids are those that GitHub gives to headings."""
    tokens = MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8"))
    titles = [after.content for token, after in pairwise(tokens) if token.type == "heading_open"]
    ids = {re.sub(r"[^\w\- ]", "", title.replace("`", "").lower()).replace(" ", "-") for title in titles}
    found = [str(each.attrs[name]) for each in _all(tokens) for name in ("href", "src") if name in each.attrs]
    return Links(ids, found)


def _all(tokens: Iterable[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _all(token.children or [])


def faults_of_site(site: Path) -> list[str]:
    """What is wrong with the links of all pages and styles of a site, each with the page's name."""
    pages = sorted(site.rglob("*.html"))
    found = [f"{page.relative_to(site)}: {fault}" for page in pages for fault in _faults(page, links_of(page))]
    styles = [(style, address) for style in sorted(site.rglob("*.css")) for address in _addresses_in_css(style)]
    return found + [
        f"{style.relative_to(site)}: {fault}" for style, each in styles for fault in _load_faults(style, each)
    ]


def faults_of_markdown(root: Path = ROOT) -> list[str]:
    """What is wrong with the links of the Markdown pages that are no part of the site, such as the README."""
    pages = [*sorted(root.glob("*.md")), *sorted(root.glob("kmod/*.md"))]
    return [f"{page.relative_to(root)}: {fault}" for page in pages for fault in _faults(page, links_of_markdown(page))]


def _addresses_in_css(style: Path) -> list[str]:
    return [first or second for first, second in _URL_IN_CSS.findall(style.read_text(encoding="utf-8"))]


def _faults(page: Path, links: Links) -> Iterator[str]:
    for address in dict.fromkeys(links.loaded):
        yield from _load_faults(page, address)
    for address in dict.fromkeys(links.linked):
        yield from _link_faults(page, address)


def _load_faults(page: Path, address: str) -> Iterator[str]:
    if urlsplit(address).netloc:
        yield f"it loads {address} from a network"
    else:
        yield from _link_faults(page, address)


def _link_faults(page: Path, address: str) -> Iterator[str]:
    parts = urlsplit(address)
    if parts.scheme in NO_FILE:
        return
    if parts.scheme or parts.netloc:
        if parts.scheme != "https" or "." not in parts.netloc:
            yield f"{address} is no https address"
        return
    target = page if not parts.path else page.parent / unquote(parts.path)
    if not target.exists():
        yield f"{address} leads to no file"
    elif parts.fragment and unquote(parts.fragment) not in _ids(target):
        yield f"{address} leads to no place in its page"


def _ids(target: Path) -> set[str]:
    if target.suffix == ".html":
        return links_of(target).ids
    return links_of_markdown(target).ids if target.suffix == ".md" else set()


def main(site: Path) -> int:
    """Print the faults; 1 if there is one."""
    if not (site / "index.html").exists():
        print(f"{site} is no built site: run make docs")
        return 1
    faults = faults_of_site(site) + faults_of_markdown()
    print("\n".join(faults) or "every link of the pages leads somewhere, and no page loads anything from a network")
    return int(bool(faults))


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
