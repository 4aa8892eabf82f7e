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
    ("low", "high"),
    ("bin_from", "bin_to"),
    ("bin_width", "period"),
)
"""Of each pair the first is never the larger one."""
_NUMBER = re.compile(r"[0-9]{1,6}(\.[0-9]+)?")
MOST = 2**63 - 1
MOST_BINS = 10_000_000
MOST_CPUS = 1 << 16
REAL_TIME = ("fifo", "rr")


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
    least = int(file.policy in REAL_TIME)
    _require(file.priority is None or least <= file.priority <= 99, f"priority: it lies between {least} and 99")
    _require(file.cpus is None or 1 <= file.cpus <= MOST_CPUS, f"cpus: a board has between 1 and {MOST_CPUS:,}")
    several = tuple(_numbers(each) for each in file.numbers)
    _require(len({each.name for each in several}) == len(several), "numbers: two have the same name")
    told = msgspec.structs.asdict(file) | {
        "duration": _optional("duration", file.duration, printed.duration),
        "asked": _optional("asked", file.asked, printed.duration),
        "loadavg": _loadavg(file.loadavg),
        "numbers": several,
    }
    _check_lengths(told["duration"], told["asked"], several)
    return Row(**told, figures=row_figures(several))


def _numbers(file: NumbersFile) -> Numbers:
    with _where(f"numbers {file.name!r}"):
        _require(file.kind in KINDS, f"kind: {file.kind!r} is none of {', '.join(KINDS)}")
        figures = dict(_figures(file))
        _check_figures(file.kind, figures)
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
            _require(figure.value > 0 or not figure.at_least, "at least nothing says nothing")
            yield key, figure


def _check_figures(kind: str, figures: dict[str, Figure]) -> None:
    """What cannot be, whoever measured it."""
    for low, high in ORDER:
        if low in figures and high in figures:
            _require(figures[low].value <= figures[high].value, f"{low}: it is larger than {high}")
    value = {key: figure.value for key, figure in figures.items()}
    for key in ("period", "low", "high", "max", "bin_width", "bins", "bin_to"):
        _require(value.get(key, 1) > 0, f"{key}: it has to be more than 0")
    for key in ("deviation", "bin_from", *(("min",) if kind in (LENGTH, LOOP) else ())):
        _require(value.get(key, 0) >= 0, f"{key}: it is negative")
    _require(value.get("bins", 0) <= MOST_BINS, f"bins: more than {MOST_BINS:,} are none")
    _check_counts(value)
    if {"bin_width", "bin_from", "bin_to"} <= value.keys():
        one = value["bin_to"] - value["bin_from"] == value["bin_width"]
        _require(one, "bin_from and bin_to: they are not the ends of a bin of bin_width")


def _check_counts(value: dict[str, float]) -> None:
    """count, below, above and what is told of so many values."""
    count = value.get("count")
    if count is None:
        return
    _require(value.get("below", 0) + value.get("above", 0) <= count, "below and above: together more than count")
    _require(
        count > 0 or not value.keys() & {"min", "actual", "mean", "max", "deviation"},
        "count: there are figures of none",
    )
    _require(count * value.get("period", 0) <= MOST, "count: so many periods take longer than anything measured")


def _check_lengths(duration: Figure | None, asked: Figure | None, several: tuple[Numbers, ...]) -> None:
    """Both are the length of the run, the one as printed and the other exact; no value is longer than that."""
    for key, length in (("duration", duration), ("asked", asked)):
        if length is not None:
            _require(length.value > 0, f"{key}: it has to be longer than 0")
            _require(key == "duration" or not length.at_least, f"{key}: it is an exact length")
            for numbers in several if not length.at_least else ():
                _check_length(key, length.value, numbers)
    if duration is not None and asked is not None and not duration.at_least:
        same = abs(asked.value - duration.value) <= duration.step
        _require(same, "asked: it is not the duration that was printed; leave out what the run did not keep to")


def _check_length(key: str, length_ns: float, numbers: Numbers) -> None:
    longest = max(((numbers.value(name) or 0, name) for name in ("period", "max")), default=(0, ""))
    _require(longest[0] <= length_ns, f"numbers {numbers.name!r}: {longest[1]}: it is longer than the run ({key})")


def _statement(file: StatementFile, rows: dict[str, Row]) -> Statement:
    _require(file.says in SAYS, f"says: {file.says!r} is none of {', '.join(SAYS)}")
    for key in file.rows:
        _require(key in rows, f"rows: there is no row {key!r}")
    for key in file.rows:
        _require(file.field in {each.name for each in rows[key].numbers}, f"field: row {key!r} has no {file.field!r}")
    above, top = _optional("above", file.above, printed.time), _optional("top_share", file.top_share, printed.share)
    for key in file.rows if above else ():
        _check_above(above.value if above else 0, next(each for each in rows[key].numbers if each.name == file.field))
    return Statement(file.key, file.rows, file.field, file.says, above, top)


def _check_above(above: float, numbers: Numbers) -> None:
    """A value from which on one row is better has to lie on the scale of both."""
    width, bins, most = (numbers.value(key) for key in ("bin_width", "bins", "max"))
    ends = (width or 0, min(width * bins if width and bins else MOST, MOST if most is None else most))
    _require(above > 0 and ends[0] <= above <= ends[1], "above: no value of these rows lies there")


def _loadavg(text: str | None) -> tuple[float, ...]:
    if text is None:
        return ()
    words = text.split()
    with _where("loadavg"):
        _require(len(words) == 3 and all(_NUMBER.fullmatch(word) for word in words), f"{text!r} is not three numbers")
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
