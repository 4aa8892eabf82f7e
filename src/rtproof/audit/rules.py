# SPDX-License-Identifier: Apache-2.0
"""Judge a check by its ``rule`` list: the first rule whose tests all hold is the judgement.

A test is ``TERM VERB ARGUMENT``, or ``TERM not VERB ARGUMENT``. A term names one of the sources of the check by its
last part, or a part of a text (``Part``), and stands for all readings of it. A test selects the readings for which the
verb is true, and holds if there is one; with ``not``, if there is none. ``here`` and ``absent`` are as in a Reading,
``hidden`` is neither. All other verbs are true only of a text that is HERE.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice

from rtproof.audit import conditions, readings
from rtproof.audit.answers import cpu_words
from rtproof.audit.audit_model import Judgement, Outcome
from rtproof.audit.check import Check, Part, Rule
from rtproof.audit.facts import Facts, KernelVersion, Reading, State, parse_cpu_list, parse_cpu_mask
from rtproof.audit.presets import PURPOSES
from rtproof.core.phrases import quantity
from rtproof.core.printable import clean

_SLOT = re.compile(r"\{([^{}]+)\}")
FEW = 2
_END = "end:"
"""Before a term: as it was read again at the end."""


@dataclass(frozen=True)
class RuleTest:
    """A test of a rule, as its words say."""

    term: str
    positive: bool
    verb: str
    argument: str


@cache
def read_test(text: str) -> RuleTest:
    """The test in these words. ValueError or re.error if a word of it means nothing."""
    term, _, rest = text.partition(" ")
    positive = not rest.startswith("not ")
    verb, _, argument = rest.removeprefix("not ").partition(" ")
    if verb not in _WORDS_OF_SYSTEM.get(term, VERBS) and term != "obeys":
        raise ValueError(f"{text!r} has no verb of a test")
    if verb in ("has", "lacks"):
        re.compile(argument)
    if verb in ("equals", "above", "below") and not re.fullmatch(r"-?\d+", argument):
        raise ValueError(f"{text!r} compares with no number")
    if verb in ("cpu-list", "cpu-mask") and argument not in _RELATIONS:
        raise ValueError(f"{text!r} asks nothing of CPUs")
    if term == "kernel" and KernelVersion.read(argument) is None:
        raise ValueError(f"{text!r} names no version of a kernel")
    if term == "purpose" and not {*_words(argument)} <= {*PURPOSES}:
        raise ValueError(f"{text!r} names no purpose")
    return RuleTest(term, positive, verb, argument)


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


def _number(compare: Callable[[int, int], bool]) -> Callable[[Facts, Reading, str], bool]:
    def judge(_: Facts, reading: Reading, argument: str) -> bool:
        number = reading.number()
        return number is not None and compare(number, int(argument))

    return judge


_RELATIONS: dict[str, Callable[[frozenset[int], frozenset[int]], bool]] = {
    "some": lambda cpus, _: bool(cpus),
    "one": lambda cpus, _: len(cpus) == 1,
    "few": lambda cpus, _: len(cpus) <= FEW,
    "touch isolated": lambda cpus, isolated: bool(cpus & isolated),
    "spare isolated": lambda cpus, isolated: not cpus & isolated,
    "wrong": lambda _, __: False,
}
"""What a test can ask of CPUs and those that shall be isolated. wrong: the text is no list or mask of CPUs."""


def _cpus(parse: Callable[[str], frozenset[int] | None]) -> Callable[[Facts, Reading, str], bool]:
    def judge(facts: Facts, reading: Reading, argument: str) -> bool:
        cpus = parse(reading.text) if reading.here else None
        isolated = conditions.isolated_cpus(facts) or frozenset()
        if cpus is None:
            return reading.here and argument == "wrong"
        return _RELATIONS[argument](cpus, isolated)

    return judge


VERBS: dict[str, Callable[[Facts, Reading, str], bool]] = {
    "here": lambda _, reading, __: reading.here,
    "absent": lambda _, reading, __: reading.absent,
    "hidden": lambda _, reading, __: not reading.here and not reading.absent,
    "refused": lambda _, reading, names: any(f"({name})" in reading.reason for name in _words(names)),
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
}
"""What a test can ask of a reading. Several words stand with | between them."""


def _of_kernel(facts: Facts, verb: str, version: str) -> bool:
    """kernel before VERSION, kernel since VERSION; neither holds of a kernel that is not known."""
    wanted = KernelVersion.read(version)
    assert wanted
    return facts.kernel is not None and facts.kernel.is_before(wanted) == (verb == "before")


def _of_isolated(facts: Facts) -> dict[str, bool]:
    """apart: the kernel keeps all CPUs that shall be isolated out of balancing, or without a tick."""
    wanted = conditions.isolated_cpus(facts) or frozenset()
    apart = frozenset[int]().union(*(facts.cpus(path) or () for path in (conditions.ISOLATED, conditions.NOHZ_FULL)))
    return {"some": bool(wanted), "none": not wanted, "apart": bool(wanted) and wanted <= apart}


_ABOUT_THE_SYSTEM: dict[str, Callable[[Facts, str, str], bool]] = {
    "kernel": _of_kernel,
    "condition": lambda facts, name, _: conditions.CONDITIONS[name](facts).holds is True,
    "isolated": lambda facts, verb, _: _of_isolated(facts)[verb],
    "purpose": lambda facts, _, names: facts.request.purpose in _words(names),
    "obeys": lambda facts, word, _: conditions.obeys(facts, word),
    "config": lambda facts, _, option: facts.config is not None and (not option or option in facts.config.options),
}
"""Terms that are no reading: ``kernel since 6.12``, ``condition x86``, ``isolated some``, ``obeys nohlt``."""
_WORDS_OF_SYSTEM: dict[str, Collection[str]] = {
    "kernel": ("since", "before"),
    "condition": conditions.CONDITIONS,
    "isolated": ("some", "none", "apart"),
    "purpose": ("is",),
    "config": ("here", "names"),
}
"""The verbs of such a term."""


@dataclass(frozen=True)
class _Terms:
    """The readings of the terms of a check."""

    facts: Facts
    check: Check

    @cached_property
    def sources(self) -> tuple[str, ...]:
        return (*self.check.read, *self.check.also)

    @cached_property
    def _found(self) -> dict[str, tuple[Reading, ...]]:
        return {}

    def of(self, term: str) -> tuple[Reading, ...]:
        if term not in self._found:
            self._found[term] = tuple(self._read(term))
        return self._found[term]

    def _read(self, term: str) -> Iterable[Reading]:
        part = self.check.part.get(term)
        if part and part.first:
            found = next((one for one in map(self.of, part.first) if any(each.here for each in one)), None)
            return self.of(part.first[0]) if found is None else found
        if part and part.each:
            return dict.fromkeys(reading for one in part.each for reading in self.of(one))
        if part and part.change:
            here = [reading for reading in self.of(part.change) if reading.here]
            return [_change(reading, readings.again(self.facts, reading)) for reading in here]
        if part:
            return [found for reading in self.of(part.of) for found in _parts(reading, part)]
        if term.startswith(_END):
            start = self.of(term.removeprefix(_END))
            return [readings.again(self.facts, reading) for reading in start if reading.here]
        return readings.read_source(self.facts, source_of(self.sources, term))

    def selected(self, test: RuleTest) -> tuple[Reading, ...]:
        verb, argument = VERBS[test.verb], test.argument
        if argument.startswith("{"):
            argument = self.of(argument.strip("{}"))[0].word
        return tuple(one for one in self.of(test.term) if verb(self.facts, one, argument))

    def holds(self, test: RuleTest) -> bool:
        system = _ABOUT_THE_SYSTEM.get(test.term)
        found = system(self.facts, test.verb, test.argument) if system else bool(self.selected(test))
        return found == test.positive


def _parts(reading: Reading, part: Part) -> list[Reading]:
    """The first group of what fits the pattern in a text, or all of it; one that is ABSENT if nothing fits."""
    path = part.shown or reading.path
    if not reading.here:
        return [Reading(path, reading.state, "", reading.reason)]
    found = re.finditer(part.find, reading.text)
    texts = [
        (part.text or "{}").replace("{}", one[one.re.groups > 0]) for one in (found if part.every else islice(found, 1))
    ]
    return [Reading(path, State.HERE, text.rstrip(" \t\n.:")) for text in texts] or [
        Reading(path, State.ABSENT, "", "it is not there")
    ]


def _change(start: Reading, end: Reading) -> Reading:
    """How much a number grew; UNREADABLE if it is not known at both moments."""
    before, after = start.number(), end.number()
    if before is None or after is None:
        return Reading(start.path, State.UNREADABLE, "", start.reason or end.reason or "it is no number")
    return Reading(start.path, State.HERE, str(after - before))


def judge(facts: Facts, check: Check) -> Judgement:
    """The judgement of the first rule that holds."""
    return next(found for _, found in _holding(facts, check))


def judging_rule(facts: Facts, check: Check) -> int:
    """The number of the rule that judges, from 0."""
    return next(number for number, _ in _holding(facts, check))


def _holding(facts: Facts, check: Check) -> Iterator[tuple[int, Judgement]]:
    terms = _Terms(facts, check)
    for number, rule in enumerate(check.rule):
        found = _apply(terms, rule)
        if found:
            yield number, found


def _apply(terms: _Terms, rule: Rule) -> Judgement | None:
    """The judgement of a rule; None if it does not hold."""
    tests = [read_test(text) for text in rule.when]
    if not all(map(terms.holds, tests)):
        return None
    if rule.known:
        lost = readings.hidden([reading for term in rule.known for reading in terms.of(term)])
        return readings.unknown(lost) if lost else None
    if rule.there:
        lost = [one for term in rule.there if not _any_here(terms, term) for one in terms.of(term)]
        return readings.missing(terms.check, lost) if lost else None
    shown = _Shown(terms, tests)
    read = shown.readings(rule.show)
    outcome, text = next((outcome, text) for outcome, text in _sentences(rule) if text is not None)
    sentence = shown.filled(text)
    if outcome is Outcome.GOOD:
        return readings.good(sentence, read)
    if outcome is Outcome.UNKNOWN and not sentence:
        return readings.unknown(read)
    return Judgement(outcome, sentence, readings.read_values(read), rule.severity, shown.named(rule.named))


def _sentences(rule: Rule) -> tuple[tuple[Outcome, str | None], ...]:
    return (
        (Outcome.GOOD, rule.good),
        (Outcome.FINDING, rule.finding),
        (Outcome.CONFLICTING, rule.conflicting),
        (Outcome.UNKNOWN, rule.unknown),
        (Outcome.NOT_APPLICABLE, rule.not_applicable),
    )


def _any_here(terms: _Terms, term: str) -> bool:
    return any(reading.here for reading in terms.of(term))


@dataclass(frozen=True)
class _Shown:
    """What a rule shows: of a term that its tests select readings of, these, and of another term all."""

    terms: _Terms
    tests: list[RuleTest]

    def of(self, term: str) -> tuple[Reading, ...]:
        """A term, or TERM.all for all readings, TERM.here for those with a text, TERM.3 for at most three."""
        name, how = _how(term)
        if how == "all":
            return self.terms.of(name)
        if how == "here":
            return tuple(one for one in self.terms.of(name) if one.here)
        if how:
            return self.of(name)[: int(how)]
        chosen = [test for test in self.tests if test.term == term and test.positive]
        return self.terms.selected(chosen[0]) if chosen else self.terms.of(term)

    def readings(self, show: tuple[str, ...] | None) -> list[Reading]:
        """The readings of these terms; by default those that the tests select, or all that the check reads."""
        tested = [test.term for test in self.tests if test.term not in _ABOUT_THE_SYSTEM and test.positive]
        named = (tested or self.terms.check.read) if show is None else show
        return [reading for term in dict.fromkeys(named) for reading in self.of(term)]

    def filled(self, sentence: str) -> str:
        return _SLOT.sub(lambda slot: self._text(slot[1]), sentence)

    def _text(self, slot: str) -> str:
        if slot == "isolated":
            return cpu_words(conditions.isolated_cpus(self.terms.facts) or ())
        term, _, kind = slot.partition("|")
        name, _, noun = kind.partition(" ")
        found = self.of(term)
        return _TEXTS[name or "word"](found, noun) if found else ""

    def named(self, slot: str) -> tuple[str, ...]:
        """The texts of each reading of a term, each once."""
        term, _, kind = slot.partition("|")
        return tuple(dict.fromkeys(_TEXTS[kind or "word"]((one,), "") for one in self.of(term))) if term else ()


def _how(term: str) -> tuple[str, str]:
    """A term and the suffix that says which of its readings; "" for none."""
    name, _, how = term.rpartition(".")
    return (name, how) if name and (how in ("all", "here") or how.isdigit()) else (term, "")


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
    "base": lambda found, _: readings.read_value(found[0]).value.rpartition("/")[2],
    "device": lambda found, _: clean(found[0].path.partition("/devices/")[2].partition("/")[0]),
    "mebibytes": lambda found, _: f"{(found[0].number() or 0) / (1 << 20):g}",
    "cpu-count": lambda found, _: str(len(parse_cpu_list(found[0].word) or ())),
}
"""How a sentence shows the readings of a term: {TERM} is the first word, {TERM|path} its path, and so on."""


def complaint(check: Check) -> str:
    """What makes no sense in the rules of a check; "" if all does."""
    last = check.rule[-1]
    if last.when or last.known or last.there:
        return "its last rule must always hold"
    for rule in check.rule:
        if sum(text is not None for _, text in _sentences(rule)) + bool(rule.known) + bool(rule.there) != 1:
            return "each rule needs one outcome, known or there"
        try:
            tests = [read_test(text) for text in rule.when]
            terms = [test.term for test in tests if test.term not in _ABOUT_THE_SYSTEM]
            slots = [slot for _, text in _sentences(rule) for slot in _SLOT.findall(text or "")]
            terms += [slot.partition("|")[0] for slot in (*slots, rule.named) if slot != "isolated"]
            for part in check.part.values():
                re.compile(part.find)
            for term in (*terms, *rule.known, *rule.there, *(rule.show or ())):
                _know(check, term)
        except (ValueError, re.error) as problem:
            return str(problem)
        unknown = [slot for slot in slots if slot.partition("|")[2].partition(" ")[0] not in ("", *_TEXTS)]
        if unknown:
            return f"a sentence has {{{unknown[0]}}}, which shows nothing"
    return ""


def _know(check: Check, term: str) -> None:
    """ValueError if a term names nothing of the check."""
    name, how = _how(term)
    part = check.part.get(name)
    if how:
        _know(check, name)
    elif part:
        for inner in (part.of, part.change, *part.first, *part.each):
            _know(check, inner)
    elif name:
        source_of((*check.read, *check.also), name.removeprefix(_END))
