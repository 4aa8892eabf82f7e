# SPDX-License-Identifier: Apache-2.0
"""Makes reports: ``sections/`` compute blocks from an Analysis, ``formats/`` draw the blocks as bytes."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from rtproof.core import plugins
from rtproof.record.contents import WHOLE_RUN, Fact, Moment
from rtproof.report import formats
from rtproof.report.blocks import Section
from rtproof.summary.measured_kernel import IN_BAND
from rtproof.summary.recorded_facts import is_simulated

if TYPE_CHECKING:
    from rtproof.judge.analysis_model import Analysis

COMMAND_FACT = "host.command"
"""Key of the fact that holds the user's command. The record itself holds only the agent's command."""


def compose(
    analysis: "Analysis", info: Mapping[str, object] | None = None, command: str | None = None, *, short: bool = False
) -> list[Section]:
    """Every section that the run has, in order; with ``short`` only those of the short form.

    info: what the host knows of the run and the record does not. command: the command with which the user started it.
    """
    from rtproof.report.section_list import sections_of  # slow to import, and a document of another kind has none

    told = _with_host_facts(analysis, info or {}, command)
    return [
        Section(section.name, section.title, tuple(section.draw(told)), section.group)
        for section in sections_of(told, short=short)
    ]


def render(form: str, title: str, parts: list[Section]) -> bytes:
    """The report in the format ``form``; UserError if there is no such format."""
    drawn: bytes = plugins.load_plugin(formats, form).draw(title, parts)
    return drawn


def title(analysis: "Analysis") -> str:
    """The title of the report: the verdict, what was measured, and on which machine and kernel."""
    if analysis.imported:
        what = " ".join(filter(None, (analysis.imported.tool, analysis.imported.title)))
        begin = analysis.run_record.begin if analysis.run_record else None
        where = f" on {begin.machine}, Linux {begin.kernel_release}" if begin else ""
        return f"rtproof: {analysis.verdict.state.word} - {what[:120]}{where}"
    begin, series = analysis.record.begin, analysis.pooled.series
    if is_simulated(analysis.record):
        return f"rtproof: {analysis.verdict.state.word} - a simulated process, no machine"
    what = " ".join(filter(None, (series.probe, "latency")))
    measured = f"{what} on {begin.machine}, Linux {begin.kernel_release}"
    virtual = ", virtual time" if analysis.virtual_clock else ""
    in_band = f", {IN_BAND}" if analysis.core else ""
    return f"rtproof: {analysis.verdict.state.word} - {measured}{in_band}{virtual}"


def _with_host_facts(analysis: "Analysis", info: Mapping[str, object], command: str | None) -> "Analysis":
    """The analysis with the host's facts added to the record's, so that a section needs nothing but the analysis."""
    if analysis.run_record is None:
        return analysis
    known = {f"host.{key}": str(value) for key, value in info.items() if value is not None}
    if command is not None:
        known[COMMAND_FACT] = command
    facts = tuple(Fact(0, WHOLE_RUN, Moment.ASKED, key, value) for key, value in known.items())
    return replace(analysis, run_record=replace(analysis.record, facts=analysis.record.facts + facts))
