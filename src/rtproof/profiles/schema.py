# SPDX-License-Identifier: Apache-2.0
"""What a profile's file may hold; docs/profiles.md explains it. Every class refuses a key that it does not know."""

from typing import Annotated, Literal

import msgspec

SCHEMA = 1
Zoom = Annotated[float, msgspec.Meta(gt=0, lt=100)]
"""The top so many per cent."""
Count = Annotated[int, msgspec.Meta(ge=1)]


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class OptionsFile(_Strict, frozen=True, omit_defaults=True):
    """Options of ``rtproof run``; durations with their unit."""

    probe: str | None = None
    method: str | None = None
    period: str | None = None
    period_step: str | None = None
    duration: str | None = None
    samples: Count | None = None
    warmup: str | None = None
    cpus: str | None = None
    threads: int | None = None
    policy: Literal["fifo", "rr", "other", "deadline"] | None = None
    priority: int | None = None
    phase: str | None = None
    dma_latency: str | None = None
    no_lock_memory: bool | None = None
    record: Literal["samples", "summary"] | None = None
    checkpoint: str | None = None
    allow_unprivileged: bool | None = None
    load: tuple[str, ...] | None = None
    probe_options: dict[str, str] | None = None


class WayFile(_Strict, frozen=True):
    name: str
    says: str = ""
    options: OptionsFile = OptionsFile()
    stage: str = ""
    replace: dict[str, str] = {}


class ValueFile(_Strict, frozen=True):
    name: str
    label: str = ""
    options: OptionsFile = OptionsFile()
    way: tuple[WayFile, ...] = ()


class AxisFile(_Strict, frozen=True):
    name: str
    value: tuple[ValueFile, ...]


class RowFile(_Strict, frozen=True):
    when: dict[str, str]
    keys: tuple[str, ...]


class BinsFile(_Strict, frozen=True):
    name: str
    width: str
    count: Count
    stage: str = ""
    zooms: tuple[Zoom, ...] = ()
    file: str = ""


class KeptFile(_Strict, frozen=True):
    name: str
    format: str
    options: dict[str, str] = {}


class ClaimFile(_Strict, frozen=True):
    limit: str
    at_most: str
    gap: str | None = None
    longest: str | None = None
    bunches: Annotated[float, msgspec.Meta(ge=1, le=100)] = 1.0


class ParameterFile(_Strict, frozen=True):
    name: str
    help: str
    default: str | None = None


class ProgramFile(_Strict, frozen=True):
    label: str
    command: tuple[str, ...]
    needs: str = ""


class GuestFile(_Strict, frozen=True):
    settings: dict[str, str] = {}
    load: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    preempt: tuple[Literal["none", "voluntary", "full", "lazy"], ...] = ("none",)
    says: str = ""


class ProfileFile(_Strict, frozen=True):
    schema: int
    title: str
    article: str
    about: str
    options: OptionsFile
    differs: tuple[str, ...] = ()
    columns: tuple[str, ...] = ("n", "min", "mean", "max", "missed")
    extras: tuple[str, ...] = ()
    zooms: tuple[Zoom, ...] = ()
    requirement: ClaimFile | None = None
    given: str = ""
    axis: tuple[AxisFile, ...] = ()
    way: tuple[WayFile, ...] = ()
    exclude: tuple[dict[str, str], ...] = ()
    row: tuple[RowFile, ...] = ()
    bin: tuple[BinsFile, ...] = ()
    file: tuple[KeptFile, ...] = ()
    parameter: tuple[ParameterFile, ...] = ()
    program: tuple[ProgramFile, ...] = ()
    guest: GuestFile = GuestFile()
