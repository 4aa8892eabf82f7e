# SPDX-License-Identifier: Apache-2.0
"""A profile as frozen data, and a profile as the user wants it: cells chosen, parameters given, options changed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rtproof.core import units
from rtproof.core.errors import UserError

PROBE_OPTIONS = "probe_options"
LOAD = "load"
LENGTH_OPTIONS = ("duration", "samples")

Options = Mapping[str, Any]
"""Texts, numbers, True; for ``load`` a tuple of texts; for ``probe_options`` a mapping of the probe's own options."""


@dataclass(frozen=True)
class Way:
    """One way to measure a cell, on top of the cell's options.

    says: how it differs from what the article did. stage: the one that the row shows ("": the last, which is judged).
    replace: loads in whose place others run.
    """

    name: str
    says: str = ""
    options: Options = field(default_factory=dict)
    stage: str = ""
    replace: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ProfileLimit:
    """Episodes above limit_ns come at most once per at_most_ns.

    gap_ns, longest_ns: of an episode; 0: what follows from at_most_ns. bunches: how many a bunch may bring on average.
    """

    limit_ns: int
    at_most_ns: int
    gap_ns: int = 0
    longest_ns: int = 0
    bunches: float = 1.0


@dataclass(frozen=True)
class Bins:
    """Bins of the article: count bins of width_ns from 0. stage: the one they are of ("": the one the row shows).

    zooms: top per cents of the cumulative curves. file: name of the one that gets their counts, "" for none.
    """

    name: str
    stage: str
    width_ns: int
    count: int
    zooms: tuple[float, ...] = ()
    file: str = ""


@dataclass(frozen=True)
class PublishedFile:
    """What the article kept of each run: a file of this name, which an exporter of this format and options makes."""

    name: str
    format: str
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Parameter:
    """What only the user can say: an option of the probe. default: None if it has to be given."""

    name: str
    help: str
    default: str | None = None


@dataclass(frozen=True)
class OtherTool:
    """Another tool's own measurement. command: with {seconds} for its length; needs: a file without which it cannot."""

    label: str
    command: tuple[str, ...]
    needs: str = ""


@dataclass(frozen=True)
class GuestReplacement:
    """What stands in a guest for what it does not have.

    settings: values of axes and parameters; load: what disturbs in place of the loads of those cells that have any, ()
    for these; modules: of the kernel, "rtproof" for ours, loaded where there are such; setup: lines for the guest's
    shell, before a cell; preempt: models of the plain kernel; says: how that is not what the article did.
    """

    settings: Mapping[str, str] = field(default_factory=dict)
    load: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    preempt: tuple[str, ...] = ("none",)
    says: str = ""


@dataclass(frozen=True)
class OptionChange:
    """An option that the user gave in place of the profile's. before: the profile's values, as texts.

    chosen: now is a part of them.
    """

    option: str
    before: tuple[str, ...]
    now: str
    chosen: bool = False


@dataclass(frozen=True)
class CellPlan:
    """One run. axes: its value on each axis of the matrix, by name.

    duration_ns, samples: one of them, how long it shall measure; article_ns: how long the article did. article_rows:
    keys of the article's rows that it repeats, on whatever board or kernel these were. ways: in the order in which they
    are tried; the first that can run here is taken.
    """

    key: str
    label: str
    axes: Mapping[str, str]
    options: Options
    duration_ns: int | None
    samples: int | None
    period_ns: int
    article_ns: int
    article_rows: tuple[str, ...] = ()
    ways: tuple[Way, ...] = (Way("only"),)

    @property
    def article_row(self) -> str | None:
        """The first of the article's rows that it repeats."""
        return self.article_rows[0] if self.article_rows else None

    @property
    def length_ns(self) -> int:
        """How long it measures."""
        return self.samples * self.period_ns if self.samples else self.duration_ns or 0

    @property
    def loads(self) -> tuple[str, ...]:
        """What disturbs, as --load names it."""
        return tuple(self.options.get(LOAD, ()))


@dataclass(frozen=True)
class Profile:
    """An article's experiment.

    article: name of its published numbers in ``rtproof.articles``, or path of the file that has them. about: what it
    measures; differs: how it is not the article's, on any machine. axes: the values of each, in order. columns: metrics
    of the result table, extras: further tables; zooms: top per cents of the cumulative curves. kept: files beside the
    record of each cell. given: what files of other tools' results may be laid beside, "" if none; programs: those of
    the tools that are run for such results where they are installed. guest: how the lab runs it. changes: what the user
    changed.
    """

    name: str
    title: str
    article: str
    about: str
    differs: tuple[str, ...]
    cells: tuple[CellPlan, ...]
    axes: Mapping[str, tuple[str, ...]]
    claims: tuple[ProfileLimit, ...]
    bins: tuple[Bins, ...]
    columns: tuple[str, ...]
    extras: tuple[str, ...]
    zooms: tuple[float, ...]
    kept: tuple[PublishedFile, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    given: str = ""
    programs: tuple[OtherTool, ...] = ()
    guest: GuestReplacement = GuestReplacement()
    changes: tuple[OptionChange, ...] = ()

    @property
    def article_ns(self) -> int:
        """How long all cells took in the article."""
        return sum(cell.article_ns for cell in self.cells)

    def cell(self, key: str) -> CellPlan:
        """UserError with the list of what there is if the key is wrong."""
        found = [cell for cell in self.cells if cell.key == key]
        if not found:
            known = ", ".join(cell.key for cell in self.cells)
            raise UserError(f"the profile {self.name} has no cell {key!r}; there are: {known}")
        return found[0]

    def shortened(self, duration_ns: int | None = None, samples: int | None = None) -> "Profile":
        """The same with another length of every cell: a duration or a number of samples."""
        if (duration_ns is None) == (samples is None):
            raise ValueError("one of duration_ns and samples")
        cells = tuple(replace(cell, duration_ns=duration_ns, samples=samples) for cell in self.cells)
        return replace(self, cells=cells)


ResolveLoads = Callable[[Sequence[str]], Iterable[str]]


def run_options(cell: CellPlan, way: Way | None = None) -> dict[str, Any]:
    """The options of ``rtproof run`` for a cell measured in one of its ways, by default the first."""
    chosen = way or cell.ways[0]
    options = merge_options(cell.options, chosen.options)
    own = options.pop(PROBE_OPTIONS, {})
    if own:
        pairs = ",".join(f"{name}={value}" for name, value in own.items())
        options["probe"] = f"{options.get('probe', 'timer')}:{pairs}"
    if options.get(LOAD):
        options[LOAD] = tuple(_with_load_replaced(load, chosen.replace) for load in options[LOAD])
    return {**options, **_length(cell)}


def merge_options(first: Options, *others: Options) -> dict[str, Any]:
    """Later options win; loads add up, and so do the probe's own options."""
    found = dict(first)
    for other in others:
        for name, value in other.items():
            if name == LOAD:
                found[name] = (*found.get(name, ()), *value)
            elif name == PROBE_OPTIONS:
                found[name] = {**found.get(name, {}), **value}
            else:
                found[name] = value
    return found


def agent_arguments(
    cell: CellPlan, way: Way | None = None, resolve: ResolveLoads = lambda loads: option_words("--load", tuple(loads))
) -> tuple[str, ...]:
    """The agent's arguments, without where it writes. resolve: what names of loads become on its command line."""
    options = run_options(cell, way)
    loads = options.pop(LOAD, ())
    words = [word for name, value in options.items() for word in option_words("--" + name.replace("_", "-"), value)]
    return (*words, *resolve(loads))


def option_words(option: str, value: Any) -> list[str]:
    """An option and its value as they stand on a command line; nothing for what is not given."""
    if value is None or value is False:
        return []
    if value is True:
        return [option]
    return [word for each in (value if isinstance(value, tuple) else (value,)) for word in (option, str(each))]


def _length(cell: CellPlan) -> dict[str, Any]:
    if cell.samples:
        return {"samples": cell.samples}
    return {"duration": units.format_duration(cell.duration_ns or 0)}


def _with_load_replaced(load: str, other: Mapping[str, str]) -> str:
    """Another load takes none of the options of the one in whose place it runs."""
    return other.get(load.partition(":")[0], load)


AS_GIVEN = "as given"
"""The only way of a cell whose probe the user chose."""


def with_settings(profile: Profile, settings: Mapping[str, str]) -> Profile:
    """settings: values of axes, several joined by a comma, and of parameters; UserError for any other name."""
    for name, value in settings.items():
        profile = _with_setting(profile, name, value)
    return profile


def _with_setting(profile: Profile, name: str, value: str) -> Profile:
    if name in profile.axes:
        return _chosen(profile, name, value.split(","))
    if name not in {parameter.name for parameter in profile.parameters}:
        known = [f"{axis} ({', '.join(values)})" for axis, values in profile.axes.items()]
        known += [f"{parameter.name} ({parameter.help})" for parameter in profile.parameters]
        there = f"; there are: {'; '.join(known)}" if known else ", nor anything else"
        raise UserError(f"the profile {profile.name} has nothing to set named {name!r}{there}")
    parameters = tuple(replace(each, default=value) if each.name == name else each for each in profile.parameters)
    before = next(each.default for each in profile.parameters if each.name == name)
    changes = (OptionChange(name, (before,), value),) if before and before != value else ()
    return replace(profile, parameters=parameters, changes=(*profile.changes, *changes))


def _chosen(profile: Profile, axis: str, wanted: list[str]) -> Profile:
    for value in wanted:
        if value not in profile.axes[axis]:
            known = ", ".join(profile.axes[axis])
            raise UserError(f"the profile {profile.name} has no {axis} {value!r}; there are: {known}")
    cells = tuple(cell for cell in profile.cells if cell.axes[axis] in wanted)
    if not cells:
        raise UserError(f"the profile {profile.name} has no cell with all that is chosen with --set")
    if set(wanted) == set(profile.axes[axis]):
        return profile
    change = OptionChange(axis, profile.axes[axis], ", ".join(wanted), chosen=True)
    return replace(profile, cells=cells, changes=(*profile.changes, change))


def with_parameters(profile: Profile) -> Profile:
    """The same with its parameters in its cells; UserError with what only the user can say and has not."""
    missing = [parameter for parameter in profile.parameters if parameter.default is None]
    if missing:
        raise UserError(
            f"the profile {profile.name} can't know {_missing_parameters(missing)}{where_else_to_run(profile)}"
        )
    own = {parameter.name: parameter.default for parameter in profile.parameters if parameter.default}
    if not own:
        return profile
    cells = tuple(
        replace(cell, options={**cell.options, PROBE_OPTIONS: {**cell.options.get(PROBE_OPTIONS, {}), **own}})
        for cell in profile.cells
    )
    return replace(profile, cells=cells)


def where_else_to_run(profile: Profile) -> str:
    """Where it can run if this machine does not have what it needs; "" if a guest has no more."""
    if not (profile.guest.settings or profile.guest.setup):
        return ""
    return f"; 'rtproof lab profile {profile.name}' measures in a guest instead"


def _missing_parameters(missing: list[Parameter]) -> str:
    asked = "; ".join(f"{parameter.name}, the {parameter.help}" for parameter in missing)
    words = " ".join(f"--set {parameter.name}=..." for parameter in missing)
    return f"{asked}: say {words}"


def with_claims(profile: Profile, claims: tuple[ProfileLimit, ...]) -> Profile:
    """The same with requirements of the user's."""
    if claims == profile.claims:
        return profile
    change = OptionChange("limit", (_claimed(profile.claims),), _claimed(claims))
    return replace(profile, claims=claims, changes=(*profile.changes, change))


def _claimed(claims: tuple[ProfileLimit, ...]) -> str:
    return " and ".join(map(_derived_options, claims)) or "nothing"


def _derived_options(claim: ProfileLimit) -> str:
    """What follows from the time of a claim is left out."""
    words = [f"{units.format_duration(claim.limit_ns)} at most once per {units.format_duration(claim.at_most_ns)}"]
    words += [f"a gap of {units.format_duration(claim.gap_ns)}"] if claim.gap_ns else []
    words += [f"none longer than {units.format_duration(claim.longest_ns)}"] if claim.longest_ns else []
    words += [f"bunches of {claim.bunches:.3g} on average"] if claim.bunches > 1 else []
    return ", ".join(words)


def with_options(profile: Profile, given: Mapping[str, Any]) -> Profile:
    """The same with options of the user's in every cell. UserError if that makes two cells the same."""
    cells = tuple(_with_options(cell, given) for cell in profile.cells)
    changed = replace(profile, cells=cells, changes=(*profile.changes, *_changes(profile, cells, given)))
    _refuse_equal(changed, given)
    return changed


def with_loads(profile: Profile, loads: tuple[str, ...]) -> Profile:
    """The same with other loads in the cells that have any."""
    before = tuple(cell for cell in profile.cells if cell.loads and loads)
    after = {cell.key: _with_options(cell, {LOAD: loads}) for cell in before}
    changes = _changes(replace(profile, cells=before), tuple(after.values()), {LOAD: loads})
    cells = tuple(after.get(cell.key, cell) for cell in profile.cells)
    return replace(profile, cells=cells, changes=(*profile.changes, *changes))


def _with_options(cell: CellPlan, given: Mapping[str, Any]) -> CellPlan:
    own = {name: value for name, value in given.items() if name not in LENGTH_OPTIONS}
    dropped = {*own, "method", PROBE_OPTIONS} - {"load"} if "probe" in own else set(own)
    options = {name: value for name, value in cell.options.items() if name not in dropped}
    ways = (Way(AS_GIVEN),) if "probe" in own else tuple(_without(way, dropped) for way in cell.ways)
    period_ns = units.parse_duration(own["period"]) if "period" in own else cell.period_ns
    return _of_length(replace(cell, options={**options, **own}, period_ns=period_ns, ways=ways), given)


def _of_length(cell: CellPlan, given: Mapping[str, Any]) -> CellPlan:
    if given.get("samples"):
        return replace(cell, duration_ns=None, samples=given["samples"])
    if given.get("duration"):
        return replace(cell, duration_ns=units.parse_duration(given["duration"]), samples=None)
    return cell


def _without(way: Way, dropped: set[str]) -> Way:
    options = {name: value for name, value in way.options.items() if name not in dropped}
    return replace(way, options=options, replace={} if LOAD in dropped else way.replace)


def _changes(profile: Profile, cells: tuple[CellPlan, ...], given: Mapping[str, Any]) -> list[OptionChange]:
    """Of everything but lengths, which a cell tells itself."""
    before = [run_options(cell) for cell in profile.cells]
    after = [run_options(cell) for cell in cells]
    names = [name for name in given if name not in LENGTH_OPTIONS]
    return [
        OptionChange(
            name,
            tuple(dict.fromkeys(_option_text(name, each.get(name)) for each in before)),
            _option_text(name, given[name]),
        )
        for name in names
        if any(a.get(name) != b.get(name) for a, b in zip(before, after, strict=True))
    ]


def _option_text(name: str, value: object) -> str:
    """What is not given is left to the agent."""
    if value is None and name != LOAD:
        return "the default"
    if value is None or value == ():
        return "nothing"
    return " ".join(value) if isinstance(value, tuple) else str(value)


def _refuse_equal(profile: Profile, given: Mapping[str, Any]) -> None:
    seen: list[tuple[str, dict[str, Any]]] = []
    for cell in profile.cells:
        options = {name: value for name, value in run_options(cell).items() if name not in LENGTH_OPTIONS}
        same = next((key for key, other in seen if other == options), None)
        if same:
            words = " ".join(f"--{name.replace('_', '-')}" for name in given if name not in LENGTH_OPTIONS)
            raise UserError(
                f"with {words} the cells {same} and {cell.key} of the profile {profile.name} are the same: "
                f"choose one with --set {_axis_of(profile, same, cell)}"
            )
        seen.append((cell.key, options))


def _axis_of(profile: Profile, key: str, cell: CellPlan) -> str:
    other = profile.cell(key)
    return next(f"{axis}={value}" for axis, value in cell.axes.items() if other.axes[axis] != value)
