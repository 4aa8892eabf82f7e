# SPDX-License-Identifier: Apache-2.0
"""Many runs in a folder: in the order of time, filtered, and grouped as they were measured."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Literal, TypeAlias, overload

from rtproof.api.arguments import one_kind_of_error, path_of
from rtproof.api.opened_run import Run
from rtproof.api.opened_run import open as open_one
from rtproof.core.errors import RtproofError
from rtproof.core.phrases import quantity
from rtproof.experiment import campaign_folder, run_sets, stored_runs

CampaignKind: TypeAlias = Literal["profile", "lab", "repeat", "abba"]


@dataclass(frozen=True)
class ArchivedRun:
    """What an archive knows of a run without reading all of it.

    Attributes:
        path: Where it lies.
        started: When it began, in UTC; None if the file does not tell it.
        system: What was measured: the guest of a lab, the host of a run on this machine, or else the hardware.
        profile: The profile that it is a cell of; None for any other run.
        kernel: The release of the kernel; None if the file does not tell it.
        kind: As ``Run.kind``.
    """

    path: Path
    started: datetime | None
    system: str | None
    profile: str | None
    kernel: str | None
    kind: str


@dataclass(frozen=True)
class Campaign:
    """Runs that were measured by one command.

    Attributes:
        path: The folder of the campaign.
        kind: "profile" or "lab": the cells of a profile. "repeat": the same again and again. "abba": two sides by
            turns.
        name: The name of the profile, or of the folder.
        runs: Its runs, in the order of time.
    """

    path: Path
    kind: CampaignKind
    name: str
    runs: tuple[ArchivedRun, ...]

    def to_json(self) -> str:
        """The result of a profile, as ``rtproof show --json`` prints it. RtproofError for repeated runs."""
        if self.kind in ("repeat", "abba"):
            raise RtproofError(f"{self.path} holds repeated runs, which have no result of their own: compare them")
        with one_kind_of_error():
            return campaign_folder.read_campaign(self.path).encoded.decode().rstrip("\n")


@dataclass(frozen=True, eq=False, repr=False)
class Archive(Sequence[Run]):
    """The runs of a folder and of the folders in it, in the order in which they began.

    Iterating opens one run after the other, and keeps none of them.

    Attributes:
        path: The folder.
        entries: What is known of each run, in the same order.
        unreadable: The path of each file that cannot be read, and a sentence that says why.
    """

    path: Path
    entries: tuple[ArchivedRun, ...]
    unreadable: tuple[tuple[Path, str], ...] = field(default=())

    def __len__(self) -> int:
        """The number of runs."""
        return len(self.entries)

    @overload
    def __getitem__(self, at: int) -> Run: ...
    @overload
    def __getitem__(self, at: slice) -> "Archive": ...
    def __getitem__(self, at: int | slice) -> "Run | Archive":
        """A run, or an archive of some of them."""
        if isinstance(at, slice):
            return replace(self, entries=self.entries[at])
        return open_one(self.entries[at].path)

    def filter(
        self,
        *,
        system: str | None = None,
        profile: str | None = None,
        kernel: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> "Archive":
        """The runs for which everything holds that is given.

        Args:
            system: Of the measured system. ``*`` stands for any letters, as in a shell.
            profile: Of the profile, likewise.
            kernel: Of the kernel's release, likewise: "6.12.*-rt*".
            since: Runs that began then or later. A time without a zone is local time.
            until: Runs that began before.
        """
        wanted = {"system": system, "profile": profile, "kernel": kernel}
        for name, pattern in wanted.items():
            if not isinstance(pattern, str | None):
                raise RtproofError(f"{name}: text is needed, and no {type(pattern).__name__}")
        begin, end = _zoned("since", since), _zoned("until", until)
        kept = (
            entry
            for entry in self.entries
            if all(pattern is None or _matches(entry, name, pattern) for name, pattern in wanted.items())
            and (begin is None or (entry.started is not None and entry.started >= begin))
            and (end is None or (entry.started is not None and entry.started < end))
        )
        return replace(self, entries=tuple(kept))

    @property
    def campaigns(self) -> tuple[Campaign, ...]:
        """The campaigns of profiles, of the lab and of repeated runs, in the order of their first run."""
        folders: dict[Path, list[ArchivedRun]] = {}
        for entry in self.entries:
            if folder := _campaign_of(entry.path):
                folders.setdefault(folder, []).append(entry)
        found = []
        for folder, runs in folders.items():
            names = [entry.path.name for entry in runs]
            kind: CampaignKind = "abba" if any("-" in name for name in names) else "repeat"
            name = folder.name
            if stored_runs.is_campaign(folder):
                kind = "lab" if any("__" in each for each in names) else "profile"
                name = runs[0].profile or folder.name
            found.append(Campaign(folder, kind, name, tuple(runs)))
        return tuple(found)

    def __repr__(self) -> str:
        """The folder and the number of runs."""
        failed = f", {len(self.unreadable)} unreadable" if self.unreadable else ""
        return f"<Archive {str(self.path)!r}: {quantity(len(self), 'run')}{failed}>"


def open_archive(folder: str | PathLike[str]) -> Archive:
    """The runs in a folder and in the folders there: run folders, records, and histograms of other tools.

    RtproofError if there is none. A run that cannot be read is in ``Archive.unreadable``.
    """
    place = path_of(folder)
    with one_kind_of_error():
        paths = stored_runs.find_runs([place], stored_runs.is_histogram_file)
    campaign_in = cache(_read_campaign)
    entries: list[ArchivedRun] = []
    failed: list[tuple[Path, str]] = []
    for path in paths:
        try:
            run, campaign = open_one(path), campaign_in(_campaign_of(path))
            profile, system = None, run.system
            if campaign:
                guests = {campaign_folder.cell_name(cell.key, cell.system): cell.system for cell in campaign.cells}
                profile, system = campaign.profile.name, guests.get(path.name) or campaign.system or None
            entries.append(ArchivedRun(run.path, run.started, system, profile, run.kernel, run.kind))
        except RtproofError as problem:
            failed.append((path, str(problem)))
    entries.sort(key=lambda entry: (entry.started is None, entry.started and entry.started.timestamp(), entry.path))
    return Archive(place, tuple(entries), tuple(failed))


def _read_campaign(folder: Path | None) -> campaign_folder.StoredCampaign | None:
    """The campaign of a folder; None for repeated runs and for no folder, and if its file cannot be read."""
    if folder is None or not stored_runs.is_campaign(folder):
        return None
    try:
        return campaign_folder.read_campaign_file(folder)
    except RtproofError:
        return None


def _campaign_of(run: Path) -> Path | None:
    """The folder of the campaign that a run lies in; None if it lies in none."""
    above = run.absolute().parent
    if above.name == stored_runs.CELLS_FOLDER and stored_runs.is_campaign(above.parent):
        return above.parent
    if above.name == run_sets.RUNS_FOLDER and run_sets.TURN.fullmatch(run.name):
        return above.parent
    return None


def _zoned(name: str, at: object) -> datetime | None:
    """A time with its zone, which is that of this machine where the user gives none."""
    if at is None:
        return None
    if not isinstance(at, datetime):
        raise RtproofError(f"{name}: a datetime.datetime is needed, and no {type(at).__name__}")
    try:
        return at.astimezone()
    except (ValueError, OverflowError, OSError):
        # The first and the last day of the calendar have no other zone.
        return at if at.tzinfo else at.replace(tzinfo=UTC)


def _matches(entry: ArchivedRun, name: str, pattern: str) -> bool:
    text: str | None = getattr(entry, name)
    return text is not None and fnmatchcase(text, pattern)
