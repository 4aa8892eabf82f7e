# SPDX-License-Identifier: Apache-2.0
"""What is fuzzed: for each target its seeds, how an input is damaged, and what reads the input.

A reader returns what it found as bytes, so that two readings can be compared. A broken promise is an AssertionError.
"""

import gzip
import hashlib
import io
import json
import random
import re
import shutil
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TypeVar
from unittest.mock import patch

import numpy as np

from fuzzing import audit_promises
from fuzzing.facts_mutations import mutated_facts
from fuzzing.mutations import mutated
from fuzzing.record_mutations import ODD_INTEGERS, mutated_record, mutated_trace
from rtproof import articles, exporters, importers, loads, profiles
from rtproof.articles import article
from rtproof.compare.compare import compare_sides
from rtproof.compare.history import FEWEST, analyse_history
from rtproof.compare.likeness import MUST_AGREE
from rtproof.compare.run_metrics import RunFigures, figures_of
from rtproof.core import plugins
from rtproof.core.errors import UserError
from rtproof.experiment import campaign_folder, explained_runs, stored_runs
from rtproof.explain.explanation import Explanation, explain
from rtproof.importers import LARGEST_BYTES
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis
from rtproof.judge.watch import Watch
from rtproof.lab import kernel_catalogue, verify_inputs
from rtproof.profiles import profile_file
from rtproof.record import encoding, histogram_bins, run_folder
from rtproof.record.contents import Record
from rtproof.record.decoding import decode_gaps
from rtproof.record.encoding import MalformedError
from rtproof.record.reading import open_record
from rtproof.record.requirement import Requirement
from rtproof.report import compose, render
from rtproof.report.pages import comparison_page, history_page
from rtproof.run.live_view import LiveView
from rtproof.run.session import AgentListener
from rtproof.schema.encoder import json_bytes
from rtproof.schema.published import comparison_dict, history_dict
from rtproof.summary import kernel_trace

ROOT = Path(__file__).parent.parent.parent
DATA = ROOT / "tests" / "data"
CORPUS = DATA / "fuzz.zip"
"""The kept corpus: a folder of each target with inputs that once were findings, and three folders of seeds."""
CAMPAIGN = DATA / "written_by_537db1b" / "campaign"
GOOD_CELL = CAMPAIGN / "cells" / "good"
Found = TypeVar("Found")
LARGEST_OF_READER = 60_000
LIMIT = Requirement(100_000, 60_000_000_000)


@dataclass(frozen=True)
class Target:
    """seeds: whole inputs. damage: from an input, another one and a seed, a damaged input. read: raises or returns.

    weight: the share of the time.
    """

    name: str
    seeds: Callable[[], list[bytes]]
    damage: Callable[[bytes, bytes, int], bytes]
    read: Callable[[bytes, Path], bytes]
    weight: float = 1

    def corpus(self) -> list[bytes]:
        """The seeds and the kept inputs, in an order that never changes."""
        return [*self.seeds(), *kept_inputs(self.name).values()]


def kept_inputs(folder: str) -> dict[str, bytes]:
    """The inputs of a folder of the kept corpus, by their names, in order."""
    with zipfile.ZipFile(CORPUS) as kept:
        return {name: kept.read(name) for name in sorted(kept.namelist()) if name.startswith(f"{folder}/")}


def _plain(content: bytes, other: bytes, seed: int) -> bytes:
    """Damage of a text or of any bytes. One in eight inputs is joined with another one first."""
    dice = random.Random(seed)
    if other and dice.random() < 0.125:
        content = content[: dice.randrange(len(content) + 1)] + other[dice.randrange(len(other) + 1) :]
    return mutated(content, seed)


GOLDEN = ("ppc", "x86_64", "x86_64-1.2", "x86_64-1.3", "timerlat", "timerlat-1.1", "recorder-1.4")


def _records() -> list[bytes]:
    places = [GOOD_CELL / run_folder.RECORD_NAME, *(DATA / "golden" / f"{name}.rtrec" for name in GOLDEN)]
    return [*(path.read_bytes() for path in places), *kept_inputs("records").values()]


def _traces() -> list[bytes]:
    real = gzip.decompress((DATA / "trace" / "armhf.rtrec.gz").read_bytes())
    recorders = [(DATA / "golden" / f"recorder-{version}.rtrec").read_bytes() for version in ("1.4", "1.6")]
    return [real, *recorders, *kept_inputs("traces").values()]


def _file(content: bytes, folder: Path, name: str) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def _read_record(content: bytes, folder: Path) -> bytes:
    """Open, sum up, judge, and draw in one of the formats."""
    found = stored_runs.read_run(_file(content, folder, "a.rtrec"), workers=1)
    again = stored_runs.read_run(folder / "a.rtrec", LIMIT, workers=1)
    form = ("html", "markdown", "text", "json")[zlib.crc32(content) % 4]
    check_counts(found.analysis)
    return found.as_json() + again.as_json() + again.report(form)


def check_counts(analysis: Analysis) -> None:
    """The numbers say no more than the record holds: no count is below 0, and histograms add up."""
    for each in analysis.every:
        assert each.obtained >= 0, "fewer than no samples were obtained"
        assert int(each.observed_counts.n.sum()) <= each.obtained, "the histogram has more values than were obtained"
    held = sum(ref.count for ref in analysis.record.chunk_refs)
    obtained = sum(each.obtained for each in analysis.every)
    assert held <= obtained or any(not series.has_samples for series in analysis.record.series), (
        f"the record holds {held} samples, but {obtained} were obtained"
    )


def _export_record(content: bytes, folder: Path) -> bytes:
    """Every exporter; a text of samples has no more lines than samples were obtained."""
    record = open_record(_file(content, folder, "a.rtrec"))
    analysis = analyse(record, LIMIT, workers=1)
    obtained = sum(each.obtained for each in analysis.every)
    said = []
    for name in plugins.plugin_names(exporters):
        path = folder / f"out-{name}"
        try:
            said.append(plugins.load_plugin(exporters, name).export(analysis, path, _options(name)))
        except UserError as problem:
            said.append(str(problem))
            assert not path.exists(), f"{name} refused and left its file"
            continue
        if name == "csv":
            rows = sum(line[:1].isdigit() or line[:1] == b"-" for line in path.read_bytes().splitlines())
            assert rows <= obtained, f"the csv has {rows} samples, and {obtained} were obtained"
        if name != "parquet":
            said.append(hashlib.sha256(path.read_bytes()).hexdigest())
        path.unlink()
    return "\n".join(said).encode(errors="backslashreplace")


def _options(exporter: str) -> dict[str, str]:
    return {"width": "1us", "count": "100"} if exporter == "bins" else {}


def _read_trace(content: bytes, folder: Path) -> bytes:
    """The summary of the trace, why it was late, what is exported of it, and its section of the report."""
    record = open_record(_file(content, folder, "a.rtrec"))
    said = [repr(kernel_trace.trace_summary(record)), repr(kernel_trace.lost_trace_events(record))]
    said.append(_explanation(record))
    analysis = analyse(record, None, workers=1)
    for name in ("trace-txt", "trace-dat"):
        path = folder / f"out-{name}"
        try:
            said.append(plugins.load_plugin(exporters, name).export(analysis, path, {}))
            said.append(hashlib.sha256(path.read_bytes()).hexdigest())
            path.unlink()
        except UserError as problem:
            said.append(str(problem))
            assert not path.exists(), f"{name} refused and left its file"
    said.append(render("text", "trace", compose(analysis)).decode())
    return "\n".join(said).encode(errors="backslashreplace")


def _explanation(record: Record) -> str:
    """Why the record was late, or why nobody can tell. Every budget adds up to the latency."""
    try:
        found = explain(record, top=8)
    except UserError as problem:
        return str(problem)
    check_budgets(found)
    return repr(found.rows)


def check_budgets(explained: Explanation) -> None:
    """Each budget has no negative part and adds up to the latency."""
    for budget in (*explained.budgets, *explained.ordinary):
        assert min(budget.by_cause.values(), default=0) >= 0, "a budget has a negative part"
        assert sum(budget.by_cause.values()) == budget.activation.latency_ns, "a budget does not add up"


def _trace_files() -> list[bytes]:
    """Files of trace-cmd, as tests/trace_dat_cases.py makes them: both versions and byte orders, compressed and not."""
    with zipfile.ZipFile(DATA / "trace" / "trace_dat.zip") as files:
        return [files.read(name) for name in sorted(files.namelist())]


def _read_trace_file(content: bytes, folder: Path) -> bytes:
    """A trace.dat, with the activations of its threads, judged, explained and drawn."""
    path = _file(content, folder, "trace.dat")
    found = stored_runs.read_run(path, LIMIT, workers=1)
    check_counts(found.analysis)
    _, explained, _ = explained_runs.explain_run(path, None, 8, {})
    assert isinstance(explained, Explanation), "a trace was taken for a run without one"
    check_budgets(explained)
    said = repr(explained.rows)
    return found.as_json() + found.report("text") + said.encode(errors="backslashreplace")


def tool_outputs() -> list[bytes]:
    """Outputs of other tools, most of them real."""
    stored = (path for path in sorted((DATA / "cyclictest").iterdir()) if path.suffix != ".toml")
    found = [DATA / "jitterdebugger.json", *stored]
    with zipfile.ZipFile(DATA / "tool_outputs.zip") as outputs:
        return [*(path.read_bytes() for path in found), *(outputs.read(name) for name in outputs.namelist())]


def _read_histogram(content: bytes, folder: Path) -> bytes:
    """The output of another tool, or whatever a file holds, judged and drawn."""
    assert len(content) <= LARGEST_BYTES
    found = stored_runs.read_run(_file(content, folder, "a.txt"), LIMIT, (0.99,), workers=1)
    return found.as_json() + found.report(("html", "markdown", "text", "json")[zlib.crc32(content) % 4])


def _reader(name: str) -> Target:
    """The reader of one tool alone, so that rare tools get as many inputs as common ones."""
    module = plugins.load_plugin(importers, name)

    def seeds() -> list[bytes]:
        return [content for content in tool_outputs() if module.looks_like(content.decode(errors="replace"))]

    def read(content: bytes, _: Path) -> bytes:
        text = content.decode(errors="replace")
        return repr(module.read(text)).encode(errors="backslashreplace") if module.looks_like(text) else b"another tool"

    return Target(f"read-{name}", seeds, _edited, read, 0.25)


def _edited(content: bytes, other: bytes, seed: int) -> bytes:
    """Damage of a text, sometimes after what an editor, a shell or a terminal makes of it. Long ones are mostly cut."""
    dice = random.Random(seed)
    if dice.random() < 0.9:
        content = content[: dice.randrange(2_000, LARGEST_OF_READER)]
    way = dice.random()
    if way < 0.03:
        content = content.replace(b"\n", b"\r\n")
    elif way < 0.08:
        content = dice.choice((b"\xef\xbb\xbf", b"[sudo] password for me:\n")) + content
    elif way < 0.11:
        content += other
    return mutated(content, seed)


def _toml_seeds(package: Path) -> Callable[[], list[bytes]]:
    return lambda: [path.read_bytes() for path in sorted(package.glob("*.toml"))]


def _read_profile(content: bytes, folder: Path) -> bytes:
    return repr(profile_file.read_profile(_file(content, folder, "a.toml"))).encode(errors="backslashreplace")


def _read_article(content: bytes, folder: Path) -> bytes:
    return repr(article.read(_file(content, folder, "a.toml"))).encode(errors="backslashreplace")


def _read_load(content: bytes, folder: Path) -> bytes:
    """The load, and what the agent is told with no setting given. The file has the name that the load gives itself."""
    name = re.search(rb'(?m)^name *= *"([a-z][a-z0-9._-]{0,60})"', content)
    path = _file(content, folder, f"{name[1].decode() if name else 'a'}.toml")
    found = loads.read_load(path)
    return repr((found, loads.resolve((str(path),)), list(loads.default_parts(found)))).encode(
        errors="backslashreplace"
    )


def _read_run_info(content: bytes, folder: Path) -> bytes:
    """A run folder with this run.json, judged and drawn."""
    (folder / run_folder.RECORD_NAME).write_bytes((GOOD_CELL / run_folder.RECORD_NAME).read_bytes())
    _file(content, folder, run_folder.INFO_NAME)
    found = stored_runs.read_run(folder, workers=1)
    return found.as_json() + found.report("text")


def _damaged_json(content: bytes, other: bytes, seed: int) -> bytes:
    """The file damaged in any way, or with odd values in some places. The digest of a campaign is put right then."""
    dice = random.Random(seed)
    if dice.random() < 0.2:
        return mutated(content, seed)
    try:
        told = json.loads(content)
        campaign = isinstance(told, dict) and "sha256" in told
        inner = told["campaign"] if campaign else told
        for _ in range(dice.choice((1, 1, 2, 4))):
            inner = _odd_value(inner, dice)
        packed = json.dumps(inner, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
        if not campaign:
            return packed
        signed = {"sha256": hashlib.sha256(packed).hexdigest(), "campaign": json.loads(packed)}
        return json.dumps(told | signed, ensure_ascii=False).encode()
    except (ValueError, TypeError, KeyError, RecursionError):
        return mutated(content, seed)


ODD_VALUES: tuple[object, ...] = (
    *(None, True, "", "..", "../..", "/", "\x1b[2J", "a" * 5_000, "nobody", "\x00"),
    *(-1, 0, 0.5, 1e300, 2**63, -(2**63), [], {}, [[]]),
)


def _odd_value(value: object, dice: random.Random) -> object:
    """The value with one part somewhere in it replaced, gone or twice."""
    if isinstance(value, dict) and value and dice.random() < 0.9:
        key = dice.choice(sorted(value))
        changed = {name: each for name, each in value.items() if name != key or dice.random() < 0.9}
        return changed | ({key: _odd_value(changed[key], dice)} if key in changed else {})
    if isinstance(value, list) and value and dice.random() < 0.9:
        at = dice.randrange(len(value))
        return [*value[:at], _odd_value(value[at], dice), *value[at + dice.choice((0, 1, 1, 1)) :]]
    alike = [each for each in (*ODD_VALUES, *ODD_INTEGERS) if type(each) is type(value)]
    return dice.choice(alike if alike and dice.random() < 0.7 else ODD_VALUES)


def _read_campaign(content: bytes, folder: Path) -> bytes:
    """A folder of a campaign with this campaign.json, read again and drawn."""
    shutil.copytree(CAMPAIGN, folder, dirs_exist_ok=True)
    _file(content, folder, stored_runs.CAMPAIGN_FILE)
    found = campaign_folder.read_campaign(folder)
    return found.encoded + found.drawn(("html", "markdown", "text")[zlib.crc32(content) % 3])


def _read_result(content: bytes, folder: Path) -> bytes:
    """A result.json, as ``rtproof matrix`` reads it."""
    return campaign_folder.draw_matrix([_file(content, folder, "result.json")], "markdown")[0]


@cache
def _good_figures() -> RunFigures:
    return figures_of(stored_runs.read_run(GOOD_CELL, workers=1).analysis, "good")


def _read_compared(content: bytes, folder: Path) -> bytes:
    """The record compared with a good one, alone and among five runs, and as the last run of a history."""
    good = _good_figures()
    own = figures_of(stored_runs.read_run(_file(content, folder, "a.rtrec"), workers=1).analysis, "own")
    days = [
        replace(good, name=f"day {n}", run_id=str(n), started_ns=n * 86_400 * 10**9, seconds=good.seconds)
        for n in range(1, FEWEST + 6)
    ]
    said = []
    for a, b in (((own,), (good,)), ((own, *days[:5]), tuple(days[5:11]))):
        try:
            found = compare_sides(a, b, names=("A", "B"), although=frozenset(MUST_AGREE))
        except UserError as problem:
            said.append(str(problem).encode(errors="backslashreplace"))
            continue
        said.append(json_bytes(comparison_dict(found, ("own", "good"), "", ())))
        form = ("html", "markdown", "text")[zlib.crc32(content) % 3]
        said.append(render(form, "compared", comparison_page.comparison_sections(found, ("own", "good"))))
    history = analyse_history([*days, own], by_name=False)
    said.append(json_bytes(history_dict(history, "", ())))
    said.append(render("text", "history", history_page.history_sections(history)))
    return b"\n".join(said)


def _read_lab_result(content: bytes, folder: Path) -> bytes:
    """The result of ``lab compare``, as ``lab verify`` reads it on a machine that has the agents but no kernel."""
    stored = verify_inputs.read_comparison(_file(content, folder, "result.json"))
    some_file = GOOD_CELL / run_folder.RECORD_NAME
    with (
        patch.object(verify_inputs, "build_guest_agent", lambda arch: some_file),
        patch.object(kernel_catalogue, "opened_kernel", lambda wanted: None),
    ):
        said = verify_inputs.verification_sentences(verify_inputs.compare_inputs(stored))
    return "\n".join(said).encode(errors="backslashreplace")


def _packed_seeds() -> list[bytes]:
    dice = np.random.default_rng(1)
    some = [dice.gamma(3, 900, n).astype(np.int64) for n in (1, 7, 200, 4096)]
    some += [np.zeros(9, np.int64), np.array([-(1 << 63), (1 << 63) - 1, 0])]
    numbers = dice.integers(0, 1 << 63, 50).astype(np.uint64)
    return [encoding.encode_array(each) for each in some] + [encoding.leb128_encode(numbers), bytes(range(256))]


def _damaged_words(content: bytes, other: bytes, seed: int) -> bytes:
    dice = random.Random(seed)
    changed = bytearray(content or other)
    for _ in range(dice.choice((1, 1, 2, 4)) if changed else 0):
        size = min(dice.choice((1, 2, 4, 8)), len(changed))
        at = dice.randrange(min(len(changed) - size + 1, 24) if dice.random() < 0.6 else len(changed) - size + 1)
        changed[at : at + size] = (dice.choice(ODD_INTEGERS) % (1 << 8 * size)).to_bytes(size, "little")
    if dice.random() < 0.2:
        del changed[dice.randrange(len(changed) + 1) :]
    if dice.random() < 0.1:
        changed += other[: dice.randrange(len(other) + 1)]
    return bytes(changed)


def _read_packed(content: bytes, folder: Path) -> bytes:
    """The bytes as a packed array, alone and in a batch; as gaps, as LEB128 and as the bins of a histogram."""
    said = []
    alone = _or_malformed(lambda: encoding.decode_array(content)[0])
    if alone is not None:
        again = encoding.decode_array(encoding.encode_array(alone))[0]
        assert np.array_equal(again, alone), "what is packed again is something else"
    raw = np.frombuffer(content, np.uint8)
    whole = np.array([0]), np.array([len(content)])
    batch = _or_malformed(lambda: encoding.decode_array_batch(raw, encoding.array_layouts(raw, *whole)))
    assert (alone is None) == (batch is None), "alone and in a batch, an array is not equally right"
    assert alone is None or batch is None or np.array_equal(alone, batch), (
        "alone and in a batch, an array has other values"
    )
    said.append(repr(None if alone is None else alone.tolist()))
    count = int(np.count_nonzero(raw < 128))
    numbers = _or_malformed(lambda: encoding.leb128_decode(content, count))
    if numbers is not None:
        shorter = encoding.leb128_encode(numbers)
        assert np.array_equal(encoding.leb128_decode(shorter, count), numbers), "LEB128 written again is something else"
        said.append(repr(numbers.tolist()))
    said.append(repr(_or_malformed(lambda: decode_gaps(content, 0, 1 << 16))))
    said.append(repr(_or_malformed(lambda: histogram_bins.histogram_arrays(content, 1000))))
    return "\n".join(said).encode()


def _or_malformed(read: Callable[[], Found]) -> Found | None:
    try:
        return read()
    except MalformedError:
        return None


FIGURES = "last_ns=5000 min_ns=900 mean_ns=4000"


def _agent_lines() -> list[bytes]:
    """What the agent prints in a run of 9 s with two threads. One is late; the other loses a value and stands still."""
    told = ((0, 0.5, 0.5), (1, 0.5, 0.5), (0, 3.5, 3.5), (1, 3.5, 3.5), (0, 9, 9), (1, 9, 4))
    lines = [
        f"progress time_ns={int(now * 1e9)} thread={thread} cpu={thread} obtained={int(now * 1000)} missed={thread} "
        f"lost={int(thread and now > 1)} {FIGURES} max_ns=250000 due_ns={int(due * 1e9)}"
        for thread, now, due in told
    ]
    lines.insert(2, "over thread=0 limit_ns=100000 second=1 worst_ns=250000")
    lines.insert(5, "over thread=1 limit_ns=100000 second=2 worst_ns=4000000000")
    said = ["rtproof-agent: measuring for 9 s with 2 threads", *lines, "rtproof-agent: the record is whole"]
    return ["\n".join(said).encode()]


def _read_lines(content: bytes, folder: Path) -> bytes:
    """The agent's output, as a run with --until-decided follows it, on a terminal and without one."""
    said = []
    for on_terminal in (False, True):
        out = _Screen()
        watch = Watch((LIMIT, Requirement(1_000_000, 1_000_000_000)))
        clock = iter(range(1 << 30))
        view = LiveView(out, "10 s", on_terminal, lambda clock=clock: float(next(clock)), watch.lines)  # type: ignore[misc]
        listener = AgentListener(view, folder / "agent.log", watch)
        listener.listen(content.decode(errors="replace").splitlines())
        listener.finish(failed=False)
        said.append(out.getvalue())
        log = folder / "agent.log"
        said.append(log.read_text() if log.exists() else "")
        log.unlink(missing_ok=True)
        erased = out.getvalue().replace("\x1b[J", "").split("\x1b[")
        assert all(part[:6].split("A")[0].isdigit() for part in erased[1:]), "the agent steers the terminal"
    return "\n".join(said).encode(errors="backslashreplace")


class _Screen(io.StringIO):
    def fileno(self) -> int:
        raise OSError("not a terminal")


def _facts() -> list[bytes]:
    return [gzip.decompress(path.read_bytes()) for path in sorted((DATA / "audit").glob("*.rtrec.gz"))]


def _read_facts(content: bytes, folder: Path) -> bytes:
    """The audit's answers; which request is asked, and which good checks lose what they read, the input decides."""
    number = zlib.crc32(content)
    requests = audit_promises.REQUESTS
    return audit_promises.check_promises(content, folder, requests[number % len(requests)], number)


TARGETS = (
    Target("record", _records, mutated_record, _read_record, 3),
    Target("comparison", _records, mutated_record, _read_compared, 2),
    Target("exports", lambda: _records() + _traces(), mutated_record, _export_record, 3),
    Target("histogram", tool_outputs, _plain, _read_histogram, 2),
    Target("trace", _traces, mutated_trace, _read_trace, 2),
    Target("trace-dat", _trace_files, _plain, _read_trace_file, 2),
    Target("profile", _toml_seeds(Path(profiles.__file__).parent), _plain, _read_profile),
    Target("article", _toml_seeds(Path(articles.__file__).parent), _plain, _read_article),
    Target("load", _toml_seeds(Path(loads.__file__).parent), _plain, _read_load),
    Target("run-json", lambda: [(GOOD_CELL / run_folder.INFO_NAME).read_bytes()], _plain, _read_run_info),
    Target("campaign-json", lambda: [(CAMPAIGN / "campaign.json").read_bytes()], _damaged_json, _read_campaign),
    Target("result-json", lambda: [(CAMPAIGN / "result.json").read_bytes()], _plain, _read_result),
    Target("lab-result", lambda: list(kept_inputs("lab-results").values()), _damaged_json, _read_lab_result),
    Target("audit", _facts, mutated_facts, _read_facts, 2),
    Target("packed", _packed_seeds, _damaged_words, _read_packed),
    Target("agent-lines", _agent_lines, _plain, _read_lines),
    *map(_reader, plugins.plugin_names(importers)),
)
