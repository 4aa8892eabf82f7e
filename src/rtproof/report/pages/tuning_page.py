# SPDX-License-Identifier: Apache-2.0
"""The result of a tuning: which knobs to keep, what each one does, and what could not be found."""

import math
from collections.abc import Iterator, Sequence

from rtproof.core.phrases import capitalised, quantity, value
from rtproof.report.blocks import Block, Section, Table, Text
from rtproof.schema.encoder import Json, Scope, by_model, document, encode, table
from rtproof.tune.effects import LEAST_DEVIATION
from rtproof.tune.stored_tuning import MetricEffect, StoredKnob, StoredTuning, effect_on
from rtproof.tune.tuning import ALPHA, COSTS, ENERGY, WORK

TITLE = "Which settings help"
NONE = "-"
PERMANENT_FOLDER = "permanent"
SCHEMA, VERSION = "rtproof.tuning", 1
TABLES = by_model(
    table(MetricEffect, "metric ratio low_ratio high_ratio", "effect of a tuning"),
    table(StoredKnob, "name title cost settings boot before why_not_tried alone kept effects", "knob of a tuning"),
)
TUNING = table(
    StoredTuning,
    "schema version command seed metric runs_count lost_runs_count run_factor_ratio detectable_ratio unfinished "
    "decided untouched_ns kept together knobs files",
    "tuning",
    **document(SCHEMA, VERSION),
)
"""The published keys of ``tuning.json``. docs/json-schema.md is made of them."""


def encode_tuning(found: StoredTuning) -> Json:
    """The tuning as plain data for JSON."""
    return encode(found, TUNING, Scope(tables=TABLES))


def tuning_sections(found: StoredTuning) -> list[Section]:
    """The sections of the page, the answer first."""
    kept = [each for each in found.knobs if each.kept]
    sections = [Section("tuning", "Which knobs to keep", tuple(_answer(found)))]
    if kept:
        sections.append(Section("tuning-costs", "What they cost", (Text(_costs(found, kept)),)))
    if found.files:
        sections.append(Section("tuning-files", "How to keep them", (_files(found.files),)))
    sections.append(Section("tuning-shows", "What this tuning could find", (Text(_shows(found)),)))
    if reasons := _not_tried(found.knobs):
        rows = tuple((capitalised(reason), ", ".join(names)) for reason, names in reasons)
        table = Table("Knobs without a result, by the reason", ("why", "knobs"), rows)
        sections.append(Section("tuning-not-tried", "No result", (table,)))
    return sections


def _answer(found: StoredTuning) -> Iterator[Block]:
    tried = sorted((each for each in found.knobs if each.alone), key=lambda each: (not each.kept, _ratio(each, found)))
    screened = sorted(
        (each for each in found.knobs if each.effects and not each.alone), key=lambda each: _ratio(each, found)
    )
    if found.kept:
        deciding = effect_on(found.together, found.metric)
        number = f"{_percent(deciding.ratio)} {found.metric}" if deciding else found.metric
        yield Text((*_levels(found), AS_BEFORE), kind="good", headline=f"{number}: keep {', '.join(found.kept)}")
    elif not found.decided and found.unfinished:
        yield Text((f"{capitalised(found.unfinished)}. {AS_BEFORE}",), headline="No answer")
    elif not found.decided:
        yield Text((f"No knob lowered the {found.metric} in the screening. {AS_BEFORE}",), headline="Keep nothing")
    else:
        none = f"No knob, and no set of knobs, measurably lowers the {found.metric}."
        missed = f" Less than {_least_found(found.detectable_ratio)} may be missed." if found.detectable_ratio else ""
        yield Text((f"{none}{missed}", *_levels(found), AS_BEFORE), headline="Keep nothing")
    if tried:
        yield _table(
            "With these on, compared with no knob on", tried, found, found.together if len(found.kept) > 1 else ()
        )
    if screened:
        yield _table("Screening: each knob on in half of the runs, with others on, too", screened, found)
    if tried or screened:
        yield Text((IN_BRACKETS,))


def _levels(found: StoredTuning) -> Iterator[str]:
    """A sentence with the latencies before and after; nothing where they are not known."""
    if found.untouched_ns is None:
        return
    said = f"{value(round(found.untouched_ns))} {found.metric} with no knob on"
    if after := effect_on(found.together, found.metric):
        said += f", {value(round(after.ratio * found.untouched_ns))} with {' and '.join(found.kept)} on"
    yield f"{said}: means, so the maximum of a run is higher."


AS_BEFORE = "Each run put its settings back: rtproof makes nothing permanent."
IN_BRACKETS = (
    "A negative number is good: the latency falls. In brackets: the 95 % interval of the change. The intervals "
    "allow for the number of knobs. 'rtproof tune --list' says what each knob sets."
)


def _ratio(knob: StoredKnob, found: StoredTuning) -> float:
    effect = knob.effect(found.metric)
    return effect.ratio if effect else 1.0


def _table(
    caption: str, knobs: Sequence[StoredKnob], found: StoredTuning, together: Sequence[MetricEffect] = ()
) -> Table:
    metrics = [
        name for name in dict.fromkeys(each.metric for knob in knobs for each in knob.effects) if name not in COSTS
    ]

    def cells(effects: Sequence[MetricEffect]) -> list[str]:
        each = [effect_on(effects, name) for name in metrics]
        return [_change(effect) if effect else NONE for effect in each]

    rows = [(" + ".join(found.kept), *cells(together), "keep together")] if together else []
    rows += [(knob.name, *cells(knob.effects), _why(knob, found)) for knob in knobs]
    return Table(caption, ("knob", *metrics, "keep?"), tuple(rows))


NO_SIGN = 0.995
"""From this ratio on a screening shows no sign of help: half a percent is noise."""


def _why(knob: StoredKnob, found: StoredTuning) -> str:
    """Whether to keep the knob, or why not."""
    effect = knob.effect(found.metric)
    if knob.kept:
        return "keep"
    if effect is None:
        return "no: not measured"
    if effect.rises:
        return "no: it hurts"
    if not knob.alone:
        return "no: only screened" if effect.ratio < NO_SIGN else "no: no sign of help"
    if not effect.falls:
        return "no: no effect shown"
    return "no: adds nothing to the kept" if found.kept else "no: not shown with the others on"


def _costs(found: StoredTuning, kept: Sequence[StoredKnob]) -> tuple[str, ...]:
    measured = ((WORK, "work of the loads (less is worse)"), (ENERGY, "energy of the processor (more is worse)"))
    changes = [(what, effect_on(found.together, name)) for name, what in measured]
    said = [f"With these on, {what}: {_change(effect)}." for what, effect in changes if effect]
    return (*(f"{each.name} ({each.title}): {each.cost}" for each in kept), *said)


USES = {
    ".conf": ("plain", "copy it to /etc/sysctl.d"),
    ".sh": ("plain, tuned", "what is no sysctl: copy it to /usr/local/sbin; with tuned, to /etc/tuned/rtproof"),
    ".service": ("plain", "runs the script at boot: copy it to /etc/systemd/system"),
    ".rules": ("plain", "copy it to /etc/udev/rules.d"),
    "cmdline.txt": ("plain", "the same from the boot on: words to add to the boot loader's own"),
    "tuned.conf": ("tuned", "a profile: copy it to /etc/tuned/rtproof"),
    "buildroot.config": ("Buildroot", "options"),
    ".bb": ("Yocto", "a recipe"),
}
"""By the end of the file's name: for which way, and what to do with it."""


def _files(names: Sequence[str]) -> Table:
    def use(name: str) -> tuple[str, str]:
        ends = [end for end in USES if name.endswith(end)]
        return USES[max(ends, key=len)] if ends else ("", "")

    rows = tuple((f"{PERMANENT_FOLDER}/{name}", *use(name)) for name in names)
    return Table("Files that make the knobs permanent: use all files of one way", ("file", "way", "use"), rows)


def _shows(found: StoredTuning) -> tuple[str, ...]:
    said = []
    if found.detectable_ratio and found.run_factor_ratio:
        such = "such tunings" if found.decided else "tunings that reach the end of this plan"
        said += [
            f"{found_if(found.detectable_ratio, found.metric)} in 4 of 5 {such}. One that does less may be missed. "
            "A longer --budget or fewer --knobs find smaller effects.",
            runs_differ(found.run_factor_ratio, found.metric),
        ]
    lost = f"; left out: {found.lost_runs_count}" if found.lost_runs_count else ""
    said.append(f"{quantity(found.runs_count, 'run')} measured{lost}.")
    if found.unfinished and found.runs_count:
        said.append(f"The tuning ended before its plan: {found.unfinished}.")
    said.append(
        f"At most {100 * ALPHA:.0f} % of tunings keep a knob that does not help. Chance drew the order of the runs, "
        "so a slow change of the machine makes no winner. These runs are short: a longer run can exceed every maximum "
        "here."
    )
    return tuple(said)


def runs_differ(ratio: float, metric: str) -> str:
    """How much a metric of the untouched system differs. ratio: exp of the standard deviation of their logarithms."""
    said = f"From run to run with no knob on, the {metric} changes by"
    if ratio <= math.exp(LEAST_DEVIATION):
        least = f"{100 * LEAST_DEVIATION:.0f} %"
        return f"{said} less than {least}. The tuning reckons with {least}."
    return f"{said} a factor of {ratio:.3g} (one standard deviation)."


def found_if(ratio: float, metric: str) -> str:
    """The begin of a sentence on knobs that lower a metric by this factor or more."""
    return f"{_least_found(ratio)} or more off the {metric}: a knob that does so much is found"


def _least_found(ratio: float) -> str:
    return f"{100 * (1 - 1 / ratio):.0f} %"


def _not_tried(knobs: Sequence[StoredKnob]) -> list[tuple[str, list[str]]]:
    """Each reason with all knobs that have it; the reason of most knobs first."""
    reasons: dict[str, list[str]] = {}
    for each in knobs:
        if each.why_not_tried:
            reasons.setdefault(each.why_not_tried, []).append(each.name)
    return sorted(reasons.items(), key=lambda pair: -len(pair[1]))


def _change(effect: MetricEffect) -> str:
    """As "-12 % (-20 to -3)"."""
    return f"{_percent(effect.ratio)} ({_number(effect.low_ratio)} to {_number(effect.high_ratio)})"


def _percent(ratio: float) -> str:
    return _number(ratio) + ("" if ratio >= LARGEST_PERCENT else " %")


LARGEST_PERCENT = 10.0
"""From this ratio on, a multiple is easier to read than a percentage."""


def _number(ratio: float) -> str:
    return f"x{ratio:.0f}" if ratio >= LARGEST_PERCENT else f"{100 * (ratio - 1):+.0f}"
