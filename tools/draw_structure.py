#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: draw_structure.py [FILE]    draws the packages of src/rtproof and their imports; default: docs/structure.svg

A package stands above everything that it imports. The same source gives the same picture, byte for byte.
"""

import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path

import structure

LABELS = 'aria-labelledby="title description"'
PICTURE = structure.ROOT / "docs" / "structure.svg"
BOX_WIDTH, BOX_HEIGHT, GAP, LAYER_HEIGHT, BORDER, LINE_HEIGHT = 104, 44, 20, 104, 24, 18
SWEEPS = 24
"""How often the order and the places in the layers are improved; more changes nothing that can be seen."""
STYLE = """
  svg { font: 13px system-ui, sans-serif; --ground: #fff; --box: #eef3f8; --line: #35566f; --text: #16222c; }
  @media (prefers-color-scheme: dark) {
    svg { --ground: #14191e; --box: #22303c; --line: #8fb4d0; --text: #e6edf3; }
  }
  .ground { fill: var(--ground); }
  .box rect { fill: var(--box); stroke: var(--line); }
  text { fill: var(--text); text-anchor: middle; }
  .size, .note { font-size: 11px; }
  .note { text-anchor: start; }
  path { fill: none; stroke: var(--line); }
  .tip { fill: var(--line); stroke: none; }
  .indirect { opacity: 0.16; }
"""
TITLE = "Packages of rtproof and what they import"
NOTES = (
    "An arrow leads from a package to a package that it imports. A wider arrow stands for more imports.",
    "A faint arrow stands for imports of a package that is reached through others as well.",
    "The numbers are those of the day when the picture was drawn.",
)
Arrow = tuple[str, str]
Stop = str | tuple[str, str, int]
"""What has a place in a layer: a package, or an arrow (from, to, layer) that passes the layer on its way down."""
Layers = list[list[Stop]]
Way = Sequence[Stop]
Link = tuple[Stop, Stop]
Point = tuple[float, float]


@dataclass(frozen=True)
class Packages:
    """modules: number of Python files of each package. imports: number of imports of one package by another."""

    modules: Mapping[str, int]
    imports: Mapping[Arrow, int]

    @property
    def graph(self) -> structure.Graph:
        return structure.graph_of(self.imports)


def read_packages(root: Path) -> Packages:
    """The packages of a repository; src/rtproof/__init__.py and __main__.py are in none."""
    modules = structure.host_modules(root)
    every = {module.name: structure.package_of(module.name) for module in modules}
    package_of = {name: package for name, package in every.items() if package not in ("rtproof", "__main__")}
    arrows = Counter(
        (package_of[each.importer], package_of[each.imported])
        for each in structure.host_imports(modules)
        if each.importer in package_of and each.imported in package_of
    )
    between = {arrow: count for arrow, count in sorted(arrows.items()) if arrow[0] != arrow[1]}
    return Packages(Counter(package_of.values()), between)


def layer_numbers(packages: Packages) -> dict[str, int]:
    """The layer of each package, 0 at the bottom: one above the highest that it imports. SystemExit of a circle."""
    for names in structure.circles(packages.graph):
        raise SystemExit(f"packages that import each other in a circle have no layers: {', '.join(names)}")
    found: dict[str, int] = {}
    while len(found) < len(packages.modules):
        for name in sorted(packages.modules.keys() - found.keys()):
            below = packages.graph.get(name, set())
            if below <= found.keys():
                found[name] = 1 + max((found[each] for each in below), default=-1)
    return found


def direct_arrows(packages: Packages) -> list[Arrow]:
    """The arrows whose end cannot be reached another way: the transitive reduction."""
    graph = packages.graph
    return [
        (start, end)
        for start, end in sorted(packages.imports)
        if not any(end in structure.reached(graph, other) for other in graph[start] - {end})
    ]


# The order in the layers


def chains(arrows: Sequence[Arrow], layer_of: Mapping[str, int]) -> list[list[Stop]]:
    """Each arrow as its stops from top to bottom, one in every layer that it passes."""
    return [
        [start, *((start, end, layer) for layer in range(layer_of[start] - 1, layer_of[end], -1)), end]
        for start, end in arrows
    ]


def ordered_layers(layer_of: Mapping[str, int], ways: Sequence[Way]) -> Layers:
    """What each layer holds from left to right, so that few arrows cross: of many sweeps the best one."""
    layers: Layers = [[] for _ in range(1 + max(layer_of.values()))]
    for stop in sorted({*layer_of, *(stop for way in ways for stop in way)}, key=str):
        layers[_layer(stop, layer_of)].append(stop)
    links = _links(ways)
    best = layers
    for sweep in range(SWEEPS):
        layers = _swept(layers, links, downwards=bool(sweep % 2))
        best = min(best, layers, key=lambda each: crossings(each, ways))
    return best


def _layer(stop: Stop, layer_of: Mapping[str, int]) -> int:
    return layer_of[stop] if isinstance(stop, str) else stop[2]


def _links(ways: Sequence[Way]) -> list[Link]:
    """Every piece of every arrow, from one layer to the next one down."""
    return [pair for way in ways for pair in pairwise(way)]


def _swept(layers: Layers, links: Sequence[Link], downwards: bool) -> Layers:
    """Each layer in the order of the middle of its neighbours in the layer before."""
    result = [list(layer) for layer in layers]
    pairs = list(pairwise(range(len(layers))))
    for below, above in reversed(pairs) if downwards else pairs:
        fixed, moved = (above, below) if downwards else (below, above)
        own = {stop: float(place) for place, stop in enumerate(result[moved])}
        middle = own | _middles({stop: place for place, stop in enumerate(result[fixed])}, links)
        result[moved] = sorted(own, key=middle.__getitem__)
    return result


def _middles(places: Mapping[Stop, float], links: Sequence[Link]) -> dict[Stop, float]:
    """For each stop that is linked with some of ``places``, their mean."""
    found: dict[Stop, list[float]] = {}
    for upper, lower in links:
        for stop, other in ((upper, lower), (lower, upper)):
            if other in places:
                found.setdefault(stop, []).append(places[other])
    return {stop: sum(values) / len(values) for stop, values in found.items()}


def crossings(layers: Layers, ways: Sequence[Way]) -> int:
    """How many pairs of pieces between the same layers cross."""
    place = {stop: number for layer in layers for number, stop in enumerate(layer)}
    level = {stop: number for number, layer in enumerate(layers) for stop in layer}
    pieces = [(level[upper], place[upper], place[lower]) for upper, lower in _links(ways)]
    return sum(
        one[0] == two[0] and (one[1] - two[1]) * (one[2] - two[2]) < 0
        for number, one in enumerate(pieces)
        for two in pieces[:number]
    )


# The places on the page


def columns(layers: Layers, ways: Sequence[Way]) -> dict[Stop, float]:
    """The middle of each stop from the left edge: near its neighbours above and below, without overlaps."""
    found = {stop: place * (BOX_WIDTH + GAP) for layer in layers for place, stop in enumerate(layer)}
    positions: dict[Stop, float] = dict(found)
    links = _links(ways)
    for _ in range(SWEEPS):
        for layer in layers:
            wished = _middles(positions, links)
            positions |= _spread(layer, [wished.get(stop, positions[stop]) for stop in layer])
    left = min(x - _half(stop) for stop, x in positions.items())
    return {stop: x - left + BORDER for stop, x in positions.items()}


def _half(stop: Stop) -> float:
    return BOX_WIDTH / 2 if isinstance(stop, str) else 0


def _spread(layer: Sequence[Stop], wished: Sequence[float]) -> dict[Stop, float]:
    """Places in the given order without overlaps: pushed to the right, then together back by the mean of the push."""
    places: list[float] = []
    for number, stop in enumerate(layer):
        first = places[-1] + _half(layer[number - 1]) + GAP + _half(stop) if places else wished[0]
        places.append(max(first, wished[number]))
    pushed = sum(place - wish for place, wish in zip(places, wished, strict=True)) / len(places)
    return {stop: place - pushed for stop, place in zip(layer, places, strict=True)}


def width_of(count: int) -> int:
    """The width of an arrow in steps, so that one import more is rarely seen: 1 below 4 imports, 2 below 16, ..."""
    return 1 + (count.bit_length() - 1) // 2


# The picture


def draw(packages: Packages) -> str:
    """The whole SVG document; SystemExit if packages import each other in a circle."""
    layer_of = layer_numbers(packages)
    ways = chains(direct_arrows(packages), layer_of)
    layers = ordered_layers(layer_of, ways)
    x = columns(layers, ways)
    top = {stop: _top_of_row(len(layers) - 1 - number) for number, layer in enumerate(layers) for stop in layer}
    places = {stop: (x[stop], top[stop]) for stop in x}
    direct = _routes(ways, places)
    indirect = {arrow: _points(arrow, places) for arrow in sorted(packages.imports) if arrow not in direct}
    parts = [
        *(_arrow("indirect", arrow, points, packages.imports[arrow]) for arrow, points in indirect.items()),
        *(_arrow("direct", arrow, points, packages.imports[arrow]) for arrow, points in direct.items()),
        *(_box(name, places[name], count) for name, count in sorted(packages.modules.items())),
    ]
    width = max(x[stop] + _half(stop) for stop in x) + BORDER
    bottom = _top_of_row(len(layers) - 1) + BOX_HEIGHT + BORDER + LINE_HEIGHT
    return _document(width, bottom, parts, _description(layers))


def _top_of_row(row: int) -> float:
    return BORDER + row * LAYER_HEIGHT


def _routes(ways: Sequence[Way], places: Mapping[Stop, Point]) -> dict[Arrow, list[Point]]:
    """The points of each direct arrow; arrows of one package leave it, and reach it, beside each other."""
    routes = {(str(way[0]), str(way[-1])): _points(way, places) for way in ways}
    for end, neighbour in ((0, 1), (-1, -2)):
        for box in sorted({arrow[end] for arrow in routes}):
            own = sorted((points[neighbour], arrow) for arrow, points in routes.items() if arrow[end] == box)
            for number, (_, arrow) in enumerate(own, start=1):
                x, y = routes[arrow][end]
                routes[arrow][end] = (x + BOX_WIDTH * (number / (len(own) + 1) - 0.5), y)
    return routes


def _points(way: Way, places: Mapping[Stop, Point]) -> list[Point]:
    """From the lower edge of the first package, through the stops between, to the upper edge of the last."""
    first, *between, last = (places[stop] for stop in way)
    return [(first[0], first[1] + BOX_HEIGHT), *((x, y + BOX_HEIGHT / 2) for x, y in between), last]


def _arrow(kind: str, arrow: Arrow, points: Sequence[Point], count: int) -> str:
    """A curve that is vertical at each of its points, with a tip."""
    curve = f"M{points[0][0]:.0f} {points[0][1]:.0f}"
    for (x, y), (next_x, next_y) in pairwise(points):
        middle = (y + next_y) / 2
        curve += f"C{x:.0f} {middle:.0f} {next_x:.0f} {middle:.0f} {next_x:.0f} {next_y:.0f}"
    x, y = points[-1]
    tip = f"M{x:.0f} {y:.0f}l-4 -8h8z"
    title = f"{arrow[0]} imports {arrow[1]}: {_counted(count, 'import')}"
    drawn = f'<path d="{curve}" stroke-width="{width_of(count)}"/><path class="tip" d="{tip}"/>'
    return f'<g class="{kind}"><title>{escape(title)}</title>{drawn}</g>'


def _box(name: str, place: Point, modules: int) -> str:
    x, y = place
    size = _counted(modules, "module")
    left = x - BOX_WIDTH / 2
    return (
        f'<g class="box"><title>{escape(name)}: {size}</title>'
        f'<rect x="{left:.0f}" y="{y:.0f}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="5"/>'
        f'<text x="{x:.0f}" y="{y + 19:.0f}">{escape(name)}</text>'
        f'<text class="size" x="{x:.0f}" y="{y + 35:.0f}">{size}</text></g>'
    )


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' if count != 1 else ''}"


def _description(layers: Layers) -> str:
    """The picture in words: the packages of each layer, from the top."""
    rows = (", ".join(stop for stop in layer if isinstance(stop, str)) for layer in reversed(layers))
    return f"From top to bottom: {'; '.join(rows)}. {' '.join(NOTES)}"


def _document(width: float, bottom: float, parts: Sequence[str], description: str) -> str:
    height = bottom + LINE_HEIGHT * len(NOTES)
    notes = (
        f'<text class="note" x="{BORDER}" y="{bottom + LINE_HEIGHT * number:.0f}">{escape(text)}</text>'
        for number, text in enumerate(NOTES)
    )
    lines = [
        "<!-- SPDX-License-Identifier: Apache-2.0, drawn by tools/draw_structure.py -->",
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img" {LABELS}>',
        f'<title id="title">{TITLE}</title>',
        f'<desc id="description">{escape(description)}</desc>',
        f"<style>{STYLE}</style>",
        '<rect class="ground" width="100%" height="100%"/>',
        *parts,
        *notes,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def without_numbers(picture: str) -> str:
    """A picture without what changes with every commit: the counts, and the width of the arrows."""
    return re.sub(r'\d+ (module|import)s?\b|stroke-width="\d+"', "", picture)


def main(arguments: Sequence[str]) -> None:
    path = Path(arguments[0]) if arguments else PICTURE
    path.write_text(draw(read_packages(structure.ROOT)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
