# SPDX-License-Identifier: Apache-2.0
"""The numbers that an article published, as frozen data from its TOML file, and its rows as claims to object to.

The file has numbers as articles print them: "177 us", "-3.835 us", ">30 ms", "44 h 30 min", "1.3 %". The reader keeps
the unit of the last digit, because a duration in whole minutes may be a minute longer than printed. A wrong value gives
a UserError: one sentence with the file, the row and the key. Times are in nanoseconds.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from rtproof.core import toml, units
from rtproof.core.errors import UserError
from rtproof.core.phrases import unknown_name
from rtproof.judge.doubts.result_row import (
    Figures,
    ResultBins,
    ResultClaim,
    RowConditions,
    RowKind,
    ShareAtMost,
    Span,
    counts_in_bins,
    exact_span,
)
from rtproof.judge.doubts.row_statements import CONDITIONS

SAME, BETTER_ABOVE, BELOW, NOT_BELOW = "same", "better above", "below", "not below"
"""What a conclusion can say."""


PREEMPTIONS = ("none", "voluntary", "full", "lazy", "rt", "plain", "core", "")
"""What a row can say of its kernel. plain: any model but PREEMPT_RT; core: a co-kernel beside Linux; "": nothing."""


@dataclass(frozen=True)
class ArticleFigure:
    """A number that an article printed.

    text: the number as printed. value: the same in ``unit``, which is ns, count or %; with % the value is a share of 1.
    step: one unit of the last printed digit, in ``unit``. at_least: the article gives a lower bound only.
    """

    text: str
    value: int | float
    unit: str
    step: int | float = 0
    at_least: bool = False


class ArticleNumbers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The figures of one thread or field, by the names of ``FIGURES``.

    percentiles, curve: pairs of a share and a value; in a curve, the share was read at the value. bin_counts: of each
    bin.
    """

    name: str
    figures: dict[str, ArticleFigure]
    kind: RowKind = RowKind.LATENCY
    percentiles: tuple[tuple[ArticleFigure, ArticleFigure], ...] = ()
    curve: tuple[tuple[ArticleFigure, ArticleFigure], ...] = ()
    bin_counts: tuple[int, ...] = ()

    def value(self, name: str) -> float | None:
        figure = self.figures.get(name)
        return figure.value if figure else None

    @property
    def named_figures(self) -> dict[str, ArticleFigure]:
        """The figures with the percentiles, which are named as printed ("p99.9")."""
        return {**self.figures, **{f"p{share.text.rstrip(' %')}": at for share, at in self.percentiles}}


class ArticleRow(RowConditions, frozen=True, forbid_unknown_fields=True):
    """One run that an article describes. Where the article says nothing, a text is empty and a number is None.

    preemption: the kernel's preemption model, one of PREEMPTIONS. section: heading in the article. duration: the length
    of the run as printed; asked: the length that the command asked for, exact to the second. cpus: the number of CPUs
    of the board. stopped: the loop stopped. caveats: what the article itself says against the row. figures: of the
    whole row, by name, for tables that compare a run with the article.
    """

    key: str
    label: str
    section: str
    board: str
    kernel: str
    preemption: str = ""
    duration: ArticleFigure | None = None
    asked: ArticleFigure | None = None
    cpus: int | None = None
    stopped: bool = False
    caveats: tuple[str, ...] = ()
    numbers: tuple[ArticleNumbers, ...] = ()
    figures: dict[str, ArticleFigure] = msgspec.field(default_factory=dict)


class ArticleStatement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A conclusion that an article draws from rows about the values of ``field``.

    says: of two rows "same", or "better above": the first is better for values above ``above``, which are ``top_share``
    of all. Of any rows "below" or "not below": whether all values of each stay below ``limit``.
    """

    key: str
    rows: tuple[str, ...]
    field: str
    says: str
    above: ArticleFigure | None = None
    top_share: ArticleFigure | None = None
    limit: ArticleFigure | None = None


@dataclass(frozen=True)
class Article:
    """One article with its rows and its conclusions.

    name: of its file. about: how to read its numbers. threshold: the percentile that the article judges by, as a share.
    threshold_note: what a reader has to know of it.
    """

    name: str
    title: str
    source: str
    about: str
    rows: tuple[ArticleRow, ...]
    statements: tuple[ArticleStatement, ...] = ()
    threshold: ArticleFigure | None = None
    threshold_note: str = ""

    def row(self, key: str) -> ArticleRow | None:
        """The row with this key, or None."""
        return next((row for row in self.rows if row.key == key), None)


# A printed number as an ArticleFigure.


_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([^\s0-9.]+)")
_PARTS = re.compile(rf"(?:{_PART.pattern}\s*)+")


def printed_duration(text: str) -> ArticleFigure:
    """A time in ns from one or more parts, such as "9 h 47 min", or a lower bound with a ">" in front. UserError."""
    bare = text.strip().removeprefix(">").strip()
    sign, bare = (-1, bare[1:]) if bare.startswith("-") else (1, bare)
    parts = _PART.findall(bare) if _PARTS.fullmatch(bare) else []
    if not parts:
        raise UserError(f"{text!r} is not a time: write a number and its unit ({units.UNIT_NAMES}), such as 177 us")
    ns = [units.parse_duration(f"1{unit}") for _, unit in parts]
    if ns != sorted(set(ns), reverse=True):
        raise UserError(f"{text!r} is not a time: its units have to become smaller, as in 9 h 47 min")
    # A mean may have been printed with more digits than whole nanoseconds, which the text keeps.
    exact = [(Decimal(number) * size).to_integral_value() for (number, _), size in zip(parts, ns, strict=True)]
    value = sign * sum(units.parse_duration(f"{each:f}ns") for each in exact)
    step = Decimal(ns[-1]).scaleb(int(Decimal(parts[-1][0]).as_tuple().exponent))
    return ArticleFigure(text.strip(), value, "ns", max(int(step), 1), at_least=text.strip().startswith(">"))


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
FIGURES: dict[str, Callable[[Any], ArticleFigure]] = {
    **dict.fromkeys(("period", "min", "actual", "mean", "max", "deviation"), printed_time),
    **dict.fromkeys(("low", "high", "bin_width", "bin_from", "bin_to", "bin_start"), printed_time),
    **dict.fromkeys(("count", "below", "above", "bins", "overflow"), printed_count),
    "bin_share": partial(printed_share, ends=True),
}
"""The figures of a thread or field, and how each is printed. low, high: ends of a band; below, above: how many values
lie outside of it on each side. bin_from, bin_to, bin_share: the ends of the fullest bin and the share of the values in
it. bin_start: where the first bin begins, by default 0. overflow: how many values lie beyond the last bin."""
_NUMBER = re.compile(r"[0-9]{1,6}(\.[0-9]+)?")
LARGEST_NUMBER = 2**63 - 1
MOST_BINS = 10_000_000
MOST_CPUS = 1 << 16
POSITIVE = ("period", "low", "high", "max", "bin_width", "bins", "bin_to")
REAL_TIME = ("fifo", "rr")


class ArticleFile(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The whole file. Rows and statements are converted later, one by one, so that an error can name the row."""

    title: str
    source: str
    about: str
    row: list[dict[str, Any]]
    statement: list[dict[str, Any]] = []
    threshold: str | None = None
    threshold_note: str = ""


def names() -> list[str]:
    """The names of the articles in this folder, sorted."""
    return sorted(path.stem for path in FOLDER.glob(f"*{SUFFIX}"))


def load(name_or_path: str) -> Article:
    """The article with this name, or the one in the user's TOML file. UserError, which lists the names, if neither."""
    if name_or_path in names():
        return read(FOLDER / f"{name_or_path}{SUFFIX}")
    if name_or_path.endswith(SUFFIX):
        return read(Path(name_or_path))
    raise UserError(unknown_name("article", name_or_path, names(), f", or give the path of a {SUFFIX} file"))


def read(path: Path) -> Article:
    """The article in this file; UserError if the file is wrong."""
    found = toml.read_toml(path, ArticleFile)
    rows: dict[str, ArticleRow] = {}
    for place, data in enumerate(found.row, 1):
        with _where(name := f"{path}, row {_key_or_place(data, place)}"):
            row = _row(name, data)
            _require(row.key not in rows, "key: another row has the same one")
            _require(row.label not in (other.label for other in rows.values()), "label: another row has the same one")
            rows[row.key] = row
    statements: list[ArticleStatement] = []
    for place, data in enumerate(found.statement, 1):
        with _where(name := f"{path}, statement {_key_or_place(data, place)}"):
            statements.append(_statement(name, data, rows))
    with _where(str(path)):
        (threshold,) = _read({"threshold": found.threshold}, {"threshold": printed_share}).values()
    texts = path.stem, found.title, found.source, found.about.strip()
    return Article(*texts, tuple(rows.values()), tuple(statements), threshold, found.threshold_note)


def _key_or_place(data: dict[str, Any], place: int) -> str:
    return repr(data["key"]) if isinstance(data.get("key"), str) else str(place)


def _read(data: dict[str, Any], readers: Mapping[str, Callable[[str], Any]]) -> dict[str, Any]:
    """The data with what the readers make of its texts; UserError for a value that is no text."""
    found = dict(data)
    for key, reader in readers.items():
        if data.get(key) is not None:
            with _where(key):
                _require(isinstance(data[key], str), "it is no text")
                found[key] = reader(data[key])
    return found


def _row(name: str, data: dict[str, Any]) -> ArticleRow:
    told = _read(data, {"duration": printed_duration, "asked": printed_duration, "loadavg": _loadavg})
    _require("figures" not in data, "there is no key 'figures'")
    if isinstance(data.get("numbers"), list):
        told["numbers"] = [_numbers(each) if isinstance(each, dict) else each for each in data["numbers"]]
    row = toml.convert_toml(told, ArticleRow, name)
    _require(row.key.replace("-", "").isalnum(), "key: letters, digits and - are allowed")
    _require(row.cpus is None or 1 <= row.cpus <= MOST_CPUS, f"cpus: a board has between 1 and {MOST_CPUS:,}")
    least = int(row.policy in REAL_TIME)
    _require(row.priority is None or least <= row.priority <= 99, f"priority: it lies between {least} and 99")
    known = ", ".join(filter(None, PREEMPTIONS))
    _require(row.preemption in PREEMPTIONS, f"preemption: {row.preemption!r} is none of {known}")
    for each in row.varies:
        _require(each in CONDITIONS, f"varies: {each!r} is none of {', '.join(CONDITIONS)}")
    _require(len({each.name for each in row.numbers}) == len(row.numbers), "numbers: two have the same name")
    for numbers in row.numbers:
        for fault in _faults(numbers):
            raise UserError(f"numbers {numbers.name!r}: {fault}")
    for fault in _faults_of_lengths(row):
        raise UserError(fault)
    return msgspec.structs.replace(row, figures=row_figures(row.numbers))


def _numbers(data: dict[str, Any]) -> dict[str, Any]:
    """The data of a thread or field with its figures in a table of their own."""
    with _where(f"numbers {data.get('name')!r}"):
        _require(data.get("kind", KINDS[0]) in KINDS, f"kind: {data.get('kind')!r} is none of {', '.join(KINDS)}")
        _require("figures" not in data, "there is no key 'figures'")
        told = {key: value for key, value in data.items() if key not in FIGURES}
        told["figures"] = {key: _figure(key, value) for key, value in data.items() if key in FIGURES}
        for key in ("percentiles", "curve"):
            if isinstance(data.get(key), list):
                told[key] = [_pair(key, each) for each in data[key]]
        return told


def _figure(key: str, told: object) -> ArticleFigure:
    reader = FIGURES[key]
    with _where(key):
        if reader is printed_count:
            _require(type(told) is int, "it is no whole number")
        else:
            _require(isinstance(told, str), "it is no text with a unit, such as 177 us")
        figure = reader(told)
        _require(figure.value <= LARGEST_NUMBER, "it is larger than anything measured")
        _require(key == "max" or not figure.at_least, "only a maximum can be a lower bound")
        _require(figure.value > 0 or not figure.at_least, "at least nothing says nothing")
        return figure


def _pair(key: str, told: Any) -> tuple[ArticleFigure, ArticleFigure]:
    """A share and the value that it belongs to; a point of a curve has them in the other order."""
    with _where(key):
        texts = isinstance(told, list) and all(isinstance(each, str) for each in told)
        _require(texts and len(told) == 2, "it needs pairs of texts")
        share, at = told if key == "percentiles" else reversed(told)
        found = printed_share(share, ends=True), printed_time(at)
        _require(0 <= found[0].value <= 1, f"{share!r} is no share: it lies between 0 % and 100 %")
        _require(abs(found[1].value) <= LARGEST_NUMBER, "it is larger than anything measured")
        _require(not found[1].at_least, "only a maximum can be a lower bound")
        return found


def _faults(numbers: ArticleNumbers) -> Iterator[str]:
    """Yield what no measurement can have, such as a minimum above the maximum."""
    figures, counts = numbers.figures, numbers.bin_counts
    value = {key: figure.value for key, figure in figures.items()}
    for low, high in ORDER:
        if low in figures and high in figures:
            # A mean of 118.4 us is not above a maximum that was printed as 118 us.
            steps = (figures[low].step, figures[high].step)
            if value[low] > value[high] + (max(steps) if steps[0] != steps[1] else 0):
                yield f"{low}: it is larger than {high}"
    yield from (f"{key}: it has to be more than 0" for key in POSITIVE if value.get(key, 1) <= 0)
    never_negative = ("deviation", "bin_from", *(("min",) if numbers.kind in (RowKind.LENGTH, RowKind.LOOP) else ()))
    yield from (f"{key}: it is negative" for key in never_negative if value.get(key, 0) < 0)
    yield from _faults_of_counts(value)
    most = figures.get("max")
    if numbers.kind is RowKind.RESPONSE and most and not most.at_least and most.value > value.get("period", most.value):
        yield "max: the next event came before, so write it as a >"
    if value.get("bins", 0) > MOST_BINS:
        yield f"bins: more than {MOST_BINS:,} are none"
    ends = [value[key] for key in ("bin_from", "bin_to", "bin_width") if key in value]
    if len(ends) == 3 and ends[1] - ends[0] != ends[2]:
        yield "bin_from and bin_to: they are not the ends of a bin of bin_width"
    if any(not 0 <= count <= LARGEST_NUMBER for count in counts):
        yield "bin_counts: one is no count"
    if counts and ("bin_width" not in value or value.get("bins", len(counts)) != len(counts)):
        yield "bin_counts: they need bin_width, and as many as bins"


def _faults_of_counts(value: Mapping[str, float]) -> Iterator[str]:
    count = value.get("count", LARGEST_NUMBER)
    if value.get("below", 0) + value.get("above", 0) > count:
        yield "below and above: together more than count"
    if not count and value.keys() & {"min", "actual", "mean", "max", "deviation"}:
        yield "count: there are figures of none"
    if "count" in value and count * value.get("period", 0) > LARGEST_NUMBER:
        yield "count: so many periods take longer than anything measured"


def _faults_of_lengths(row: ArticleRow) -> Iterator[str]:
    """Yield how the two lengths of the run contradict each other, and which value is longer than the run."""
    duration, asked = row.duration, row.asked
    for key, length in (("duration", duration), ("asked", asked)):
        if length is not None and length.value <= 0:
            yield f"{key}: it has to be longer than 0"
        if length is None or length.at_least:
            continue
        for each in row.numbers:
            longest = max(((each.value(name) or 0, name) for name in ("period", "max")), default=(0, ""))
            if longest[0] > length.value:
                yield f"numbers {each.name!r}: {longest[1]}: it is longer than the run ({key})"
    if asked and asked.at_least:
        yield "asked: it is an exact length"
    if duration and asked and not duration.at_least and abs(asked.value - duration.value) > duration.step:
        yield "asked: it is not the duration that was printed; leave out what the run did not keep to"


def _statement(name: str, data: dict[str, Any], rows: dict[str, ArticleRow]) -> ArticleStatement:
    told = _read(data, {"above": printed_time, "top_share": printed_share, "limit": printed_time})
    file = toml.convert_toml(told, ArticleStatement, name)
    _require(file.says in SAYS, f"says: {file.says!r} is none of {', '.join(SAYS)}")
    number = SAYS[file.says]
    _require(len(file.rows) == (number or max(len(file.rows), 1)), f"rows: {file.says!r} is said of {number or 'some'}")
    _require(
        file.limit is None if number else file.limit is not None,
        f"limit: {file.says!r} has {'none' if number else 'one'}",
    )
    for key in file.rows:
        _require(key in rows, f"rows: there is no row {key!r}")
        _require(file.field in {each.name for each in rows[key].numbers}, f"field: row {key!r} has no {file.field!r}")
    limit = file.limit
    _require(limit is None or (limit.value > 0 and not limit.at_least), "limit: it has to be more than 0, and exact")
    return file


def _loadavg(text: str) -> tuple[float, ...]:
    words = text.split()
    _require(len(words) == 3 and all(_NUMBER.fullmatch(word) for word in words), f"{text!r} is not three numbers")
    return tuple(map(float, words))


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


# What the rules of judge.doubts and the tables of a campaign want to know.


def row_figures(several: tuple[ArticleNumbers, ...]) -> dict[str, ArticleFigure]:
    """The figures of a row by name, made from the numbers of its threads or fields.

    With several, the name of each stands in front ("top.max"). Threads of one kind also get the smallest, the largest
    and the number of all values. Fields of the same activations get one common number of values.
    """
    if len(several) == 1:
        return several[0].named_figures
    named = {f"{each.name}.{key}": figure for each in several for key, figure in each.named_figures.items()}
    of_all = {key: [each.figures[key] for each in several if key in each.figures] for key in ("min", "max", "count")}
    told = {key: found for key, found in of_all.items() if found and len(found) == len(several)}
    if len({each.kind for each in several}) == 1 and all(each.name.startswith("thread ") for each in several):
        for key, choose in (("min", min), ("max", max)):
            if key in told:
                named[key] = choose(told[key], key=lambda figure: figure.value)
        if "count" in told:
            total = int(sum(figure.value for figure in told["count"]))
            named["count"] = ArticleFigure(f"{total:,}", total, "count", 1)
    elif "count" in told and len(set(told["count"])) == 1:
        named["count"] = told["count"][0]
    return named


VALUES = ("min", "mean", "max", "deviation")
IDLE = ("none", "idle", "unloaded")


def claims(article: Article) -> tuple[ResultClaim, ...]:
    """One claim per row, in order, by the row's key."""
    found = []
    for row in article.rows:
        own = [each for each in article.statements if row.key in each.rows and each.limit]
        figures = tuple(_figures(each, [said for said in own if said.field == each.name]) for each in row.numbers)
        told = {name: getattr(row, name) for name in RowConditions.__struct_fields__}
        said_idle = row.load.lower() in IDLE
        found.append(ResultClaim(row.key, figures, span=_span(row), said_idle=said_idle, online_count=row.cpus, **told))
    return tuple(found)


def _figures(numbers: ArticleNumbers, statements: Sequence[ArticleStatement]) -> Figures:
    below, beyond = (
        [each.limit.value for each in statements if each.limit and each.says == says] for says in (BELOW, NOT_BELOW)
    )
    figures, bins = numbers.figures, _bins(numbers)
    count, period, short, long, overflow = (
        None if (value := numbers.value(key)) is None else int(value)
        for key in ("count", "period", "below", "above", "overflow")
    )
    times: dict[str, Any] = {f"{key}_ns": numbers.value(key) for key in (*VALUES, "low", "high")}
    # The precision of the row is that of the mean if there is one, otherwise the coarsest of its values.
    steps = {key: figures[key].step for key in VALUES if key in figures}
    return Figures(
        numbers.name,
        numbers.kind,
        period_ns=period,
        count=count,
        step_ns=int(steps.get("mean", max(steps.values(), default=0))),
        at_least="max" in figures and figures["max"].at_least,
        below=short,
        above=long,
        out_of_band=None if short is None or long is None else short + long,
        percentiles=tuple(ShareAtMost(share.value, at.value, 0.0, at.step) for share, at in numbers.percentiles),
        curve=tuple(ShareAtMost(share.value, at.value, share.step, 0.0) for share, at in numbers.curve),
        bins=bins,
        counts=counts_in_bins(bins, numbers.bin_counts) if bins else None,
        beyond=overflow or 0,
        beyond_from_ns=bins.end_ns if bins else None,
        steps=steps,
        said_below_ns=min(below, default=None),
        said_beyond_ns=max(beyond, default=None),
        **times,
    )


def _bins(numbers: ArticleNumbers) -> ResultBins | None:
    """The histogram, None if the article tells nothing of it."""
    if not any(key.startswith("bin") for key in numbers.figures) and not numbers.bin_counts:
        return None
    value, share = numbers.value, numbers.figures.get("bin_share")
    number = len(numbers.bin_counts) or value("bins")
    return ResultBins(
        start_ns=value("bin_start") or 0.0,
        width_ns=value("bin_width"),
        number=None if number is None else int(number),
        full_from_ns=value("bin_from"),
        full_to_ns=value("bin_to"),
        full_share=share.value if share else None,
        share_step=share.step if share else 0.0,
    )


def _span(row: ArticleRow) -> Span | None:
    """The length of the run: exact if the command asked for it. A printed one was cut or rounded at its last digit."""
    if row.asked is not None:
        return exact_span(int(row.asked.value))
    if row.duration is None or row.duration.at_least:
        return None
    printed, step = int(row.duration.value), int(row.duration.step)
    return Span(printed, printed - step // 2, printed + step)
