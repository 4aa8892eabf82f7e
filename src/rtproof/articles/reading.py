# SPDX-License-Identifier: Apache-2.0
"""From a file to an Article. Nonsense is refused in one sentence with the file, the row and the key."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from rtproof import tomlfile
from rtproof.articles import printed
from rtproof.articles.article import LATENCY, LENGTH, LOOP, TOP, Article, Figure, Numbers, Row, Statement
from rtproof.articles.rowfigures import row_figures
from rtproof.articles.schema import ArticleFile, NumbersFile, RowFile, StatementFile
from rtproof.errors import UserError

FOLDER = Path(__file__).parent
SUFFIX = ".toml"
KINDS = (LATENCY, LENGTH, TOP, LOOP)
SAYS = ("same", "better above")
ORDER = (
    ("min", "actual"),
    ("min", "mean"),
    ("min", "max"),
    ("actual", "max"),
    ("mean", "max"),
    ("bin_from", "bin_to"),
)
"""Of each pair the first is never the larger one."""
_NUMBER = re.compile(r"[0-9]{1,6}(\.[0-9]+)?")
MOST = 2**63 - 1


def names() -> list[str]:
    """The articles that there are."""
    return sorted(path.stem for path in FOLDER.glob(f"*{SUFFIX}"))


def load(name_or_path: str) -> Article:
    """An article by its name, or a file of the user's own; UserError with the list of what there is for neither."""
    if name_or_path in names():
        return read(FOLDER / f"{name_or_path}{SUFFIX}")
    if name_or_path.endswith(SUFFIX):
        return read(Path(name_or_path))
    known = ", ".join(names())
    raise UserError(f"there is no article {name_or_path!r}; there are: {known}, or give the path of a {SUFFIX} file")


def read(path: Path) -> Article:
    """An article from a file of one's own."""
    return _article(path, tomlfile.read(path, ArticleFile))


def _article(path: Path, found: ArticleFile) -> Article:
    rows: list[Row] = []
    for place, data in enumerate(found.row, 1):
        name = _part_name(path, "row", place, data)
        with _where(name):
            row = _row(tomlfile.convert(data, RowFile, name))
            _require(all(row.key != other.key for other in rows), "key: another row has the same one")
            _require(all(row.label != other.label for other in rows), "label: another row has the same one")
            rows.append(row)
    keys = {row.key: row for row in rows}
    statements: list[Statement] = []
    for place, data in enumerate(found.statement, 1):
        name = _part_name(path, "statement", place, data)
        with _where(name):
            statements.append(_statement(tomlfile.convert(data, StatementFile, name), keys))
    with _where(str(path)):
        threshold = _optional("threshold", found.threshold, printed.share)
    return Article(path.stem, found.title, found.source, found.about.strip(), tuple(rows), tuple(statements), threshold)


def _row(file: RowFile) -> Row:
    _require(bool(file.key) and file.key.replace("-", "").isalnum(), "key: letters, digits and - are allowed")
    _require(file.priority is None or 0 <= file.priority <= 99, "priority: it lies between 0 and 99")
    several = tuple(_numbers(each) for each in file.numbers)
    _require(len({each.name for each in several}) == len(several), "numbers: two have the same name")
    told = msgspec.structs.asdict(file) | {
        "duration": _optional("duration", file.duration, printed.duration),
        "asked": _optional("asked", file.asked, printed.duration),
        "loadavg": _loadavg(file.loadavg),
        "numbers": several,
    }
    for key in ("duration", "asked"):
        _require(told[key] is None or told[key].value > 0, f"{key}: it has to be longer than 0")
    return Row(**told, figures=row_figures(several))


def _numbers(file: NumbersFile) -> Numbers:
    with _where(f"numbers {file.name!r}"):
        _require(file.kind in KINDS, f"kind: {file.kind!r} is none of {', '.join(KINDS)}")
        figures = dict(_figures(file))
        _check_order(figures)
        return Numbers(file.name, file.kind, figures)


def _figures(file: NumbersFile) -> Iterator[tuple[str, Figure]]:
    readers: dict[str, Callable[[str], Figure]] = {"bin_share": printed.share}
    for key, told in msgspec.structs.asdict(file).items():
        if told is None or key in ("name", "kind"):
            continue
        with _where(key):
            figure = printed.count(told) if isinstance(told, int) else readers.get(key, printed.time)(told)
            _require(figure.value <= MOST, "it is larger than anything measured")
            _require(key == "max" or not figure.at_least, "only a maximum can be a lower bound")
            yield key, figure


def _check_order(figures: dict[str, Figure]) -> None:
    """What cannot be, whoever measured it."""
    for low, high in ORDER:
        if low in figures and high in figures:
            _require(figures[low].value <= figures[high].value, f"{low}: it is larger than {high}")
    for key in ("period", "bin_width", "bins"):
        _require(key not in figures or figures[key].value > 0, f"{key}: it has to be more than 0")
    _require("deviation" not in figures or figures["deviation"].value >= 0, "deviation: it is negative")
    outside = sum(figures[key].value for key in ("below", "above") if key in figures)
    _require(
        "count" not in figures or outside <= figures["count"].value, "count: more values lie outside of the limits"
    )


def _statement(file: StatementFile, rows: dict[str, Row]) -> Statement:
    _require(file.says in SAYS, f"says: {file.says!r} is none of {', '.join(SAYS)}")
    for key in file.rows:
        _require(key in rows, f"rows: there is no row {key!r}")
    for key in file.rows:
        _require(file.field in {each.name for each in rows[key].numbers}, f"field: row {key!r} has no {file.field!r}")
    above, top = _optional("above", file.above, printed.time), _optional("top_share", file.top_share, printed.share)
    return Statement(file.key, file.rows, file.field, file.says, above, top)


def _loadavg(text: str | None) -> tuple[float, ...]:
    words = (text or "").split()
    with _where("loadavg"):
        _require(len(words) in (0, 3), f"{text!r} is not three numbers")
        _require(all(_NUMBER.fullmatch(word) for word in words), f"{text!r} is not three numbers")
    return tuple(map(float, words))


def _optional(key: str, text: str | None, reader: Callable[[str], Figure]) -> Figure | None:
    with _where(key):
        return None if text is None else reader(text)


def _part_name(path: Path, kind: str, place: int, data: dict[str, object]) -> str:
    key = data.get("key")
    return f"{path}, {kind} {key!r}" if isinstance(key, str) else f"{path}, {kind} {place}"


def _require(holds: bool, sentence: str) -> None:
    if not holds:
        raise UserError(sentence)


@contextmanager
def _where(place: str) -> Iterator[None]:
    """Put where it is in front of what is wrong, once."""
    try:
        yield
    except UserError as error:
        told = str(error)
        raise UserError(told if told.startswith(place) else f"{place}: {told}") from error
