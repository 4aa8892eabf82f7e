# SPDX-License-Identifier: Apache-2.0
"""Judge a check by its ``rule`` list: the first rule whose tests all hold is the judgement.

A test is ``TERM VERB ARGUMENT``, or ``TERM not VERB ARGUMENT``. A term names one of the sources of the check by its
last part, or a part of a text (``Part``), and stands for all readings of it. A test selects the readings for which the
verb is true, and holds if there is one; with ``not``, if there is none. ``here`` and ``absent`` are as in a Reading,
``hidden`` is neither. All other verbs are true only of a text that is HERE.

A reading has fields. The fields of a row of a table are its columns. The fields of a file are the other files in its
folder, and ``cpu``, ``name`` and ``path`` of its path. ``where`` of a part selects readings by tests of their fields.
"""

import posixpath
import re
from collections.abc import Callable, Iterable
from functools import cache
from itertools import islice

import msgspec

from rtproof.audit import conditions, readings
from rtproof.audit.check import Check, Judgement, Outcome, Part, Rule
from rtproof.audit.facts import (
    ISOLATED,
    NOHZ_FULL,
    ONLINE,
    Facts,
    Reading,
    State,
    kernel_version,
    parse_cpu_list,
    parse_cpu_mask,
)
from rtproof.audit.readings import cpu_words, first_names
from rtproof.audit.system_tables import APPLICATION_PATH, PATH, interrupt_rows, thread_rows
from rtproof.core.phrases import quantity
from rtproof.core.printable import clean

_SLOT = re.compile(r"\{([^{}]+)\}")
FEW = 2
_END = "end:"
"""Before a term: as it was read again at the end."""
_NUMBER_ARGUMENT = re.compile(r"-?\d+|(?:(\d+(?:\.\d+)?) )?\{([^{}]+)\}")
"""A number, or that of a term, a field of a term or of the same reading, with a factor: ``above 0.9 {its|limit}``."""
_A_NUMBER = re.compile(r"-?\d{1,30}(\.\d+)?")
_NOT_THERE = "\0"
"""The argument in place of a term that is not there: no text is this."""
_CPU_IN_PATH = re.compile(r"/(?:cpu|policy|machinecheck|node)(\d{1,6})(?:/|$)")

TABLES: dict[str, Callable[[Facts], tuple[Reading, ...]]] = {
    "threads": lambda facts: thread_rows(facts, PATH),
    "application": lambda facts: thread_rows(facts, APPLICATION_PATH),
    "interrupts": interrupt_rows,
}
"""Terms whose readings are the rows of a table. One that may lack rows ends with a reading that says why."""
Test = tuple[str, bool, str, str]
"""The term, whether the verb shall be true, the verb, and its argument."""


@cache
def read_test(text: str) -> Test:
    """The test in these words."""
    term, _, rest = text.partition(" ")
    verb, _, argument = rest.removeprefix("not ").partition(" ")
    return term, not rest.startswith("not "), verb, argument


@cache
def source_of(sources: tuple[str, ...], term: str) -> str:
    """The source of a check that a term names: all of it, or its end. ValueError if there is none, or several."""
    found = [one for one in sources if one == term] or [
        one for one in sources if one.endswith((f"/{term}", f":{term}"))
    ]
    if len(found) != 1:
        raise ValueError(f"{term!r} names {'no source' if not found else 'several sources'} of the check")
    return found[0]


def _words(argument: str) -> list[str]:
    return argument.split("|")


def _isolated(facts: Facts) -> frozenset[int]:
    return facts.isolated or frozenset()


def _number(compare: Callable[[int, float], bool]) -> Callable[[Facts, Reading, str], bool]:
    def judge(_: Facts, reading: Reading, argument: str) -> bool:
        number = reading.number()
        return number is not None and bool(_A_NUMBER.fullmatch(argument)) and compare(number, float(argument))

    return judge


_RELATIONS: dict[str, Callable[[frozenset[int], frozenset[int]], bool]] = {
    "some": lambda cpus, _: bool(cpus),
    "one": lambda cpus, _: len(cpus) == 1,
    "few": lambda cpus, _: len(cpus) <= FEW,
    "several": lambda cpus, _: len(cpus) > 1,
    "matter": lambda cpus, isolated: not isolated or bool(cpus & isolated),
    "cover isolated": lambda cpus, isolated: isolated <= cpus,
    "within isolated": lambda cpus, isolated: bool(cpus) and cpus <= isolated,
    "beyond isolated": lambda cpus, isolated: bool(cpus - isolated),
    "touch isolated": lambda cpus, isolated: bool(cpus & isolated),
    "spare isolated": lambda cpus, isolated: not cpus & isolated,
    "wrong": lambda _, __: False,
}
"""What a test can ask of CPUs and those that shall be isolated. wrong: the text is no list or mask of CPUs.

matter: one of them is isolated, or none is isolated at all.
"""


def _cpus(parse: Callable[[str], frozenset[int] | None]) -> Callable[[Facts, Reading, str], bool]:
    def judge(facts: Facts, reading: Reading, argument: str) -> bool:
        cpus = parse(reading.text) if reading.here else None
        if cpus is None:
            return reading.here and argument == "wrong"
        return _RELATIONS[argument](cpus, _isolated(facts))

    return judge


def _lost(facts: Facts, reading: Reading, argument: str) -> bool:
    """Whether a file could not be read, or vanished after it was listed. A CPU that is offline has none to read.

    argument: "isolated" for files of isolated CPUs only, if any is isolated.
    """
    if reading.here or (reading.absent and "*" in reading.path):
        return False
    cpu = _CPU_IN_PATH.search(reading.path)
    online, isolated = facts.cpus(ONLINE), facts.isolated if argument else None
    if isolated and (cpu is None or int(cpu[1]) not in isolated):
        return False
    return online is None or cpu is None or int(cpu[1]) in online


VERBS: dict[str, Callable[[Facts, Reading, str], bool]] = {
    "here": lambda _, reading, __: reading.here,
    "absent": lambda _, reading, __: reading.absent,
    "hidden": lambda _, reading, __: not reading.here and not reading.absent,
    "refused": lambda _, reading, names: any(f"({name})" in reading.reason for name in _words(names)),
    "lost": _lost,
    "vanished": lambda _, reading, __: reading.absent and "*" not in reading.path,
    "unreadable": lambda _, reading, __: reading.state is State.UNREADABLE,
    "is": lambda _, reading, words: reading.here and reading.word in _words(words),
    "other-than": lambda _, reading, words: reading.here and reading.word not in _words(words),
    "has": lambda _, reading, pattern: reading.here and bool(re.search(pattern, reading.text)),
    "lacks": lambda _, reading, pattern: reading.here and not re.search(pattern, reading.text),
    "names": lambda _, reading, words: reading.here and bool({*_words(words)} & {*reading.text.split()}),
    "no-number": lambda _, reading, __: reading.here and reading.number() is None,
    "equals": _number(lambda number, other: number == other),
    "above": _number(lambda number, most: number > most),
    "below": _number(lambda number, least: number < least),
    "cpu-list": _cpus(parse_cpu_list),
    "cpu-mask": _cpus(parse_cpu_mask),
    "differ": lambda _, reading, __: reading.here,
    "span": lambda _, reading, __: reading.here,
}
"""What a test can ask of a reading. Several words stand with | between them.

Two verbs ask of all readings of a term: ``TERM differ FIELD`` whether two of them have different texts there,
``TERM span isolated`` whether there is one of each isolated CPU.
"""


def _kernel_is(facts: Facts, verb: str, version: str) -> bool:
    """kernel before VERSION, kernel since VERSION; neither holds of a kernel that is not known."""
    wanted = kernel_version(version)
    return facts.kernel is not None and wanted is not None and (facts.kernel < wanted) == (verb == "before")


def _isolation_is(facts: Facts, verb: str, _: str) -> bool:
    """apart: the kernel keeps all CPUs that shall be isolated out of balancing, or without a tick."""
    wanted = _isolated(facts)
    if verb in ("none", "unknown"):
        return not wanted if verb == "none" else facts.isolated is None
    lists = (facts.cpus(path) or () for path in (ISOLATED, NOHZ_FULL) if verb == "apart")
    return bool(wanted) and (verb == "some" or wanted <= frozenset[int]().union(*lists))


_ABOUT_THE_SYSTEM: dict[str, Callable[[Facts, str, str], bool]] = {
    "kernel": _kernel_is,
    "condition": lambda facts, name, how: conditions.CONDITIONS[name](facts)[0] is (None if how else True),
    "isolated": _isolation_is,
    "purpose": lambda facts, _, names: facts.request.purpose in _words(names),
    "obeys": lambda facts, word, _: conditions.obeys(facts, word),
    "config": lambda facts, _, option: facts.config is not None and (not option or option in facts.config.options),
}
"""Terms that are no reading: ``kernel since 6.12``, ``condition x86``, ``isolated some``, ``obeys nohlt``.

``condition x86 unknown``: it is not known whether it holds.
"""


class _Terms:
    """The readings of the terms of a check."""

    def __init__(self, facts: Facts, check: Check) -> None:
        self.facts, self.check = facts, check
        self._found: dict[str, tuple[Reading, ...]] = {}

    def of(self, term: str) -> tuple[Reading, ...]:
        """All readings of a term."""
        if term not in self._found:
            self._found[term] = tuple(self._read(term))
        return self._found[term]

    def _read(self, term: str) -> Iterable[Reading]:
        part = self.check.part.get(term)
        if part:
            return self._of_terms(part) if part.first or part.each or part.change else self._part(part)
        if term.startswith(_END):
            return self._again(term.removeprefix(_END))
        if term not in TABLES:
            return readings.read_source(self.facts, source_of((*self.check.read, *self.check.also), term))
        if term not in self.facts.rows:
            self.facts.rows[term] = TABLES[term](self.facts)
        return self.facts.rows[term]

    def _of_terms(self, part: Part) -> Iterable[Reading]:
        """A part that is made of other terms."""
        if part.first:
            found = next((one for one in map(self.of, part.first) if any(each.here for each in one)), None)
            return self.of(part.first[0]) if found is None else found
        if part.each:
            return dict.fromkeys(reading for one in part.each for reading in self.of(one))
        return self._changes(part.change)

    def _part(self, part: Part) -> list[Reading]:
        found = list(self.of(part.of))
        if part.find or part.line or part.shown:
            found = [each for reading in found for each in _parts(reading, part)]
        tests = [read_test(text) for text in part.where]
        found = [one for one in found if not tests or (one.here and all(self.fits(one, test) for test in tests))]
        for field, choose in ((part.most, max), (part.least, min)):
            if field and found:
                found = [choose(found, key=lambda one: field_of(self.facts, one, field).number() or 0)]
        path = next((one.path for one in self.of(part.of)), part.of)
        return found or [Reading(path, State.ABSENT, "", "it is not there")]

    def _again(self, term: str) -> list[Reading]:
        part = self.check.part.get(term)
        if part and part.of:
            return self._part(msgspec.structs.replace(part, of=f"{_END}{part.of}"))
        return [readings.again(self.facts, reading) for reading in self.of(term) if reading.here]

    def _changes(self, term: str) -> list[Reading]:
        """How much each file grew, or each number of a row of the same key: its first field."""
        here = [reading for reading in self.of(term) if reading.here]
        if not any(reading.fields for reading in here):
            return [_change(reading, readings.again(self.facts, reading)) for reading in here]
        again = {_key(row): row for row in self.of(f"{_END}{term}") if row.here}
        return [_row_change(row, again.get(_key(row))) for row in here]

    def fits(self, reading: Reading, test: Test) -> bool:
        """Whether a test holds of a field of a reading. ``{its|FIELD}`` as argument is another field of it."""
        name, positive, verb, argument = test
        field = field_of(self.facts, reading, name)
        return VERBS[verb](self.facts, field, self.argument(argument, reading)) == positive

    def argument(self, argument: str, row: Reading | None = None) -> str:
        """The argument of a test, with the text of a field or of a term in place of its name."""
        found = _NUMBER_ARGUMENT.fullmatch(argument) if "{" in argument else None
        if not found or not found[2]:
            return argument
        term, _, field = found[2].partition("|")
        reading = row if row and term == "its" else next(iter(self.of(term)), None)
        if reading and field and reading.here:
            reading = field_of(self.facts, reading, field)
        if not reading or not reading.here:
            return _NOT_THERE
        if not found[1]:
            return reading.word
        number = reading.number()
        return _NOT_THERE if number is None else str(float(found[1]) * number)

    def selected(self, test: Test) -> tuple[Reading, ...]:
        """The readings of the term of a test for which its verb is true."""
        term, _, verb, argument = test
        argument = self.argument(argument)
        return tuple(one for one in self.of(term) if VERBS[verb](self.facts, one, argument))

    def holds(self, test: Test) -> bool:
        term, positive, verb, argument = test
        if term in _ABOUT_THE_SYSTEM:
            return _ABOUT_THE_SYSTEM[term](self.facts, verb, argument) == positive
        if verb == "differ":
            return (len(self._texts(term, argument)) > 1) == positive
        if verb == "span":
            return (set(map(str, _isolated(self.facts))) <= self._texts(term, "cpu")) == positive
        return bool(self.selected(test)) == positive

    def _texts(self, term: str, field: str) -> set[str]:
        """The different texts of a field of the readings of a term."""
        return {field_of(self.facts, one, field).word for one in self.of(term) if one.here}


def _parts(reading: Reading, part: Part) -> list[Reading]:
    """The first group of what fits the pattern in a text, or all of it; one that is ABSENT if nothing fits."""
    path = part.shown or reading.path
    if not reading.here:
        return [Reading(path, reading.state, "", reading.reason)]
    rows = "?P<" in part.find
    parts = []
    fitting = re.finditer(part.line or part.find, reading.text)
    for one in islice(fitting, None if rows or part.every else 1):
        found = _whole_line(one) if part.line else one[1 if one.re.groups and not rows else 0]
        text = (part.text or "{}").replace("{}", found)
        parts.append(Reading(path, State.HERE, text.rstrip(" \t\n.:"), fields=one.groupdict("")))
    if part.line:
        parts = list(dict.fromkeys(parts))  # A line may fit twice.
    return parts or [Reading(path, State.ABSENT, "", "it is not there")]


def _whole_line(found: re.Match[str]) -> str:
    """The line around what was found, without the level of a kernel's message."""
    begin, end = found.string.rfind("\n", 0, found.start()) + 1, found.string.find("\n", found.end())
    return re.sub(r"^[ \t]*(<\d+>)?", "", found.string[begin : None if end < 0 else end])


def field_of(facts: Facts, reading: Reading, name: str) -> Reading:
    """A field of a row, or what stands beside a file. ABSENT if a row has no such field."""
    if reading.fields:
        text = reading.fields.get(name)
        state = State.ABSENT if text is None else State.HERE
        return Reading(f"{name} of {reading.path}", state, text or "", "" if text is not None else "it is not told")
    folder = reading.path.rpartition("/")[0]
    number = _CPU_IN_PATH.search(reading.path)
    above, _, name_of_folder = folder.rpartition("/")
    of_path = {
        "cpu": number[1] if number else "", "name": name_of_folder, "path": reading.path, "folder": folder,
        "above": above,
    }  # fmt: skip
    if name == "it":
        return reading
    if name == "end":
        return readings.again(facts, reading)
    if name in of_path:
        return Reading(reading.path, State.HERE, of_path[name])
    return facts.read(posixpath.normpath(f"{folder}/{name}"))


def _key(row: Reading) -> str:
    return next(iter(row.fields.values()), "")


def _row_change(start: Reading, end: Reading | None) -> Reading:
    """A row with the growth of each number; UNREADABLE if it is not there at the end."""
    if end is None:
        return Reading(start.path, State.UNREADABLE, "", "it was read at one moment only, so that no change shows")
    (key, name), *columns = start.fields.items()
    grown = {column: str(int(end.fields[column]) - int(text)) for column, text in columns}
    text = f"{name} {', '.join(f'{int(text):+,}' for text in grown.values())}"
    return Reading(start.path, State.HERE, text, fields={key: name, **grown})


def _change(start: Reading, end: Reading) -> Reading:
    """How much a number grew; UNREADABLE if it is not known at both moments."""
    before, after = start.number(), end.number()
    if before is None or after is None:
        return Reading(start.path, State.UNREADABLE, "", start.reason or end.reason or "it is no number")
    return Reading(start.path, State.HERE, str(after - before))


def judge(facts: Facts, check: Check) -> Judgement:
    """The judgement of the first rule that holds."""
    return judged_by(facts, check)[1]


def judged_by(facts: Facts, check: Check) -> tuple[int, Judgement]:
    """The number of the first rule that holds, from 0, and its judgement."""
    terms = _Terms(facts, check)
    for number, rule in enumerate(check.rule):
        tests = [read_test(text) for text in rule.when]
        if all(map(terms.holds, tests)) and (found := _judged(terms, rule, tests)):
            return number, found
    raise AssertionError(f"the last rule of {check.id} does not always hold")


def _judged(terms: _Terms, rule: Rule, tests: list[Test]) -> Judgement | None:
    """The judgement; None if the rule is about what is not there, not known or not understood, and all is."""
    if rule.odd:
        odd = [one for test in map(read_test, rule.odd) for one in terms.selected(test)]
        return readings.not_understood(odd[0]) if odd else None
    if rule.known:
        lost = readings.hidden([reading for term in rule.known for reading in terms.of(term)])
        return readings.unknown(lost) if lost else None
    if rule.there:
        lacking = [term for term in rule.there if not any(reading.here for reading in terms.of(term))]
        lost = [one for term in lacking for one in terms.of(term)]
        return readings.missing(terms.check, lost) if lost else None
    shown = _Shown(terms, tests)
    read = shown.readings(rule.show)
    outcome, text = next((outcome, text) for outcome, text in sentences(rule) if text is not None)
    sentence = _SLOT.sub(lambda slot: shown.text(slot[1]), text)
    if outcome is Outcome.GOOD:
        return readings.good(sentence, read)
    if outcome is Outcome.UNKNOWN and not sentence:
        return readings.unknown(read)
    return Judgement(outcome, sentence, read, rule.severity, shown.named(rule.named))


def sentences(rule: Rule) -> tuple[tuple[Outcome, str | None], ...]:
    """The sentence of each outcome."""
    return (
        (Outcome.GOOD, rule.good),
        (Outcome.FINDING, rule.finding),
        (Outcome.CONFLICTING, rule.conflicting),
        (Outcome.UNKNOWN, rule.unknown),
        (Outcome.NOT_APPLICABLE, rule.not_applicable),
    )


class _Shown:
    """What a rule shows: of a term that its tests select readings of, these, and of another term all."""

    def __init__(self, terms: _Terms, tests: list[Test]) -> None:
        self.terms = terms
        self._tests = {test[0]: test for test in reversed(tests) if test[1] and test[0] not in _ABOUT_THE_SYSTEM}

    def of(self, term: str) -> tuple[Reading, ...]:
        """A term, or TERM.all for all readings, TERM.here for those with a text, TERM.3 for at most three."""
        name, _, how = term.rpartition(".")
        if name and how == "all":
            return self.terms.of(name)
        if name and how == "here":
            return tuple(one for one in self.terms.of(name) if one.here)
        if name and how.isdigit():
            return self.of(name)[: int(how)]
        return self.terms.selected(self._tests[term]) if term in self._tests else self.terms.of(term)

    def readings(self, show: tuple[str, ...] | None) -> list[Reading]:
        """The readings of these terms; by default those that the tests select, or all that the check reads."""
        named = (list(reversed(self._tests)) or self.terms.check.read) if show is None else show
        found = [reading for term in dict.fromkeys(named) for reading in self.of(term)]
        rows: dict[str, list[str]] = {}
        for one in found:
            if one.fields:  # all rows of a table as one
                rows.setdefault(one.path, []).append(one.text)
        files = [one for one in found if not one.fields]
        return [*files, *(Reading(path, State.HERE, first_names(texts)) for path, texts in rows.items())]

    def text(self, slot: str) -> str:
        if slot == "isolated":
            return cpu_words(_isolated(self.terms.facts))
        term, _, kind = slot.partition("|")
        found = self.of(term)
        if not found:
            return ""
        name, _, noun = (kind or "word").partition(" ")
        if name in _TEXTS:
            return _TEXTS[name](found, noun)
        field = noun or name
        fields = [field_of(self.terms.facts, one, field).word for one in found]
        return _FIELD_TEXTS[name if noun else "first"](fields, self.terms)

    def named(self, slot: str) -> tuple[str, ...]:
        """The texts of each reading of a term, or of a field of it, each once."""
        term, _, kind = slot.partition("|")
        names = (
            _TEXTS[kind or "word"]((one,), "")
            if (kind or "word") in _TEXTS
            else field_of(self.terms.facts, one, kind).word
            for one in (self.of(term) if term else ())
        )
        return tuple(dict.fromkeys(names))


def _others(found: tuple[Reading, ...], _: str) -> str:
    return f" The same holds of {quantity(len(found) - 1, 'other')}." if len(found) > 1 else ""


_TEXTS: dict[str, Callable[[tuple[Reading, ...], str], str]] = {
    "word": lambda found, _: clean(found[0].word),
    "path": lambda found, _: clean(found[0].path),
    "reason": lambda found, _: clean(found[0].reason),
    "number": lambda found, _: f"{found[0].number() or 0:,}",
    "such": lambda found, _: f" Such lines: {len(found)}." if len(found) > 1 else "",
    "sum": lambda found, noun: quantity(sum(one.number() or 0 for one in found), noun),
    "count": lambda found, noun: quantity(len(found), noun),
    "others": _others,
    "names": lambda found, _: ", ".join(clean(one.path.rpartition("/")[2]) for one in found),
    "or-names": lambda found, _: " or ".join(clean(one.path.rpartition("/")[2]) for one in found),
    "words": lambda found, _: ", ".join(clean(one.word) for one in found),
    "base": lambda found, _: found[0].value.rpartition("/")[2],
    "device": lambda found, _: clean(found[0].path.partition("/devices/")[2].partition("/")[0]),
    "mebibytes": lambda found, _: f"{(found[0].number() or 0) / (1 << 20):g}",
    "cpu-count": lambda found, _: str(len(parse_cpu_list(found[0].word) or ())),
}
"""How a sentence shows the readings of a term: {TERM} is the first word, {TERM|path} its path, and so on."""


_LARGE = re.compile(r"[0-9]{4,20}")


def _scaled(text: str, divisor: float) -> str:
    return f"{int(text) / divisor:g}" if re.fullmatch(r"-?\d{1,20}", text) else "?"


def _divided(text: str, terms: _Terms) -> tuple[frozenset[int], frozenset[int]]:
    """The CPUs of a list that shall be isolated, and the others."""
    cpus, isolated = parse_cpu_list(text) or frozenset(), _isolated(terms.facts)
    return cpus & isolated, cpus - isolated


_FIELD_TEXTS: dict[str, Callable[[list[str], _Terms], str]] = {
    "first": lambda fields, _: f"{int(fields[0]):,}" if _LARGE.fullmatch(fields[0]) else clean(fields[0]) or "?",
    "list": lambda fields, _: first_names(fields),
    "cpus": lambda fields, _: cpu_words({int(one) for one in fields if one.isdigit()}),
    "cpu-list": lambda fields, _: cpu_words(parse_cpu_list(fields[0]) or ()),
    "thousandths": lambda fields, _: _scaled(fields[0], 1e3),
    "millionths": lambda fields, _: _scaled(fields[0], 1e6),
    "isolated": lambda fields, terms: cpu_words(_divided(fields[0], terms)[0]),
    "not-isolated": lambda fields, terms: cpu_words(_divided(fields[0], terms)[1]),
    "lacking": lambda fields, terms: cpu_words(_isolated(terms.facts) - (parse_cpu_list(fields[0]) or frozenset())),
    "means": lambda fields, terms: ", ".join(dict.fromkeys(terms.check.meaning.get(one, clean(one)) for one in fields)),
    "hints": lambda fields, terms: "".join(
        f" {name} {terms.check.meaning[name]}." for name in sorted({*fields} & terms.check.meaning.keys())
    ),
}
"""How a sentence shows a field of readings: {TERM|FIELD} is that of the first, {TERM|list FIELD} of the first few."""
