# SPDX-License-Identifier: Apache-2.0
"""The folder of a campaign: campaign.json, the runs of its cells, and the page in all its formats.

``campaign.json`` stores what the records do not have, so that ``rtproof show`` and ``rtproof report`` can make the page
again.
"""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import click
import msgspec

from rtproof import __version__, report
from rtproof.articles import Article
from rtproof.core import files
from rtproof.core.bounded import decode_json, read_bounded
from rtproof.core.errors import RtproofError, UserError
from rtproof.core.printable import clean
from rtproof.experiment import exported_files, run_sets, stored_runs
from rtproof.experiment.stored_runs import CAMPAIGN_FILE, CELLS_FOLDER
from rtproof.experiment.target_runner import CellEnd
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis
from rtproof.profiles import CellPlan, Profile
from rtproof.profiles.profile import LOAD, PROBE_OPTIONS, cell_as_run
from rtproof.record import run_folder
from rtproof.record.run_folder import INFO_NAME, RECORD_NAME, read_run_info
from rtproof.report.blocks import Section, Table
from rtproof.report.pages import campaign_page, matrix_page
from rtproof.report.pages.campaign_cells import CellOutcome, MeasuredCampaign, OtherToolResult
from rtproof.report.pages.campaign_json import CAMPAIGN_SCHEMA, encode_campaign
from rtproof.report.pages.comparison_page import for_terminal
from rtproof.report.pages.kernel_comparison_page import making_section
from rtproof.report.text_table import fitted_to_terminal

CAMPAIGN_FOLDER_SCHEMA = "rtproof.campaign-folder"
CAMPAIGN_FOLDER_VERSION = 2


PercentileShare = Annotated[float, msgspec.Meta(gt=0, lt=1)]


@dataclass(frozen=True)
class StoredCampaign:
    """A campaign as its folder stores it.

    profile: with the user's settings. system: the one that was measured, "" for guests. cells: those that have ended,
    in order. making: tables that tell how guests measured them.
    """

    command: str
    profile: Profile
    article: Article
    system: str
    percentiles: tuple[PercentileShare, ...]
    cells: tuple[CellEnd, ...] = ()
    given: tuple[OtherToolResult, ...] = ()
    making: tuple[Table, ...] = ()


def cell_name(key: str, system: str = "") -> str:
    """The name of a cell's run folder, and of its report without the suffix. system: of a guest."""
    return f"{system}__{key}".replace(" ", "_").replace("/", "_") if system else key


def cell_run(key: str, system: str = "") -> str:
    """Path of a cell's run folder, from the page."""
    return f"{CELLS_FOLDER}/{cell_name(key, system)}"


def cell_link(key: str, system: str = "") -> str:
    """Path of a cell's own report, from the page."""
    return f"{cell_run(key, system)}.html"


def run_digest(run: Path) -> str:
    """SHA-256 of the record and of what the host wrote beside it; UserError if they cannot be read."""
    found = hashlib.sha256()
    try:
        for name in (RECORD_NAME, INFO_NAME):
            files.refuse_what_waits(run / name)
            with (run / name).open("rb") as file:
                while block := file.read(1 << 20):
                    found.update(block)
    except OSError as problem:
        raise UserError(f"cannot read {run / name}: {problem.strerror}") from None
    return found.hexdigest()


class _CampaignFile(msgspec.Struct, frozen=True, kw_only=True):
    """sha256: of the campaign without white space."""

    schema: str
    version: int
    rtproof_version: str
    sha256: str
    campaign: msgspec.Raw


def write_campaign_file(folder: Path, campaign: StoredCampaign) -> None:
    """Replace the folder's campaign.json, whole or not at all. OSError if it cannot be written."""
    told = json.dumps(msgspec.to_builtins(campaign), ensure_ascii=False, separators=(",", ":"))
    content = told.encode(errors="replace")
    file = _CampaignFile(
        schema=CAMPAIGN_FOLDER_SCHEMA,
        version=CAMPAIGN_FOLDER_VERSION,
        rtproof_version=__version__,
        sha256=hashlib.sha256(content).hexdigest(),
        campaign=msgspec.Raw(content),
    )
    files.write_whole(folder / CAMPAIGN_FILE, msgspec.json.format(msgspec.json.encode(file)) + b"\n")


def store_campaign(folder: Path, campaign: StoredCampaign) -> None:
    """Store how the cells ended. If the disk is full, the campaign goes on and its figures are still printed."""
    try:
        write_campaign_file(folder, campaign)
    except OSError as problem:
        click.echo(clean(f"rtproof: no {folder / CAMPAIGN_FILE}: {problem.strerror}"), err=True)


def read_campaign_file(folder: Path) -> StoredCampaign:
    """The campaign that campaign.json stores.

    UserError with one sentence if the file is missing, changed, from a newer rtproof or of something else.
    """
    place = folder / CAMPAIGN_FILE
    wrong = f"{place} is not what a campaign leaves"
    try:
        file = decode_json(read_bounded(place), _CampaignFile, wrong)
        if file.schema == CAMPAIGN_FOLDER_SCHEMA and file.version > CAMPAIGN_FOLDER_VERSION:
            known = f"newer than {CAMPAIGN_FOLDER_VERSION}, the last known here: use a newer rtproof"
            raise UserError(f"{place} has version {file.version}, {known}")
        content = msgspec.json.format(bytes(file.campaign), indent=-1)
        if file.schema != CAMPAIGN_FOLDER_SCHEMA or hashlib.sha256(content).hexdigest() != file.sha256:
            raise UserError(f"{place} has changed since the run, so what was asked of its cells is unknown")
        found = decode_json(content, StoredCampaign, wrong)
        cells = tuple(map(_with_options, found.profile.cells))
    except OSError as problem:
        raise UserError(f"cannot read {place}: {problem.strerror}") from None
    except msgspec.ValidationError as problem:
        raise UserError(f"{wrong}: {problem}") from None
    return replace(found, profile=msgspec.structs.replace(found.profile, cells=cells))


def _with_options(cell: CellPlan) -> CellPlan:
    """The cell with the options of itself and its ways in their own types. msgspec.ValidationError for others."""
    ways = tuple(msgspec.structs.replace(way, options=_options(way.options)) for way in cell.ways)
    return replace(cell, options=_options(cell.options), ways=ways)


def _options(stored: Mapping[str, Any]) -> dict[str, Any]:
    return {name: msgspec.convert(value, _OPTION_TYPES.get(name, _OTHER_OPTION)) for name, value in stored.items()}


_OPTION_TYPES: Mapping[str, Any] = {LOAD: tuple[str, ...], PROBE_OPTIONS: dict[str, str]}
_OTHER_OPTION: Any = str | int | float | bool | tuple[str, ...] | None
"""JSON has lists in place of tuples."""


PAGE_FILE, TABLE_FILE, RESULT_FILE = "report.html", "table.md", "result.json"
FORMAT_OF_FILE = {PAGE_FILE: "html", TABLE_FILE: "markdown", RESULT_FILE: "json"}
"""Of each file in a campaign's folder."""


@dataclass(frozen=True)
class CampaignDocument:
    """A campaign with the outcome of each cell, and all that is made of them."""

    campaign: StoredCampaign
    outcomes: Sequence[CellOutcome]

    @property
    def exit_code(self) -> int:
        return self.measured.exit_code

    @cached_property
    def measured(self) -> MeasuredCampaign:
        stored = self.campaign
        return MeasuredCampaign(stored.profile, self.outcomes, stored.article, stored.given, stored.command)

    @cached_property
    def encoded(self) -> bytes:
        """In the documented schema."""
        return encode_campaign(self.measured)

    def drawn(self, form: str, only: Sequence[str] = ()) -> bytes:
        """In a format of reports, or as JSON in the documented schema. only: these sections.

        UserError for a section that the page does not have, or of JSON.
        """
        if form == FORMAT_OF_FILE[RESULT_FILE]:
            if only:
                raise UserError("the JSON of a profile has no sections: give another --format")
            return self.encoded
        return report.render(form, self.title, stored_runs.chosen_sections(self.sections, only))

    @property
    def title(self) -> str:
        return campaign_page.campaign_title(self.measured)

    @cached_property
    def sections(self) -> list[Section]:
        """All sections of the page. The last one tells how guests measured it."""
        making = self.campaign.making
        made = [making_section(self.campaign.command, making)] if making else []
        return [*campaign_page.campaign_sections(self.measured), *made]


def write_campaign_pages(found: CampaignDocument, folder: Path, forms: Mapping[str, str]) -> None:
    """Write the campaign in files with these names and formats. None of the files may exist yet."""
    for name, form in forms.items():
        stored_runs.write_new_file(folder / name, found.drawn(form))


def publish_campaign(found: CampaignDocument, folder: Path, as_json: bool) -> None:
    """Print the result, then write the page, the table and the JSON."""
    with fitted_to_terminal():
        shown = for_terminal(found.sections)
        click.echo(found.encoded if as_json else report.render("text", found.title, shown), nl=False)
    folder.mkdir(parents=True, exist_ok=True)
    write_campaign_pages(found, folder, FORMAT_OF_FILE)
    click.echo(f"\nreport: {folder / PAGE_FILE}", err=as_json)


HTML_FORMAT = "html"
CELL_NOT_REACHED = "not measured: the campaign ended before"
CELL_CUT_OFF = (
    "the campaign ended while it was measured, so its row is missing here; 'rtproof show' tells of its folder"
)


def refuse_options_of_one_run(**given: object) -> None:
    """UsageError if the user gave an option that has a meaning for one run only."""
    if any(given.values()):
        raise click.UsageError("--limit and --horizon are for one run: give the folder of a cell")


def read_campaign(
    folder: Path, percentiles: tuple[float, ...] = (), *, without_lost_cells: bool = False
) -> CampaignDocument:
    """The campaign of a folder, with every cell's run read and judged again.

    percentiles: shown besides those that the run was asked for. UserError or RecordError with one sentence where the
    folder is no longer as the run left it. without_lost_cells: where a cell is not, this is the cell's failure instead.
    """
    if not (folder / CAMPAIGN_FILE).exists():
        cells = folder / CELLS_FOLDER
        show = f"; 'rtproof show {cells}' tells of its cells" if stored_runs.is_series(cells) else ""
        raise UserError(f"{folder} has no {CAMPAIGN_FILE}, so its page can't be made again{show}")
    campaign = read_campaign_file(folder)
    shares = tuple(dict.fromkeys((*campaign.percentiles, *percentiles)))
    plans = {plan.key: plan for plan in campaign.profile.cells}
    _refuse_names(folder / CAMPAIGN_FILE, {*plans, *(cell_name(cell.key, cell.system) for cell in campaign.cells)})
    if unknown := [cell.key for cell in campaign.cells if cell.key not in plans]:
        raise UserError(f"{folder / CAMPAIGN_FILE} tells of the cell {unknown[0]}, which the profile does not have")
    outcomes = []
    for cell in campaign.cells:
        outcome = outcome_of_end(campaign, plans[cell.key], cell)
        if not (folder / outcome.link).exists():
            outcome = replace(outcome, link="")
        try:
            analysis, run = None, folder / cell_run(cell.key, cell.system)
            if cell.sha256:  # else it left no run
                if run_digest(run) != cell.sha256:
                    now = f"'rtproof show {run}' tells what is there now"
                    raise UserError(f"{run} has changed since the campaign; {now}")
                analysis = _read_cell(run, campaign, cell.system, shares)
            outcomes.append(replace(outcome, analysis=analysis))
        except RtproofError as problem:
            if not without_lost_cells:
                raise
            failure = "; ".join(filter(None, (outcome.failure, str(problem))))
            outcomes.append(replace(outcome, failure=failure))
    ended = {cell.key for cell in campaign.cells}
    for plan in (plan for plan in plans.values() if plan.key not in ended):
        begun = (folder / CELLS_FOLDER / plan.key).exists()
        outcomes.append(CellOutcome(campaign.system, plan, failure=CELL_CUT_OFF if begun else CELL_NOT_REACHED))
    return CampaignDocument(campaign, outcomes)


LONGEST_NAME = 200
"""Of a cell's folder, in bytes: file systems take 255 with the suffix of its report."""


def _refuse_names(place: Path, names: Collection[str]) -> None:
    """UserError for the name of a cell that is none of a file in the campaign's folder."""
    for name in names:
        if name in ("", ".", "..") or "/" in name or "\0" in name or len(name.encode(errors="replace")) > LONGEST_NAME:
            raise UserError(f"{place} is not what a campaign leaves: no cell can have the name {clean(name[:60])!r}")


def outcome_of_end(campaign: StoredCampaign, plan: CellPlan, end: CellEnd) -> CellOutcome:
    """How a cell ended, without its run. UserError for a way that the cell does not have."""
    if end.way is not None and end.way not in range(len(plan.ways)):
        raise UserError(
            f"{CAMPAIGN_FILE} says that the cell {plan.key} took way {end.way}, which the cell does not have"
        )
    way = None if end.way is None else plan.ways[end.way]
    return CellOutcome(
        end.system or campaign.system,
        cell_as_run(plan, way),
        way=way,
        passed=tuple(zip(plan.ways, end.refused, strict=False)),
        failure=end.failure,
        link=cell_link(plan.key, end.system) if end.report else "",
        kept=end.files,
        run=cell_run(plan.key, end.system),
    )


def _read_cell(run: Path, campaign: StoredCampaign, guest: str, shares: tuple[float, ...]) -> Analysis:
    """The run of a cell. A guest's run is kept for other campaigns too, so it names no limits."""
    if guest:
        limits = campaign.profile.claims
        return replace(analyse(run_folder.open_run(run).record, limits, 1), shares=shares)
    return stored_runs.read_run(run, percentiles=shares).analysis


def end_cell(folder: Path, campaign: StoredCampaign, end: CellEnd, *, report: bool) -> tuple[CellEnd, CellOutcome]:
    """The outcome of a cell that was measured, after the files and the report beside its run are written.

    end: what the run folder does not tell; it comes back with what was written. A sentence on standard error says what
    was written, and what could not be.
    """
    plan = campaign.profile.cell(end.key)
    outcome = outcome_of_end(campaign, plan, end)
    run, place = folder / outcome.run, folder / cell_link(end.key, end.system)
    try:
        analysis = _read_cell(run, campaign, end.system, campaign.percentiles)
    except RtproofError as problem:
        end = replace(end, failure=str(problem))
        return end, replace(outcome, failure=end.failure)
    kept, sentences = exported_files.keep_files(campaign.profile, replace(outcome, analysis=analysis), run)
    if report:
        try:
            drawn = stored_runs.AnalysedRun(analysis, read_run_info(run)).report(HTML_FORMAT)
            stored_runs.write_new_file(place, drawn)
        except (RtproofError, OSError) as problem:  # It costs no figure.
            sentences.append(f"rtproof: no {place}: {getattr(problem, 'strerror', problem)}")
    for sentence in sentences:
        click.echo(clean(sentence), err=True)
    end = replace(end, sha256=run_digest(run), report=report and place.exists(), files=kept)
    return end, replace(outcome_of_end(campaign, plan, end), analysis=analysis)


def write_missing_pages(
    found: CampaignDocument, folder: Path, form: str, output: Path | None, only: Sequence[str] = ()
) -> None:
    """Write the page, the table and the JSON where they are missing; with an output, or another form, this one alone.

    only: these sections, which need an output: the folder keeps whole pages. Links to the reports of cells are left out
    of a file elsewhere. UserError if nothing is missing.
    """
    if output == files.STANDARD_OUTPUT:
        click.echo(found.drawn(form, only), nl=False)
    elif output is not None:
        if output.parent.resolve() != folder.resolve():
            found = replace(found, outcomes=[replace(each, link="") for each in found.outcomes])
        stored_runs.write_new_file(output, found.drawn(form, only))
        click.echo(output)
    else:
        lack = {name: each for name, each in FORMAT_OF_FILE.items() if form in (each, HTML_FORMAT)}
        lack = {name: each for name, each in lack.items() if not (folder / name).exists()}
        if only or not lack:
            kept = f"{folder} keeps whole pages and has its {', '.join(FORMAT_OF_FILE)} already"
            raise UserError(f"{kept}: nothing is ever written over, so say with --output where another goes")
        write_campaign_pages(found, folder, lack)
        for name in lack:
            click.echo(folder / name)


HEAD_BYTES = 4096
MATRIX_TITLE = "rtproof: boards and kernels"


def draw_matrix(paths: Sequence[Path], form: str) -> tuple[bytes, int]:
    """The page of boards and kernels, and the exit code. paths: of profiles, of their ``result.json``, or of runs.

    UserError with the file's name for one that is missing or something else. The code is 2 if a run can't be read.
    """
    campaigns, runs = [path for path in paths if _is_campaign(path)], []
    for file in (path / RESULT_FILE if path.is_dir() else path for path in campaigns):
        document: Any = decode_json(read_bounded(file), object, f"{file} is no JSON")
        try:
            runs += matrix_page.read_matrix_run(document)
        except UserError as problem:
            raise UserError(f"{file} {problem}") from None
    single = [path for path in paths if path not in campaigns]
    side = run_sets.read_sides([("", "", single)])[0] if single else run_sets.ComparedSide("", "", ())
    sections = matrix_page.matrix_sections(runs, side.runs, side.failed)
    return report.render(form, MATRIX_TITLE, sections), run_sets.exit_code_of_sides([side])


def _is_campaign(path: Path) -> bool:
    """Whether it is the folder or the result of a profile, under any name. UserError for a pipe or a device."""
    if path.name == RESULT_FILE or (path / RESULT_FILE).exists():
        return True
    if path.is_dir() or not path.exists():
        return False
    files.refuse_what_waits(path)
    with path.open("rb") as file:
        return CAMPAIGN_SCHEMA.encode() in file.read(HEAD_BYTES)
