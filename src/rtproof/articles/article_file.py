# SPDX-License-Identifier: Apache-2.0
"""Reads the TOML file of an article. A wrong value gives a UserError: one sentence with the file, the row and the key.

The file has numbers as articles print them: "177 us", "-3.835 us", ">30 ms", "44 h 30 min", "1.3 %". The reader keeps
the unit of the last digit, because a duration in whole minutes may be a minute longer than printed.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path

import msgspec

from rtproof.articles.article import (
    BELOW,
    BETTER_ABOVE,
    NOT_BELOW,
    PREEMPTIONS,
    SAME,
    Article,
    ArticleFigure,
    ArticleNumbers,
    ArticleRow,
    ArticleStatement,
    row_figures,
)
from rtproof.core import toml, units
from rtproof.core.errors import UserError
from rtproof.core.phrases import unknown_name
from rtproof.judge.doubts.result_row import RowKind
from rtproof.judge.doubts.row_statements import CONDITIONS


class ArticleNumbersFile(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The numbers of a thread or field. Times have their unit, shares a %.

    low, high: ends of a band; below, above: how many values lie outside of the band on each side. bin_from, bin_to,
    bin_share: the ends of the fullest bin and the share of the values in it. bin_start: where the first bin begins, by
    default 0. bin_counts: the values in each bin. overflow: how many values lie beyond the last bin. percentiles: pairs
    such as ["99.9 %", "70 us"]. curve: points of a cumulative curve such as ["70 us", "98.7 %"], which says what share
    of the values is at most 70 us.
    """

    name: str
    kind: str = "latency"
    period: str | None = None
    count: int | None = None
    low: str | None = None
    high: str | None = None
    below: int | None = None
    above: int | None = None
    min: str | None = None
    actual: str | None = None
    mean: str | None = None
    max: str | None = None
    deviation: str | None = None
    bins: int | None = None
    bin_width: str | None = None
    bin_from: str | None = None
    bin_to: str | None = None
    bin_share: str | None = None
    bin_start: str | None = None
    bin_counts: tuple[int, ...] = ()
    overflow: int | None = None
    percentiles: tuple[tuple[str, str], ...] = ()
    curve: tuple[tuple[str, str], ...] = ()


class ArticleRowFile(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A row, with the fields of ``ArticleRow``. loadavg: the three numbers as the kernel prints them.

    varies: any of load, policy, method, period and length. preemption: none, voluntary, full, lazy or rt; plain for any
    but rt; core for a co-kernel.
    """

    key: str
    label: str
    section: str
    board: str
    kernel: str
    preemption: str = ""
    load: str = ""
    command: str = ""
    method: str = ""
    method_claimed: str = ""
    policy: str = ""
    priority: int | None = None
    duration: str | None = None
    asked: str | None = None
    loadavg: str | None = None
    cpus: int | None = None
    load_line: str = ""
    group: str = ""
    judged: bool = False
    varies: tuple[str, ...] = ()
    stopped: bool = False
    caveats: tuple[str, ...] = ()
    numbers: tuple[ArticleNumbersFile, ...] = ()


class ArticleStatementFile(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A conclusion that the article draws from rows, with the fields of ``ArticleStatement``."""

    key: str
    rows: tuple[str, ...]
    field: str
    says: str
    above: str | None = None
    top_share: str | None = None
    limit: str | None = None


class ArticleFile(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The whole file. Rows and statements are converted later, one by one, so that an error can name the row.

    threshold: the percentile that the article judges by, such as "99.999 %". threshold_note: a sentence on what the
    article tells of its thresholds.
    """

    title: str
    source: str
    about: str
    row: list[dict[str, object]]
    statement: list[dict[str, object]] = []
    threshold: str | None = None
    threshold_note: str = ""


# The next functions read a printed number into an ArticleFigure.


_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([^\s0-9.]+)")
_PARTS = re.compile(rf"(?:{_PART.pattern}\s*)+")


def printed_duration(text: str) -> ArticleFigure:
    """A time in ns from one or more parts with their units, such as "9 h 47 min"; UserError for anything else.

    A ">" in front makes the time a lower bound.
    """
    bare = text.strip().removeprefix(">").strip()
    sign, bare = (-1, bare[1:]) if bare.startswith("-") else (1, bare)
    parts = _PART.findall(bare) if _PARTS.fullmatch(bare) else []
    if not parts:
        raise UserError(f"{text!r} is not a time: write a number and its unit ({units.UNIT_NAMES}), such as 177 us")
    value = sign * sum(_whole_ns(number, unit) for number, unit in parts)
    sizes = [units.parse_duration(f"1{unit}") for _, unit in parts]
    if sizes != sorted(set(sizes), reverse=True):
        raise UserError(f"{text!r} is not a time: its units have to become smaller, as in 9 h 47 min")
    return ArticleFigure(text.strip(), value, "ns", _step_ns(*parts[-1]), at_least=text.strip().startswith(">"))


def printed_time(text: str) -> ArticleFigure:
    """A time with one unit, such as a latency."""
    figure = printed_duration(text)
    if len(_PART.findall(text)) != 1:
        raise UserError(f"{text!r} has several units where one is enough: write it such as 177 us")
    return figure


def printed_share(text: str, *, ends: bool = False) -> ArticleFigure:
    """A percentage, as a share of 1; UserError without the % sign, because the number alone could be a share.

    ends: whether 0 % and 100 % are allowed, as in a curve.
    """
    if not text.strip().endswith("%"):
        raise UserError(f"{text!r} is not a percentage: write it with its sign, such as 99.999 %")
    number = _PART.fullmatch(text.strip())
    end = ends and number is not None and Decimal(number[1]) in (0, 100)
    value = Decimal(number[1]) / 100 if number and end else units.parse_percentage(text)
    digits = Decimal(number[1]).as_tuple().exponent if number else 0
    return ArticleFigure(text.strip(), float(value), "%", float(Decimal("0.01").scaleb(int(digits))))


def printed_count(value: int) -> ArticleFigure:
    """A whole number that is 0 or more."""
    if value < 0:
        raise UserError(f"{value} is a negative count")
    return ArticleFigure(f"{value:,}", value, "count", 1)


def _whole_ns(number: str, unit: str) -> int:
    """The time in ns. A mean may have been printed with more digits than that, which the text keeps."""
    exact = Decimal(number) * units.parse_duration(f"1{unit}")
    return units.parse_duration(f"{exact.to_integral_value():f}ns")


def _step_ns(number: str, unit: str) -> int:
    digits = Decimal(number).as_tuple().exponent
    step = Decimal(units.parse_duration(f"1{unit}")).scaleb(int(digits))
    return max(int(step), 1)


FOLDER = Path(__file__).parent
SUFFIX = ".toml"
KINDS = tuple(kind.value for kind in RowKind)
SAYS = {SAME: 2, BETTER_ABOVE: 2, BELOW: None, NOT_BELOW: None}
"""What a conclusion can say, and of how many rows; None: of any number."""
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
"""Pairs of keys. The value of the first is never larger than that of the second."""
APART = ("name", "kind", "percentiles", "curve", "bin_counts")
"""Keys of numbers that are no single figure."""
_NUMBER = re.compile(r"[0-9]{1,6}(\.[0-9]+)?")
LARGEST_NUMBER = 2**63 - 1
MOST_BINS = 10_000_000
MOST_CPUS = 1 << 16
REAL_TIME = ("fifo", "rr")


def names() -> list[str]:
    """The names of the articles in this folder, sorted."""
    return sorted(path.stem for path in FOLDER.glob(f"*{SUFFIX}"))


def load(name_or_path: str) -> Article:
    """The article with this name, or the one in the user's file.

    UserError, which lists the names, if the argument is neither a name nor the path of a TOML file.
    """
    if name_or_path in names():
        return read(FOLDER / f"{name_or_path}{SUFFIX}")
    if name_or_path.endswith(SUFFIX):
        return read(Path(name_or_path))
    raise UserError(unknown_name("article", name_or_path, names(), f", or give the path of a {SUFFIX} file"))


def read(path: Path) -> Article:
    """The article in this file; UserError if the file is wrong."""
    return _article(path, toml.read_toml(path, ArticleFile))


def _article(path: Path, found: ArticleFile) -> Article:
    rows: list[ArticleRow] = []
    for place, data in enumerate(found.row, 1):
        name = _part_name(path, "row", place, data)
        with _where(name):
            row = _row(toml.convert_toml(data, ArticleRowFile, name))
            _require(all(row.key != other.key for other in rows), "key: another row has the same one")
            _require(all(row.label != other.label for other in rows), "label: another row has the same one")
            rows.append(row)
    keys = {row.key: row for row in rows}
    statements: list[ArticleStatement] = []
    for place, data in enumerate(found.statement, 1):
        name = _part_name(path, "statement", place, data)
        with _where(name):
            statements.append(_statement(toml.convert_toml(data, ArticleStatementFile, name), keys))
    with _where(str(path)):
        threshold = _optional("threshold", found.threshold, printed_share)
    texts = (path.stem, found.title, found.source, found.about.strip())
    return Article(*texts, tuple(rows), tuple(statements), threshold, found.threshold_note)


def _row(file: ArticleRowFile) -> ArticleRow:
    _require(bool(file.key) and file.key.replace("-", "").isalnum(), "key: letters, digits and - are allowed")
    least = int(file.policy in REAL_TIME)
    _require(file.priority is None or least <= file.priority <= 99, f"priority: it lies between {least} and 99")
    known = ", ".join(filter(None, PREEMPTIONS))
    _require(file.preemption in PREEMPTIONS, f"preemption: {file.preemption!r} is none of {known}")
    for name in file.varies:
        _require(name in CONDITIONS, f"varies: {name!r} is none of {', '.join(CONDITIONS)}")
    _require(file.cpus is None or 1 <= file.cpus <= MOST_CPUS, f"cpus: a board has between 1 and {MOST_CPUS:,}")
    several = tuple(_numbers(each) for each in file.numbers)
    _require(len({each.name for each in several}) == len(several), "numbers: two have the same name")
    told = msgspec.structs.asdict(file) | {
        "duration": _optional("duration", file.duration, printed_duration),
        "asked": _optional("asked", file.asked, printed_duration),
        "loadavg": _loadavg(file.loadavg),
        "numbers": several,
    }
    _check_lengths(told["duration"], told["asked"], several)
    return ArticleRow(**told, figures=row_figures(several))


def _numbers(file: ArticleNumbersFile) -> ArticleNumbers:
    with _where(f"numbers {file.name!r}"):
        _require(file.kind in KINDS, f"kind: {file.kind!r} is none of {', '.join(KINDS)}")
        figures = dict(_figures(file))
        _check_figures(RowKind(file.kind), figures)
        percentiles = tuple(_pair("percentiles", share, at) for share, at in file.percentiles)
        curve = tuple(_pair("curve", share, at) for at, share in file.curve)
        _require(len(file.bin_counts) <= MOST_BINS, f"bin_counts: more than {MOST_BINS:,} are none")
        _require(all(0 <= count <= LARGEST_NUMBER for count in file.bin_counts), "bin_counts: one is no count")
        _require(not file.bin_counts or "bin_width" in figures, "bin_counts: they need bin_width")
        several = not file.bin_counts or file.bins is None or len(file.bin_counts) == file.bins
        _require(several, "bin_counts: there are not as many as bins")
        return ArticleNumbers(file.name, RowKind(file.kind), figures, percentiles, curve, file.bin_counts)


def _pair(key: str, share: str, at: str) -> tuple[ArticleFigure, ArticleFigure]:
    """A share and the value that it belongs to."""
    with _where(key):
        found = printed_share(share, ends=True), printed_time(at)
        _require(0 <= found[0].value <= 1, f"{share!r} is no share: it lies between 0 % and 100 %")
        _require(abs(found[1].value) <= LARGEST_NUMBER, "it is larger than anything measured")
        _require(not found[1].at_least, "only a maximum can be a lower bound")
        return found


def _figures(file: ArticleNumbersFile) -> Iterator[tuple[str, ArticleFigure]]:
    readers: dict[str, Callable[[str], ArticleFigure]] = {"bin_share": partial(printed_share, ends=True)}
    for key, told in msgspec.structs.asdict(file).items():
        if told is None or key in APART:
            continue
        with _where(key):
            figure = printed_count(told) if isinstance(told, int) else readers.get(key, printed_time)(told)
            _require(figure.value <= LARGEST_NUMBER, "it is larger than anything measured")
            _require(key == "max" or not figure.at_least, "only a maximum can be a lower bound")
            _require(figure.value > 0 or not figure.at_least, "at least nothing says nothing")
            yield key, figure


def _check_figures(kind: RowKind, figures: dict[str, ArticleFigure]) -> None:
    """UserError for figures that no measurement can have, such as a minimum above the maximum."""
    for low, high in ORDER:
        if low in figures and high in figures:
            # A mean of 118.4 us is not above a maximum that was printed as 118 us.
            steps = (figures[low].step, figures[high].step)
            room = max(steps) if steps[0] != steps[1] else 0
            _require(figures[low].value <= figures[high].value + room, f"{low}: it is larger than {high}")
    value = {key: figure.value for key, figure in figures.items()}
    for key in ("period", "low", "high", "max", "bin_width", "bins", "bin_to"):
        _require(value.get(key, 1) > 0, f"{key}: it has to be more than 0")
    for key in ("deviation", "bin_from", *(("min",) if kind in (RowKind.LENGTH, RowKind.LOOP) else ())):
        _require(value.get(key, 0) >= 0, f"{key}: it is negative")
    if kind is RowKind.RESPONSE and "max" in figures and not figures["max"].at_least:
        _require(
            value["max"] <= value.get("period", value["max"]), "max: the next event came before, so write it as a >"
        )
    _require(value.get("bins", 0) <= MOST_BINS, f"bins: more than {MOST_BINS:,} are none")
    _check_counts(value)
    if {"bin_width", "bin_from", "bin_to"} <= value.keys():
        one = value["bin_to"] - value["bin_from"] == value["bin_width"]
        _require(one, "bin_from and bin_to: they are not the ends of a bin of bin_width")


def _check_counts(value: dict[str, float]) -> None:
    """UserError where ``count`` contradicts below and above, the other figures, or the period."""
    count = value.get("count")
    if count is None:
        return
    _require(value.get("below", 0) + value.get("above", 0) <= count, "below and above: together more than count")
    _require(
        count > 0 or not value.keys() & {"min", "actual", "mean", "max", "deviation"},
        "count: there are figures of none",
    )
    _require(
        count * value.get("period", 0) <= LARGEST_NUMBER, "count: so many periods take longer than anything measured"
    )


def _check_lengths(
    duration: ArticleFigure | None, asked: ArticleFigure | None, several: tuple[ArticleNumbers, ...]
) -> None:
    """UserError if the two lengths of the run contradict each other, or if a value is longer than the run.

    duration: the length as printed. asked: the exact length.
    """
    for key, length in (("duration", duration), ("asked", asked)):
        if length is not None:
            _require(length.value > 0, f"{key}: it has to be longer than 0")
            _require(key == "duration" or not length.at_least, f"{key}: it is an exact length")
            for numbers in several if not length.at_least else ():
                _check_length(key, length.value, numbers)
    if duration is not None and asked is not None and not duration.at_least:
        same = abs(asked.value - duration.value) <= duration.step
        _require(same, "asked: it is not the duration that was printed; leave out what the run did not keep to")


def _check_length(key: str, length_ns: float, numbers: ArticleNumbers) -> None:
    longest = max(((numbers.value(name) or 0, name) for name in ("period", "max")), default=(0, ""))
    _require(longest[0] <= length_ns, f"numbers {numbers.name!r}: {longest[1]}: it is longer than the run ({key})")


def _statement(file: ArticleStatementFile, rows: dict[str, ArticleRow]) -> ArticleStatement:
    _require(file.says in SAYS, f"says: {file.says!r} is none of {', '.join(SAYS)}")
    number = SAYS[file.says]
    _require(len(file.rows) == (number or max(len(file.rows), 1)), f"rows: {file.says!r} is said of {number or 'some'}")
    _require(
        file.limit is None if number else file.limit is not None,
        f"limit: {file.says!r} has {'none' if number else 'one'}",
    )
    for key in file.rows:
        _require(key in rows, f"rows: there is no row {key!r}")
    for key in file.rows:
        _require(file.field in {each.name for each in rows[key].numbers}, f"field: row {key!r} has no {file.field!r}")
    above, top = _optional("above", file.above, printed_time), _optional("top_share", file.top_share, printed_share)
    limit = _optional("limit", file.limit, printed_time)
    _require(limit is None or (limit.value > 0 and not limit.at_least), "limit: it has to be more than 0, and exact")
    for key in file.rows if above else ():
        _check_above(above.value if above else 0, next(each for each in rows[key].numbers if each.name == file.field))
    return ArticleStatement(file.key, file.rows, file.field, file.says, above, top, limit)


def _check_above(above: float, numbers: ArticleNumbers) -> None:
    """UserError unless the value, above which one row is better, lies on the scale of these numbers."""
    width, bins, most = (numbers.value(key) for key in ("bin_width", "bins", "max"))
    ends = (
        width or 0,
        min(width * bins if width and bins else LARGEST_NUMBER, LARGEST_NUMBER if most is None else most),
    )
    _require(above > 0 and ends[0] <= above <= ends[1], "above: no value of these rows lies there")


def _loadavg(text: str | None) -> tuple[float, ...]:
    if text is None:
        return ()
    words = text.split()
    with _where("loadavg"):
        _require(len(words) == 3 and all(_NUMBER.fullmatch(word) for word in words), f"{text!r} is not three numbers")
    return tuple(map(float, words))


def _optional(key: str, text: str | None, reader: Callable[[str], ArticleFigure]) -> ArticleFigure | None:
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
    """Put the place of a mistake once in front of the sentence of its UserError."""
    try:
        yield
    except UserError as error:
        told = str(error)
        raise UserError(told if told.startswith(place) else f"{place}: {told}") from error
