# SPDX-License-Identifier: Apache-2.0
"""A profile with the user's settings: chosen cells, values of parameters, changed options, limits and loads."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rtproof.core import units
from rtproof.core.errors import UserError
from rtproof.profiles.profile import (
    LENGTH_OPTIONS,
    LOAD,
    PROBE_OPTIONS,
    CellPlan,
    OptionChange,
    Parameter,
    Profile,
    ProfileLimit,
    Way,
    run_options,
)

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
