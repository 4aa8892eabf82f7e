# SPDX-License-Identifier: Apache-2.0
"""Outcomes of profiles, made of analyses of every shape."""

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import report_cases
from analysis_records import SERIES
from stage_records import staged

from rtproof import articles, profiles
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis
from rtproof.profiles import Profile
from rtproof.report.blocks import Section
from rtproof.report.pages import campaign_page
from rtproof.report.pages.campaign_cells import CellOutcome, MeasuredCampaign

SYSTEM = "a board"


def outcome(profile: Profile, key: str, analysis: Analysis | None, system: str = SYSTEM, way: int = 0) -> CellOutcome:
    """A cell measured in one of its ways."""
    cell = profile.cell(key)
    return CellOutcome(system, cell, analysis, cell.ways[way], link=f"cells/{key}.html")


def shortened(name: str) -> Profile:
    return profiles.load(name).shortened(duration_ns=20_000_000_000)


def page(profile: Profile, told: Sequence[CellOutcome], article: str | articles.Article) -> dict[str, Section]:
    """The sections of a profile's page by their names. article: itself, or the name of one of ours."""
    beside = articles.load(article) if isinstance(article, str) else article
    sections = campaign_page.campaign_sections(MeasuredCampaign(profile, told, beside))
    return {section.name: section for section in sections}


def akamina() -> list[CellOutcome]:
    """With stages, in virtual time."""
    profile = shortened("akamina")
    staged = report_cases.several_fields()
    told = outcome(profile, "unloaded", staged, way=1)
    way = msgspec.structs.replace(profile.cells[0].ways[1], stage="task")
    passed = ((profile.cells[0].ways[0], "the module rtproof.ko is not loaded"),)
    return [replace(told, way=way, passed=passed), replace(told, cell=profile.cell("loaded"), way=way, passed=passed)]


def ten_ms() -> list[CellOutcome]:
    """A loop that stops, and a cell that failed."""
    profile = shortened("ten-ms")
    failed = replace(outcome(profile, "other--stress-flood", None), failure="there is no load 'pingflood'", link="")
    return [outcome(profile, "other--idle", report_cases.loop()), failed]


def simple_rt_app() -> list[CellOutcome]:
    """Four loops of 5 ms, of which the third is 1 ms late."""
    late = [0, 0, 1_000_000, 0]
    work = [700_000, 800_000, 900_000, 800_000]
    told = {
        "top": [300_000 + each for each in late],
        "start": [310_000 + each for each in late],
        "end": [310_000 + each + worked for each, worked in zip(late, work, strict=True)],
    }
    series = replace(SERIES, period_ns=5_000_000, probe="app", method="absolute")
    return [outcome(shortened("simple-rt-app"), "loaded", analyse(staged(told, series=series), None, 1))]


def bootlin() -> list[CellOutcome]:
    """On two systems."""
    profile = shortened("bootlin-timer")
    return [
        outcome(profile, cell.key, case(), system)
        for cell in profile.cells
        for system, case in (("rt", report_cases.normal), ("plain", report_cases.missed))
    ]
