# SPDX-License-Identifier: Apache-2.0
"""What several exporters share: a new file that is complete or absent, their options, and samples as columns."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from rtproof.core import files, units
from rtproof.core.errors import UserError
from rtproof.core.printable import clean
from rtproof.explain import machine_gone_counts
from rtproof.judge import verdict_sentences
from rtproof.judge.analysis_model import Analysis, Outcome, Verdict
from rtproof.record.activations import Activations, number_activations
from rtproof.record.contents import Block, Record, Series
from rtproof.summary import recorded_facts
from rtproof.summary.counts import Counts
from rtproof.summary.fields import series_by_field
from rtproof.summary.kernel_trace import has_trace
from rtproof.summary.summary_model import Summary

VIEWS = ("observed", "schedule")
VIEW_HELP = "observed (activations that ran, the default) or schedule (missed ones too, charged with their lateness)"
MOST_BINS = 10_000_000


@contextmanager
def new_file(path: Path) -> Iterator[IO[str]]:
    """A new text file, which is whole or absent (``files.whole_file``)."""
    with files.whole_file(path, new=True) as part, part.open("x", encoding="ascii", newline="\n") as file:
        yield file


def write_lines(analysis: Analysis, path: Path, lines: Iterable[str], told: str) -> str:
    """Write a new file of lines behind the marks of the run. Return the sentence on it, which says what is told."""
    with new_file(path) as file:
        file.write(mark_lines(analysis.run_record))
        file.writelines(f"{line}\n" for line in lines)
    return f"{path}: {told}{mark_note(analysis)}"


TIME_UNITS_NS = {"us": 1_000, "ns": 1}
TIME_UNIT_HELP = "us (default) or ns, as with cyclictest -N"


def choice(options: dict[str, str], key: str, names: Sequence[str]) -> str:
    """The value of an option, by default the first of these; UserError for any other."""
    value = options.get(key, names[0])
    if value not in names:
        raise UserError(f"the option {key}={value} is none of: {', '.join(names)}")
    return value


def time_unit_ns(options: dict[str, str]) -> int:
    """The value of an option ``unit`` in ns; UserError for another unit."""
    return TIME_UNITS_NS[choice(options, "unit", tuple(TIME_UNITS_NS))]


NO_YES = ("0", "1")
SMI_HELP = "1: how many SMIs each thread's CPU had, as with cyclictest --smi"


def smis_of(analysis: Analysis, options: dict[str, str]) -> list[int]:
    """The SMIs of each thread's CPU in the run, if the option ``smi`` asks for them; UserError without a counter."""
    if choice(options, "smi", NO_YES) == "0":
        return []
    rises = machine_gone_counts.read_counts(analysis.run_record)["smi"] if analysis.run_record else {}
    cpus = [summary.series.cpu for summary in analysis.summaries]
    if lacking := [cpu for cpu in cpus if cpu not in rises]:
        raise UserError(f"nothing counted the SMIs of CPU {lacking[0]}")
    return [rises[cpu].whole_rise for cpu in cpus]


def whole_number(options: dict[str, str], key: str, default: int, most: int = MOST_BINS) -> int:
    """The value of an option that is a number from 1 to ``most``; UserError for any other text."""
    text = options.get(key, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 12 and 1 <= int(text) <= most):
        raise UserError(f"the option {key}={text} is not a whole number from 1 to {most}")
    return int(text)


def counts_of(summary: Summary, view: str) -> Counts:
    """The latencies of a thread in this view, counted."""
    return summary.observed_counts if view == "observed" else summary.schedule_counts


def summary_note(analysis: Analysis) -> str:
    """A note on the precision of numbers that come from the record's own bins; "" if they come from samples."""
    if analysis.imported:
        return (
            f"; values are known to {units.format_duration(analysis.imported.resolution_ns or 1)}, as the tool printed"
        )
    if all(summary.exact for summary in analysis.summaries):
        return ""
    return "; values are known to one part in 1024, because the run kept a summary instead of every sample"


def refuse_without_threads(analysis: Analysis) -> None:
    """UserError for a record of which no thread can be read, because its table would have no column."""
    if not analysis.summaries:
        raise UserError(f"{analysis.record.path} has no thread that can be read, so it has no histogram")


def columns_of(analysis: Analysis) -> list[tuple[str, Summary]]:
    """Every thread with the name of its column; every field of every thread if there are several fields."""
    if len(analysis.every) == len(analysis.summaries):
        return [(f"thread{summary.series.thread}", summary) for summary in analysis.summaries]
    return [(f"thread{s.series.thread}.{plain(s.series.field)}", s) for s in analysis.every]


def bins_within(analysis: Analysis, options: dict[str, str], name: str, default: int, scale: tuple[int, int]) -> int:
    """The number of bins. scale: the start of the first one and the width of each, in ns.

    Of another tool's file with values beyond its scale, the bins end with that scale: nothing tells where they lie.
    """
    count, (start_ns, width_ns), imported = whole_number(options, name, default), scale, analysis.imported
    if imported is None or not imported.overflow:
        return count
    end_ns = imported.scale_end_ns
    most = max((end_ns - start_ns) // width_ns, 1)
    if name in options and count > most:
        raise UserError(
            f"the histogram of {imported.tool} ends at {units.format_duration(end_ns)}, and nothing tells where the "
            f"{imported.overflow:,} values beyond it lie: give {name}={most}"
        )
    return min(count, most)


def has_fields(record: Record) -> bool:
    """Whether activations have several values. Each value then has a row of its own with the name of its field."""
    return len(series_by_field(record)) > 1


def plain(words: str) -> str:
    """A name from a record with every character replaced that could have a meaning in a file format."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", words)


def marks(record: Record | None) -> dict[str, str]:
    """Sentences by name that a file must have if its times are virtual or simulated; usually empty."""
    if record is None:
        return {}
    kinds = (
        ("virtual_time", recorded_facts.virtual_time_clock(record), recorded_facts.VIRTUAL_TIME_SENTENCE),
        ("simulated", recorded_facts.is_simulated(record), recorded_facts.SIMULATED_SENTENCE),
    )
    return {name: words for name, so, words in kinds if so}


def mark_lines(record: Record | None) -> str:
    """The sentences of ``marks`` as lines of comment for the head of a text."""
    return "".join(f"# {words}\n" for words in marks(record).values())


def mark_note(analysis: Analysis) -> str:
    """The sentences of ``marks`` as an addition to the sentence on what was written."""
    return "".join(f"; {words}" for words in marks(analysis.run_record).values())


def require_samples(record: Record, kind: str) -> None:
    """UserError if a series has no samples, because a file that lacks some threads would mislead its reader."""
    if not all(series.has_samples for series in record.series):
        raise UserError(
            f"{kind} needs every sample and this run kept only a summary (--record summary): "
            "export hdr, cyclictest or bins instead"
        )


def require_trace(record: Record) -> None:
    """UserError if the run was not traced."""
    if not has_trace(record):
        raise UserError("this run was not traced (rtproof run --trace)")


def columns(series: Series, block: Block) -> Activations:
    """The samples of a block with activation index and due time, as docs/record-format.md says how to derive them."""
    missed = np.zeros(block.values.size, np.int64)
    missed[block.gap_position] = block.gap_missed
    return number_activations(series, block.first_index, block.first_due_ns, block.values, missed)


def all_columns(record: Record) -> Iterator[tuple[Series, Activations]]:
    """All samples, thread after thread, in pieces small enough for the memory."""
    for series in record.series:
        for block in record.blocks(series.id):
            yield series, columns(series, block)


def sample_note(analysis: Analysis, written: int) -> str:
    """How many samples were written, and how many activations ran without a value in the record."""
    absent = sum(summary.obtained for summary in analysis.every) - written
    return f"{written:,} samples" + (
        f" ({absent:,} more ran, but the record does not hold their values)" if absent > 0 else ""
    )


# What the formats of test services share: whether a run passed, and the figures of each thread in microseconds.


def result_of(verdict: Verdict) -> str:
    """The word that test services use. They have none for a test that measured something else."""
    outcome = Outcome.UNKNOWN if verdict.outcome is Outcome.INVALID else verdict.outcome
    return str(outcome.value)


def result_of_figures(verdict: Verdict) -> str:
    """The word beside a measured figure: it was measured, so it is never skipped."""
    measured = verdict.outcome in (Outcome.SKIPPED, Outcome.UNKNOWN)
    return str(Outcome.PASSED.value) if measured else result_of(verdict)


def asked(analysis: Analysis) -> tuple[Verdict, ...]:
    """The verdict on each limit, in the order in which the limits were given; empty without a limit."""
    return tuple(verdict for verdict in analysis.verdicts or (analysis.verdict,) if verdict.requirement is not None)


def limit_name(verdict: Verdict) -> str:
    """A short name of a limit for services that allow no spaces: "limit-500us", or "limit-500us-per-1h"."""
    asked = verdict.requirement
    if asked is None:
        return "no-limit"
    limit = f"limit-{units.format_duration(asked.limit_ns)}"
    return limit if asked.plain else f"{limit}-per-{units.format_duration(asked.at_most_ns)}"


def answer(verdict: Verdict) -> str:
    """The fact in a sentence of ASCII, and what it shows."""
    said = f"{verdict_sentences.claim_answer(verdict)} {verdict_sentences.short_answer(verdict)}".strip()
    return clean(said).encode("ascii", "replace").decode()


def threads(analysis: Analysis) -> Iterator[tuple[Summary, dict[str, float]]]:
    """Each thread, and minimum, mean and maximum of its activations that ran, in us; {} if it never ran.

    UserError if they are no times.
    """
    refuse_without_threads(analysis)
    for summary in analysis.summaries:
        seen = summary.observed
        if summary.series.unit != "ns":
            raise UserError(f"its values are in {summary.series.unit}, and this format is for times")
        ends = {"min": seen.min / 1_000, "mean": (seen.mean or 0) / 1_000, "max": seen.max / 1_000}
        yield summary, ends if seen.count else {}
