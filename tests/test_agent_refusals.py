# SPDX-License-Identifier: Apache-2.0
"""What the real agent refuses: one sentence, exit code 2, and no file; and what it does without privilege."""

import errno
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import agent_process
import pytest
import recompute
import refused_calls
from agent_process import needs_root, whole

from rtproof.record.contents import Moment

SHORT = ("--samples", "100", "--warmup", "20ms")


def user(capabilities: str) -> tuple[str, ...]:
    """Becomes a user that has no other process, with these capabilities only."""
    asked = f"-all{capabilities}"
    return (
        "setpriv", "--reuid=61234", "--regid=61234", "--clear-groups",
        f"--inh-caps={asked}", f"--ambient-caps={asked}", f"--bounding-set={asked}",
    )  # fmt: skip


NOBODY = ("prlimit", "--rtprio=0", *user(""))


def refusal(*arguments: str | Path, prefix: tuple[str, ...] = ()) -> str:
    """The one sentence on standard error."""
    done = agent_process.run(*arguments, prefix=prefix)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("rtproof-agent: ")
    assert done.stderr.count("\n") == 1
    assert done.stderr.endswith("\n")
    return done.stderr.removeprefix("rtproof-agent: ").rstrip("\n")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--nope", "unknown option '--nope'"),
        ("--policy other --priority 5", "policy other has no priority"),
        ("--load cpu:speed=1", "load 'cpu' has no option 'speed'"),
    ],
)
def test_bad_options_get_one_sentence_and_leave_no_file(tmp_path: Path, options: str, sentence: str) -> None:
    assert sentence in refusal("run", "-o", tmp_path / "record", "--samples", "10", *options.split())
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "record"
    path.write_text("precious")
    assert "exists already" in refusal("run", "-o", path, *SHORT)
    assert path.read_text() == "precious"


def test_a_cpu_that_the_kernel_refuses_is_named() -> None:
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        pytest.skip("there is only one CPU")
    prefix = ("taskset", "-c", str(allowed[0]), *refused_calls.prefix(errno.EPERM, "sched_setaffinity"))
    why = f"the kernel does not let this process use CPU {allowed[1]}: Operation not permitted"
    asked = ("run", "-o", "/nowhere", "--samples", "10")
    assert refusal(*asked, "--cpus", str(allowed[1]), prefix=prefix) == why
    load = f"cpu@{allowed[1]}"
    assert refusal(*asked, "--load", load, prefix=prefix) == f"load {load}: {why}"


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder with the agent in it that everybody may use."""
    folder = Path(tempfile.mkdtemp(prefix="rtproof-open-"))
    try:
        folder.chmod(0o777)
        shutil.copy(agent_process.agent(), folder / "agent")
        (folder / "agent").chmod(0o755)
        yield folder
    finally:
        shutil.rmtree(folder)


def run_as(prefix: tuple[str, ...], folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*prefix, str(folder / "agent"), "run", "-o", str(folder / "record"), *SHORT, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=agent_process.PATIENCE_S, check=False)


@needs_root
@pytest.mark.parametrize("policy", ["fifo", "rr", "deadline"])
def test_without_privilege_a_real_time_policy_is_refused(open_folder: Path, policy: str) -> None:
    done = run_as(NOBODY, open_folder, "--policy", policy)
    assert done.returncode == 2
    assert re.fullmatch(
        rf"rtproof-agent: policy {policy}( at priority 80)? was refused \(Operation not permitted\): "
        r"it needs root, .*; --allow-unprivileged measures without it\n",
        done.stderr,
    )
    assert not (open_folder / "record").exists()


@needs_root
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="there is one CPU, and it can't be left out")
def test_a_deadline_with_too_few_cpus_says_what_it_needs(open_folder: Path) -> None:
    done = run_as(("taskset", "-c", str(min(os.sched_getaffinity(0)))), open_folder, "--policy", "deadline")
    assert done.returncode == 2
    assert "the use of all CPUs" in done.stderr
    assert not (open_folder / "record").exists()


@needs_root
@pytest.mark.serial
@pytest.mark.parametrize("policy", ["fifo", "rr", "deadline"])
def test_without_privilege_the_record_says_what_was_asked_and_what_was_had(open_folder: Path, policy: str) -> None:
    done = run_as(NOBODY, open_folder, "--policy", policy, "--allow-unprivileged")
    assert done.returncode == 0
    assert done.stderr.startswith(f"rtproof-agent: the threads run without real time: policy {policy} was refused (")
    record = whole(open_folder / "record")
    assert record.fact("policy") == policy
    assert record.fact("allow_unprivileged") == "yes"
    for series in record.series:
        for moment in (Moment.START, Moment.END):
            assert record.fact("policy", moment, series.thread) == "other"
            assert record.fact("priority", moment, series.thread) == "0"
    dma_latency = record.fact("dma_latency", Moment.START)
    assert dma_latency
    assert dma_latency.startswith("unavailable: ")
    recompute.check(record)
