# SPDX-License-Identifier: Apache-2.0
"""The keys of an article's file. msgspec refuses any other key and any other type."""

import msgspec


class NumbersFile(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Of a thread or field: times with their unit, shares with %.

    low, high: ends of the band that below and above count the values outside of. bin_*: the fullest bin, and its share.
    """

    name: str
    kind: str = "latency"
    period: str | None = None
    count: int | None = None
    low: str | None = None
    high: str | None = None
    below: int | None = None
    above: int | None = None
    min: str | None = None
    actual: str | None = None
    mean: str | None = None
    max: str | None = None
    deviation: str | None = None
    bins: int | None = None
    bin_width: str | None = None
    bin_from: str | None = None
    bin_to: str | None = None
    bin_share: str | None = None


class RowFile(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A row. loadavg: the three numbers as the kernel gives them. cpus: how many the board has."""

    key: str
    label: str
    section: str
    board: str
    kernel: str
    load: str = ""
    command: str = ""
    method: str = ""
    method_claimed: str = ""
    policy: str = ""
    priority: int | None = None
    duration: str | None = None
    asked: str | None = None
    loadavg: str | None = None
    cpus: int | None = None
    load_line: str = ""
    group: str = ""
    judged: bool = False
    stopped: bool = False
    caveats: tuple[str, ...] = ()
    numbers: tuple[NumbersFile, ...] = ()


class StatementFile(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    key: str
    rows: tuple[str, str]
    field: str
    says: str
    above: str | None = None
    top_share: str | None = None


class ArticleFile(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Rows and statements are converted one by one, so that an error names the row.

    threshold: the percentile that the article judges by, such as "99.999 %".
    """

    title: str
    source: str
    about: str
    row: list[dict[str, object]]
    statement: list[dict[str, object]] = []
    threshold: str | None = None
