# SPDX-License-Identifier: Apache-2.0
"""Run folders: never over another, whole or not at all, and one sentence for what is wrong with them."""

import gzip
import io
import json
import os
import shutil
import tarfile
import zipfile
from pathlib import Path

import msgspec
import pytest
import record_cases as cases
from run_folders import latencies, write_run

from rtproof import exporters
from rtproof.cli.main import main
from rtproof.core import plugins
from rtproof.core.errors import RecordError, UserError
from rtproof.record import file_kinds, run_folder
from rtproof.record.run_folder import RequirementInfo, RunInfo
from rtproof.report import formats

INFO = RunInfo(
    command=["rtproof", "run", "--limit", "500us"],
    started="2026-01-02T03:04:05+01:00",
    host="bench",
    user="me",
    rtproof_version="0.1.0",
    agent_sha256="ab" * 32,
    agent_arch="x86_64",
    target="local",
    requirements=[RequirementInfo(limit_ns=500_000, at_most_ns=3_600_000_000_000, confidence=0.95)],
    note="before the BIOS update",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = run_folder.create_run_folder(tmp_path / "runs" / "one")
    cases.write_small(made / run_folder.RECORD_NAME)
    return made


def test_round_trip(folder: Path) -> None:
    run_folder.write_run_info(folder, INFO)
    run = run_folder.open_run(folder)
    assert run.info == INFO
    assert run.record.begin == cases.BEGIN
    assert sorted(place.name for place in folder.iterdir()) == ["run.json", "run.rtrec"]


def test_run_json_can_be_read_by_anybody(folder: Path) -> None:
    run_folder.write_run_info(folder, msgspec.structs.replace(INFO, requirements=[]))
    content = json.loads((folder / run_folder.INFO_NAME).read_text())
    assert content["schema_version"] == 3
    assert content["requirements"] == []
    assert content["command"] == INFO.command


def test_words_that_are_no_characters_are_kept_as_far_as_they_are(folder: Path) -> None:
    command = ["rtproof", "run", "--note", "gr\udcfcn"]
    run_folder.write_run_info(folder, msgspec.structs.replace(INFO, command=command, note=command[-1]))
    info = run_folder.read_run_info(folder)
    assert info is not None
    assert (info.command[-1], info.note) == ("gr?n", "gr?n")


def test_the_requirement_of_schema_1_is_read(folder: Path) -> None:
    run_folder.write_run_info(folder, INFO)
    place = folder / run_folder.INFO_NAME
    content = json.loads(place.read_text())
    (first,) = content.pop("requirements")
    del first["gap_ns"]
    place.write_text(json.dumps({**content, "schema_version": 1, "requirement": first}))
    info = run_folder.open_run(folder).info
    assert info is not None
    assert info.requirements == INFO.requirements
    place.write_text(json.dumps({**content, "schema_version": 1, "requirement": None}))
    info = run_folder.open_run(folder).info
    assert info is not None
    assert info.requirements == []


def test_a_record_alone(folder: Path) -> None:
    run_folder.write_run_info(folder, INFO)
    run = run_folder.open_run(folder / run_folder.RECORD_NAME)
    assert run.info is None
    assert run.record.begin == cases.BEGIN


def test_a_folder_without_run_json(folder: Path) -> None:
    assert run_folder.open_run(folder).info is None


def test_never_over_another(folder: Path) -> None:
    with pytest.raises(UserError, match="exists already"):
        run_folder.create_run_folder(folder)
    run_folder.write_run_info(folder, INFO)
    with pytest.raises(UserError, match="exists already"):
        run_folder.write_run_info(folder, msgspec.structs.replace(INFO, note="other"))
    assert run_folder.open_run(folder).info == INFO


def test_where_no_folder_can_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="Not a directory"):
        run_folder.create_run_folder(tmp_path / "file" / "run")


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        run_folder.write_run_info(tmp_path / "gone", INFO)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", no_space)
        with pytest.raises(UserError, match="No space left"):
            run_folder.write_run_info(tmp_path, INFO)
    assert list(tmp_path.iterdir()) == []


def no_space(_: int) -> None:
    raise OSError(28, "No space left on device")


def test_no_run_folder(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"has no run\.rtrec"):
        run_folder.open_run(tmp_path)
    with pytest.raises(RecordError, match="No such file"):
        run_folder.open_run(tmp_path / "missing")


@pytest.mark.parametrize("confidence", [0, 0.4999, 1, 1.5, -1])
def test_a_requirement_that_nothing_can_be_tested_with(confidence: float, folder: Path) -> None:
    with_requirement(folder, confidence=confidence)
    with pytest.raises(UserError, match=r"is not a file that a run writes: .*confidence"):
        run_folder.open_run(folder)


@pytest.mark.parametrize("name", ["limit_ns", "at_most_ns", "gap_ns"])
@pytest.mark.parametrize("length", [0, -1, 2**63, 10**30])
def test_a_length_of_a_requirement_that_can_not_be(name: str, length: int, folder: Path) -> None:
    with_requirement(folder, **{name: length})
    with pytest.raises(UserError, match=rf"is not a file that a run writes: .*{name}"):
        run_folder.open_run(folder)


def with_requirement(folder: Path, **changes: float) -> None:
    """A run.json that somebody has changed by hand."""
    run_folder.write_run_info(folder, INFO)
    place = folder / run_folder.INFO_NAME
    content = json.loads(place.read_text())
    content["requirements"][0].update(changes)
    place.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is not a file that a run writes"),
        (b"[]", "is not a file that a run writes"),
        (b'{"schema_version": 1}', "is not a file that a run writes"),
        (b'{"schema_version": 1, "command": "\xff"}', "is not a file that a run writes"),
        (b'{"schema_version": 4, "everything": "else"}', "has schema 4, and this version reads up to 3"),
    ],
    ids=["empty", "list", "too little", "bytes", "newer"],
)
def test_wrong_run_json(content: bytes, sentence: str, folder: Path) -> None:
    (folder / run_folder.INFO_NAME).write_bytes(content)
    with pytest.raises(UserError, match=sentence) as caught:
        run_folder.open_run(folder)
    assert "\n" not in str(caught.value)


# A file that is no run is refused by its name, with what to give in its place.


DATA = Path(__file__).parent / "data"


def rt_tests(program: str) -> bytes:
    """The head of what a program of rt-tests writes with --json."""
    told = {"file_version": 1, "cmdline:": f"{program} -q --json=x.json", "rt_test_version:": "2.40", "num_threads": 1}
    return json.dumps(told, indent=2).encode()


def archive() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("x"))
    return packed.getvalue()


def zipped() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("x", "x")
    return packed.getvalue()


OTHERS = {
    "ELF": b"\x7fELF" + bytes(1_000),
    "gunzip": gzip.compress(b"RTP"),
    "unzip": zipped(),
    "tar -x": archive(),
    "perf.data": b"PERFILE2" + bytes(100),
    "HTML page": b"<!DOCTYPE html>\n<html><title>x</title></html>",
    "PDF": b"%PDF-1.7\n",
    "rteval": b'<results><rteval version="3.7">',
    "rtla timerlat": b"                                     Timer Latency\n  0 00:00:01   |   IRQ Timer Latency (us)\n",
    "rtla osnoise": b"                                          Operating System Noise\n",
    "hackbench": b"Running in process mode with 10 groups using 40 file descriptors each\nTime: 0.123\n",
    "hwlatdetect": b"Max Latency: Below threshold\nSamples recorded: 0\nSamples exceeding threshold: 0\n",
    "rt-tests' oslat": b"oslat V 2.40\nTotal runtime: 10 seconds\n",
    "stress-ng": b"---\nsystem-info:\n      stress-ng-version: 0.15.06\n",
    "log of rt-app": b"#idx\tperf\trun\tperiod\n0\t2500\t47\t9892\n",
    "task set of rt-app": b'{"tasks":{"t0":{"loop":10}}}',
    "latmus": b"# test started on: Fri Nov 20 2026\n# sampling period: 1000 microseconds\n",
    "RTAI": b"## RTAI latency calibration tool ##\n# period = 100000 (ns)\n",
    "trace of the kernel": b"# tracer: nop\n#\n",
    "rt-migrate-test": b"Iter: 0\nParent pid: 4\n Task 0 (prio 2) (pid 5):\n   Max: 3 us\n",
    "cyclictest without figures": b"# /dev/cpu_dma_latency set to 0us\n",
    "JSON of an unknown form": b'{"a": 1}',
    "not a record": b"some words\n",
    "rt-tests' pi_stress": rt_tests("pi_stress"),
}


def refusal(path: Path, capsys: pytest.CaptureFixture[str], *command: str) -> str:
    capsys.readouterr()
    assert main([*(command or ("show",)), str(path)]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    return err


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("command", ["show", "report", "export"])
def test_a_file_of_another_tool_is_named(
    name: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x"
    file.write_bytes(OTHERS[name])
    said = refusal(file, capsys, command, *(["--format", "csv"] if command == "export" else []))
    assert said.startswith(f"rtproof: {file} is ")
    assert name in said
    assert "what can be read: a run folder, a record (.rtrec), " in said
    assert all(f" {tool}, " in said for tool in ("cyclictest", "cyclictest --json", "jitterdebugger"))


@pytest.mark.parametrize("name", [name for name in OTHERS if name != "not a record"])
def test_each_is_told_apart_by_its_own_row(name: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(OTHERS[name])
    assert name in file_kinds.advice(tmp_path / "x")


@pytest.mark.parametrize("form", plugins.plugin_names(formats))
def test_a_report_of_ours_names_the_run_to_give(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "a", latencies(1, 1_000))
    assert main(["report", str(run), "--format", form]) == 0
    report = Path(capsys.readouterr().out.strip())
    said = refusal(report, capsys)
    assert "of rtproof" in said
    assert f"give the run it was made from, {run};" in said
    shutil.rmtree(run)
    run.write_text("words")
    assert "give the run folder or the record that it was made from" in refusal(report, capsys)


@pytest.mark.parametrize("form", ["csv", "bins", "hdr", "parquet"])
def test_an_export_of_ours_names_the_run_to_give(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "a", latencies(1, 1_000))
    output = tmp_path / f"a{plugins.load_plugin(exporters, form).SUFFIX}"
    assert main(["export", str(run), "--format", form, "--output", str(output)]) == 0
    assert f"give the run it was made from, {run};" in refusal(output, capsys)


def test_the_json_of_a_run_and_what_lies_in_its_folder_name_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "a", latencies(1, 1_000))
    assert main(["show", str(run), "--json"]) == 0
    (tmp_path / "analysis.json").write_text(capsys.readouterr().out)
    assert "a result of rtproof in JSON" in refusal(tmp_path / "analysis.json", capsys)
    said = refusal(run / "run.json", capsys)
    assert "(run.json)" in said
    assert f"made from, {run};" in said


def test_jitterdebuggers_other_file_names_the_one_that_can_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "samples.raw").write_bytes(b"\xff" * 280)
    assert "samples in none of their forms" in refusal(tmp_path / "samples.raw", capsys)


def test_a_histogram_where_a_run_is_needed_says_who_reads_it(capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(DATA / "cyclictest" / "histogram.txt", capsys, "export", "--format", "csv")
    assert "is the output of cyclictest, a histogram: show, report, judge, compare and history read it" in said


def test_what_is_neither_is_still_a_broken_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.rtrec").write_bytes(b"RTP\x1a" + bytes(100))
    assert "is not a record: it has no valid BEGIN chunk; what can be read: " in refusal(tmp_path / "x.rtrec", capsys)
