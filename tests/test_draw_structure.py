# SPDX-License-Identifier: Apache-2.0
"""The picture of the packages: it shows the source as it is, and each arrow leads downwards."""

import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import draw_structure
import pytest
import structure
from draw_structure import Packages

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
