# SPDX-License-Identifier: Apache-2.0
"""A profile as frozen data, and functions that change it for the user: choose cells, set parameters and options."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import msgspec
from msgspec import structs

from rtproof.core import units
from rtproof.core.errors import UserError
from rtproof.core.plugins import option_words
from rtproof.record.requirement import Requirement

PROBE_OPTIONS = "probe_options"
LOAD = "load"
LENGTH_OPTIONS = ("duration", "samples")

Options = Mapping[str, Any]
"""Options by name. Values are texts, numbers or True; ``load`` has a tuple of texts, ``probe_options`` a mapping."""


Zoom = Annotated[float, msgspec.Meta(gt=0, lt=100)]
"""The part of a cumulative curve that is enlarged, in top per cent."""
Count = Annotated[int, msgspec.Meta(ge=1)]


class ProfilePart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of a profile's file, which refuses an unknown key."""


class Way(ProfilePart, frozen=True):
    """One way to measure a cell. Its options are added to those of the cell.

    says: how it differs from what the article did. stage: that the row shows; "" means the last, which the limit
    judges. replace: by the name of a load, the load that runs in its place.
    """

    name: str
    says: str = ""
    options: dict[str, Any] = {}
    stage: str = ""
    replace: dict[str, str] = {}


class Bins(ProfilePart, frozen=True):
    """A histogram with the bins of the article: ``count`` bins of ``width_ns``, from 0 on.

    stage: "" means the stage that the row shows. zooms: the parts of the curve that are enlarged, in top per cent.
    file: that gets the counts, "" for none.
    """

    name: str
    width_ns: int
    count: Count
    stage: str = ""
    zooms: tuple[Zoom, ...] = ()
    file: str = ""


class PublishedFile(ProfilePart, frozen=True):
    """A file that the article kept of each run. The exporter ``format`` writes it with these options."""

    name: str
    format: str
    options: dict[str, str] = {}


class Parameter(ProfilePart, frozen=True):
    """An option of the probe that depends on the user's hardware. default: None if the user must give a value.

    load: the load and its option that take the value in place of the probe, as "pingflood:from".
    """

    name: str
    help: str
    default: str | None = None
    load: Annotated[str, msgspec.Meta(pattern="^(|[a-z0-9-]+:[a-z_]+)$")] = ""


class GuestReplacement(ProfilePart, frozen=True):
    """What the lab uses in a guest in place of things that a guest lacks. says: how this differs from the article.

    settings: of axes and parameters. load: of cells that have loads; () keeps their own. modules: of the kernel, loaded
    if they exist. setup: lines for the guest's shell before each cell. preempt: models of the plain kernel.
    """

    settings: dict[str, str] = {}
    load: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    preempt: tuple[Literal["none", "voluntary", "full", "lazy"], ...] = ("none",)
    says: str = ""


AS_IN_THE_ARTICLE = GuestReplacement()


@dataclass(frozen=True)
class OptionChange:
    """An option that the user changed.

    before: the values in the profile, as texts. now: the user's value. chosen: the user only chose some of ``before``.
    """

    option: str
    before: tuple[str, ...]
    now: str
    chosen: bool = False


@dataclass(frozen=True)
class CellPlan:
    """One run of a profile. ways: in the order in which they are tried; the first one that can run here is used.

    axes: the value of the cell on each axis, by name. duration_ns or samples, one of the two: how long the cell
    measures. article_ns: how long the article measured. article_rows: keys of the article's rows that the cell repeats.
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
    def length_ns(self) -> int:
        """How long the cell measures, in ns."""
        return self.samples * self.period_ns if self.samples else self.duration_ns or 0

    @property
    def loads(self) -> tuple[str, ...]:
        """The loads of the cell, written as for --load."""
        return tuple(self.options.get(LOAD, ()))


class ProfileWords(ProfilePart, frozen=True, kw_only=True):
    """What a profile takes from its file as it stands there.

    title: of the profile. article: a name in ``rtproof.articles``, or path of a file. about: what the profile measures.
    differs: sentences on how it differs from the article. columns: metrics of the table. zooms: of the cumulative
    curves, in top per cent. given: which results of other tools the user may add, "" for none.
    """

    title: str
    article: str
    about: str
    differs: tuple[str, ...] = ()
    columns: tuple[str, ...] = ("n", "min", "mean", "max", "missed")
    extras: tuple[str, ...] = ()
    zooms: tuple[Zoom, ...] = ()
    given: str = ""
    guest: GuestReplacement = AS_IN_THE_ARTICLE


class Profile(ProfileWords, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """An article's experiment. One that an older version stored may have further fields.

    axes: the values of each, in order. kept: files beside the record of each cell. changes: options that the user set.
    """

    name: str
    cells: tuple[CellPlan, ...]
    axes: Mapping[str, tuple[str, ...]]
    claims: tuple[Requirement, ...]
    bins: tuple[Bins, ...]
    kept: tuple[PublishedFile, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    changes: tuple[OptionChange, ...] = ()

    @property
    def article_ns(self) -> int:
        """How long all cells together took in the article, in ns."""
        return sum(cell.article_ns for cell in self.cells)

    def cell(self, key: str) -> CellPlan:
        """The cell with this key; UserError, which lists the keys, if there is none."""
        found = [cell for cell in self.cells if cell.key == key]
        if not found:
            known = ", ".join(cell.key for cell in self.cells)
            raise UserError(f"the profile {self.name} has no cell {key!r}; there are: {known}")
        return found[0]

    def shortened(self, duration_ns: int | None = None, samples: int | None = None) -> "Profile":
        """This profile with another length of every cell: either a duration or a number of samples."""
        cells = tuple(replace(cell, duration_ns=duration_ns, samples=samples) for cell in self.cells)
        return structs.replace(self, cells=cells)


def run_options(cell: CellPlan, way: Way | None = None) -> dict[str, Any]:
    """The options of ``rtproof run`` for a cell that is measured in this way, by default in its first."""
    chosen = way or cell.ways[0]
    options = merge_options(cell.options, chosen.options)
    own = options.pop(PROBE_OPTIONS, {})
    if own:
        pairs = ",".join(f"{name}={value}" for name, value in own.items())
        options["probe"] = f"{options.get('probe', 'timer')}:{pairs}"
    if options.get(LOAD):
        options[LOAD] = tuple(_with_load_replaced(load, chosen.replace) for load in options[LOAD])
    length = {"samples": cell.samples} if cell.samples else {"duration": units.format_duration(cell.duration_ns or 0)}
    return {**options, **length}


def merge_options(first: Options, *others: Options) -> dict[str, Any]:
    """All options in one mapping. Later values replace earlier ones; loads and the probe's own options add up."""
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


def agent_arguments(cell: CellPlan, way: Way | None = None) -> tuple[str, ...]:
    """The agent's arguments, except the place where it writes. Loads come last, by their names."""
    options = run_options(cell, way)
    options[LOAD] = options.pop(LOAD, ())
    return tuple(word for name, value in options.items() for word in option_words("--" + name.replace("_", "-"), value))


def cell_as_run(cell: CellPlan, way: Way | None) -> CellPlan:
    """The cell with a label that names the loads that ran, where this way replaced some of its own."""
    loads = tuple(_with_load_replaced(load, way.replace if way else {}) for load in cell.loads)
    return replace(cell, label=_label(cell, loads))


def _with_load_replaced(load: str, other: Mapping[str, str]) -> str:
    """The load that runs in place of this one, without its options, bound to the same CPUs unless it names its own."""
    unbound, cpus = units.split_cpus(load)
    found = other.get(unbound.partition(":")[0])
    if found is None:
        return load
    return found if units.split_cpus(found)[1] else found + cpus


def with_settings(profile: Profile, settings: Mapping[str, str]) -> Profile:
    """The profile with these settings, several values of an axis joined by a comma. UserError for an unknown name."""
    for name, value in settings.items():
        if name in profile.axes:
            profile = _chosen(profile, name, value.split(","))
            continue
        before = next((each for each in profile.parameters if each.name == name), None)
        if before is None:
            known = [f"{axis} ({', '.join(values)})" for axis, values in profile.axes.items()]
            known += [f"{parameter.name} ({parameter.help})" for parameter in profile.parameters]
            there = f"; there are: {'; '.join(known)}" if known else ", nor anything else"
            raise UserError(f"the profile {profile.name} has nothing to set named {name!r}{there}")
        set_to = structs.replace(before, default=value)
        parameters = tuple(set_to if each is before else each for each in profile.parameters)
        change = OptionChange(name, (before.default,) if before.default else (), value)
        changes = (*profile.changes, change) if before.default != value else profile.changes
        profile = structs.replace(profile, parameters=parameters, changes=changes)
    return profile


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
    return structs.replace(profile, cells=cells, changes=(*profile.changes, change))


def with_parameters(profile: Profile) -> Profile:
    """The profile with its parameters in the options of its cells; UserError for one without a value.

    A way is dropped that would set an option of the probe to something else than the user.
    """
    if missing := [parameter for parameter in profile.parameters if parameter.default is None]:
        asked = "; ".join(f"{parameter.name}, the {parameter.help}" for parameter in missing)
        words = " ".join(f"--set {parameter.name}=..." for parameter in missing)
        raise UserError(f"the profile {profile.name} can't know {asked}: say {words}{where_else_to_run(profile)}")
    given = [parameter for parameter in profile.parameters if parameter.default]
    own = {parameter.name: parameter.default for parameter in given if not parameter.load}
    cells = []
    for cell in profile.cells:
        loads = cell.loads
        for load, option, value in ((*each.load.split(":"), each.default) for each in given if each.load):
            loads = tuple(f"{each}:{option}={value}" if each == load else each for each in loads)
        ways = tuple(way for way in cell.ways if own.keys().isdisjoint(way.options.get(PROBE_OPTIONS, {})))
        probe = {PROBE_OPTIONS: {**cell.options.get(PROBE_OPTIONS, {}), **own}} if own else {}
        options = {**cell.options, **probe, **({LOAD: loads} if loads else {})}
        cells.append(replace(cell, label=_label(cell, loads), options=options, ways=ways or cell.ways))
    return structs.replace(profile, cells=tuple(cells))


def where_else_to_run(profile: Profile) -> str:
    """A hint for a machine that lacks something: the profile can run in a guest. "" if a guest does not help."""
    if not (profile.guest.settings or profile.guest.setup):
        return ""
    return f"; 'rtproof lab profile {profile.name}' measures in a guest instead"


def with_claims(profile: Profile, claims: tuple[Requirement, ...]) -> Profile:
    """The profile with the user's requirements in place of its own."""
    before, now = (" and ".join(map(_claim_words, each)) or "nothing" for each in (profile.claims, claims))
    changes = () if before == now else (OptionChange("limit", (before,), now),)
    return structs.replace(profile, claims=claims, changes=(*profile.changes, *changes))


def _claim_words(claim: Requirement) -> str:
    """A requirement in words, without values that follow from its at_most_ns."""
    limit, usual = units.format_duration(claim.limit_ns), Requirement(claim.limit_ns, claim.at_most_ns)
    if claim.plain:
        return f"{limit}, never exceeded"
    words = [f"{limit} at most once per {units.format_duration(claim.at_most_ns)}"]
    words += [f"a gap of {units.format_duration(claim.gap_ns)}"] if claim.gap_ns != usual.gap_ns else []
    longest = f"no episode longer than {units.format_duration(claim.longest_ns)}"
    words += [longest] if claim.longest_ns != usual.longest_ns else []
    words += [f"bunches of {claim.bunches:.3g} on average"] if claim.bunches > 1 else []
    return ", ".join(words)


def with_options(profile: Profile, given: Mapping[str, Any]) -> Profile:
    """The profile with the user's options in every cell; UserError if that makes two cells the same."""
    cells = tuple(_with_options(cell, given) for cell in profile.cells)
    changed = structs.replace(profile, cells=cells, changes=(*profile.changes, *_changes(profile, cells, given)))
    _refuse_equal(changed, given)
    return changed


def with_loads(profile: Profile, loads: tuple[str, ...]) -> Profile:
    """The profile with these loads in every cell that has loads."""
    before = tuple(cell for cell in profile.cells if cell.loads and loads)
    after = {cell.key: _with_options(cell, {LOAD: loads}) for cell in before}
    changes = _changes(structs.replace(profile, cells=before), tuple(after.values()), {LOAD: loads})
    cells = tuple(after.get(cell.key, cell) for cell in profile.cells)
    return structs.replace(profile, cells=cells, changes=(*profile.changes, *changes))


def _with_options(cell: CellPlan, given: Mapping[str, Any]) -> CellPlan:
    own = {name: value for name, value in given.items() if name not in LENGTH_OPTIONS}
    dropped = {*own, "method", PROBE_OPTIONS} - {"load"} if "probe" in own else set(own)
    ways = []
    for way in cell.ways:
        options = {name: value for name, value in way.options.items() if name not in dropped}
        ways.append(structs.replace(way, options=options, replace={} if LOAD in own else way.replace))
    options = {name: value for name, value in cell.options.items() if name not in dropped}
    cell = replace(
        cell,
        label=_label(cell, tuple(own[LOAD])) if LOAD in own else cell.label,
        options={**options, **own},
        period_ns=units.parse_duration(own["period"]) if "period" in own else cell.period_ns,
        ways=(Way("as given"),) if "probe" in own else tuple(ways),
    )
    if given.get("samples"):
        return replace(cell, duration_ns=None, samples=given["samples"])
    if given.get("duration"):
        return replace(cell, duration_ns=units.parse_duration(given["duration"]), samples=None)
    return cell


def _label(cell: CellPlan, loads: tuple[str, ...]) -> str:
    """The label of the cell with these loads in place of its own: the label names the load that runs."""
    if loads == cell.loads:
        return cell.label
    return f"{cell.label}, here with {', '.join(loads) or 'no load'}"


def _changes(profile: Profile, cells: tuple[CellPlan, ...], given: Mapping[str, Any]) -> list[OptionChange]:
    """What the options in ``given`` changed. Lengths are left out, because each cell reports its own length."""
    before = [run_options(cell) for cell in profile.cells]
    after = [run_options(cell) for cell in cells]
    found = []
    for name in (name for name in given if name not in LENGTH_OPTIONS):
        if any(a.get(name) != b.get(name) for a, b in zip(before, after, strict=True)):
            was = tuple(dict.fromkeys(_option_text(name, each.get(name)) for each in before))
            found.append(OptionChange(name, was, _option_text(name, given[name])))
    return found


def _option_text(name: str, value: object) -> str:
    """The value of an option in words. None means the agent's default, but for loads it means no load."""
    if value is None and name != LOAD:
        return "the default"
    if value is None or value == ():
        return "nothing"
    return " ".join(value) if isinstance(value, tuple) else str(value)


def _refuse_equal(profile: Profile, given: Mapping[str, Any]) -> None:
    seen: list[tuple[CellPlan, dict[str, Any]]] = []
    for cell in profile.cells:
        options = {name: value for name, value in run_options(cell).items() if name not in LENGTH_OPTIONS}
        if other := next((each for each, same in seen if same == options), None):
            words = " ".join(f"--{name.replace('_', '-')}" for name in given if name not in LENGTH_OPTIONS)
            axis = next(f"{axis}={value}" for axis, value in cell.axes.items() if other.axes[axis] != value)
            raise UserError(
                f"with {words} the cells {other.key} and {cell.key} of the profile {profile.name} are the same: "
                f"choose one with --set {axis}"
            )
        seen.append((cell, options))
