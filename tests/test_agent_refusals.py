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
from agent_process import needs_fifo, needs_root, whole

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
THREE_THREADS = ("prlimit", "--nproc=3", *user(",+sys_nice"))


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
        ("-x", "unknown option '-x'"),
        ("--period 0us", "--period takes a number with a unit"),
        ("--period 5us", "at least 10 us"),
        ("--period 1000", "not '1000'"),
        ("--period", "option '--period' needs a value"),
        ("--duration 0s", "--duration takes a number with a unit"),
        ("--duration 1s", "one of --duration and --samples"),
        ("--samples many", "--samples takes a whole number from 1"),
        ("--warmup soon", "--warmup takes a number with a unit"),
        ("--cpus 0-", "--cpus takes a list such as 0-3,5"),
        ("--cpus 4000", "there is no CPU 4000 on this machine"),
        ("--threads 0", "--threads takes a whole number from 1"),
        ("--policy best", "--policy takes fifo, rr, other or deadline"),
        ("--priority 0", "--priority takes a whole number from 1 to 99"),
        ("--policy other --priority 5", "policy other has no priority"),
        ("--policy deadline --cpus 0", "policy deadline can't be bound to CPUs"),
        ("--policy deadline --period 50us", "at least 100 us"),
        ("--method sleep", "probe 'timer' has no method 'sleep'"),
        ("--method setitimer --threads 2", "one thread only"),
        ("--probe scope", "there is no probe 'scope'"),
        ("--phase odd", "--phase takes a number with a unit"),
        ("--dma-latency low", "--dma-latency takes a whole number from 0"),
        ("--record all", "--record takes samples or summary"),
        ("--checkpoint 1ms", "--checkpoint takes a number with a unit"),
        ("--progress 1ms", "--progress takes a number with a unit"),
        ("--trace-blocks 1ms", "--trace-blocks takes a number with a unit"),
        ("--trace", "option '--trace' needs a value"),
        ("--load network", "there is no load 'network'"),
        ("--load cpu:speed=1", "load 'cpu' has no option 'speed'"),
        ("20s", "run takes options only, not '20s'"),
    ],
)
def test_bad_options_get_one_sentence_and_leave_no_file(tmp_path: Path, options: str, sentence: str) -> None:
    assert sentence in refusal("run", "-o", tmp_path / "record", "--samples", "10", *options.split())
    assert list(tmp_path.iterdir()) == []


def test_a_record_must_go_somewhere() -> None:
    assert "no place for the record" in refusal("run", "--samples", "10")


def test_unknown_commands_are_refused() -> None:
    assert refusal("measure") == "unknown command; see rtproof-agent help"


def test_a_file_that_is_there_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "record"
    path.write_text("precious")
    assert "exists already" in refusal("run", "-o", path, *SHORT)
    assert path.read_text() == "precious"


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    sentence = refusal("run", "-o", tmp_path / "no" / "record", *agent_process.policy(), *SHORT)
    assert sentence.endswith("can't be written: No such file or directory")


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


def test_a_cpu_that_is_not_there_is_named() -> None:
    asked = ("run", "-o", "/nowhere", "--samples", "10")
    assert refusal(*asked, "--cpus", "4095") == "there is no CPU 4095 on this machine"
    assert refusal(*asked, "--load", "mmap@4095") == "load mmap@4095: there is no CPU 4095 on this machine"


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
def test_marks_in_the_trace_need_root(open_folder: Path) -> None:
    done = run_as(NOBODY, open_folder, "--policy", "other", "--probe", "app:work=outputs,marks=yes")
    assert done.returncode == 2
    assert done.stderr.startswith("rtproof-agent: marks can't be written to the kernel's trace, which needs root and")
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
    assert (done.returncode, done.stderr) == (0, "")
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


@needs_root
@pytest.mark.serial
def test_a_limit_on_priorities_is_privilege_enough(open_folder: Path) -> None:
    """The guard then has no higher priority than the threads that it watches."""
    raised = ("prlimit", "--rtprio=30")
    if subprocess.run([*raised, "true"], capture_output=True, check=False).returncode:
        pytest.skip("the limit on priorities can't be raised here (CAP_SYS_RESOURCE)")
    done = run_as((*raised, *user("")), open_folder, "--priority", "30")
    assert (done.returncode, done.stderr) == (0, "")
    record = whole(open_folder / "record")
    assert record.fact("policy", Moment.END, 0) == "fifo"
    assert record.fact("guard", Moment.START) == "fifo 30, twice a second"


@pytest.mark.serial  # others of the same user would take the threads that it may have
@needs_root
@needs_fifo
@pytest.mark.parametrize(
    ("threads", "sentence"),
    [
        ("2", "the guard that protects the machine could not be started: Resource temporarily unavailable"),
        ("3", "thread 2 could not be started: Resource temporarily unavailable"),
    ],
)
def test_without_all_its_threads_it_measures_nothing(open_folder: Path, threads: str, sentence: str) -> None:
    """Three are allowed, the main one among them."""
    done = run_as(THREE_THREADS, open_folder, "--threads", threads)
    assert (done.returncode, done.stderr) == (2, f"rtproof-agent: {sentence}\n")
    assert not (open_folder / "record").exists()
