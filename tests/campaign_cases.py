# SPDX-License-Identifier: Apache-2.0
"""Outcomes of profiles, made of analyses of every shape."""

from dataclasses import replace

import report_cases

from rtproof import profiles
from rtproof.analysis.model import Analysis
from rtproof.profiles import Profile
from rtproof.report.campaign import Outcome

SYSTEM = "a board"


def outcome(profile: Profile, key: str, analysis: Analysis | None, system: str = SYSTEM, way: int = 0) -> Outcome:
    """A cell measured in one of its ways."""
    cell = profile.cell(key)
    return Outcome(system, cell, analysis, cell.ways[way], link=f"cells/{key}.html")


def shortened(name: str) -> Profile:
    return profiles.load(name).shortened(duration_ns=20_000_000_000)


def akamina() -> list[Outcome]:
    """With stages, in virtual time."""
    profile = shortened("akamina")
    staged = report_cases.several_fields()
    told = outcome(profile, "unloaded", staged, way=1)
    way = replace(profile.cells[0].ways[1], stage="task")
    passed = ((profile.cells[0].ways[0], "the module rtproof.ko is not loaded"),)
    return [replace(told, way=way, passed=passed), replace(told, cell=profile.cell("loaded"), way=way, passed=passed)]


def ten_ms() -> list[Outcome]:
    """A loop that stops, and a cell that failed."""
    profile = shortened("ten-ms")
    failed = replace(outcome(profile, "other--stress-flood", None), failure="there is no load 'pingflood'", link="")
    return [outcome(profile, "other--idle", report_cases.loop()), failed]


def bootlin() -> list[Outcome]:
    """On two systems."""
    profile = shortened("bootlin-timer")
    return [
        outcome(profile, cell.key, case(), system)
        for cell in profile.cells
        for system, case in (("rt", report_cases.normal), ("plain", report_cases.missed))
    ]
