# SPDX-License-Identifier: Apache-2.0
"""``rtproof explain`` for the user's own application: what it asks of the agent, refusals, and a real run."""

import os
import select
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import agent_process
import numpy as np
import pytest
from explain_cases import DUE_NS, VICTIM
from trace_dat_cases import PERIOD_NS, RETURNED_NS, sleeping, traced

from rtproof.core.errors import UserError
from rtproof.experiment import application_runs
from rtproof.experiment.application_runs import probe_words
from rtproof.experiment.stored_runs import is_foreign, open_run, with_threads
from rtproof.explain import foreign_records
from rtproof.explain.foreign_records import WantedThreads, wanted_in
from rtproof.explain.thread_activations import ThreadWalk, WatchedThread
from rtproof.explain.trace_events import TraceEvent
from rtproof.record import run_folder
from rtproof.record.contents import WHOLE_RUN, Fact, Moment, Record, SystemFile
from rtproof.summary import kernel_trace
from rtproof.summary.fields import aligned_fields
from rtproof.summary.target_threads import REAL_TIME_PATH

APP = Path(__file__).parent / "foreign_app.c"
GONE = 4_194_000


def asked(options: str, *files: SystemFile) -> Record:
    """A record of the probe: the trace of six sleeps, and no samples."""
    record = traced(sleeping((0, 0, 9_000, 0, 0, 0)))
    facts = (
        Fact(0, WHOLE_RUN, Moment.ASKED, "probe", "foreign"),
        Fact(0, WHOLE_RUN, Moment.ASKED, "probe_options", options),
    )
    return replace(record, facts=facts, files=(*record.files, *files), chunk_refs=())


def test_a_record_of_the_probe_gets_its_samples_when_it_is_opened() -> None:
    record = asked("thread=victim")
    assert is_foreign(record)
    found = with_threads(record)
    values = [int(value) for block in found.blocks(0) for value in block.values]
    assert values == [RETURNED_NS, RETURNED_NS, RETURNED_NS + 9_000, RETURNED_NS, RETURNED_NS, RETURNED_NS]
    assert found.end is not None
    assert found.end.totals[0].obtained == len(values)
    with pytest.raises(UserError, match="the trace has no thread 'other'"):
        with_threads(record, WantedThreads(("other",)))


def test_of_a_process_the_real_time_threads_are_taken() -> None:
    threads = b"50 100 FF 80 0 900 0-1 victim\n50 101 RR 10 0 900 0-1 second\n60 102 FF 1 0 9 0-1 other\n"
    listed = SystemFile(0, Moment.START, REAL_TIME_PATH, 0, False, threads)
    assert wanted_in(asked("pid=50", listed)) == WantedThreads(process=50)
    assert with_threads(asked("pid=50", listed)).end == with_threads(asked("tid=100")).end
    walk = ThreadWalk(0)
    walk.threads = {tid: WatchedThread(tid, priority=19 if tid in (101, 71) else 120) for tid in (50, 101, 70, 71, 102)}
    assert foreign_records._threads_of(50, walk, asked("pid=50", listed)) == (101,)
    walk.parents = {70: 50, 71: 70}
    assert foreign_records._threads_of(50, walk, asked("pid=50", listed)) == (71, 101)
    assert foreign_records._threads_of(70, walk, asked("pid=70")) == (71,)
    walk.threads[71].priority = 120
    assert foreign_records._threads_of(70, walk, asked("pid=70")) == (70, 71)
    assert wanted_in(asked("pid=50,thread=victim", listed)) == WantedThreads(("victim",))
    assert wanted_in(asked("tid=7+8+x", listed)) == WantedThreads((), (7, 8))


@pytest.mark.parametrize(
    ("pid", "names", "words"),
    [
        (GONE, (), f"there is no process {GONE}, or it has ended"),
        (None, ("a+b",), "'a\\+b' is no name of a thread"),
        (None, ("sixteen letters.",), "keeps 15 characters of it"),
        (os.getpid(), ("no such thread",), "there is no thread 'no such thread'"),
    ],
)
def test_threads_that_are_not_there_are_refused(pid: int | None, names: tuple[str, ...], words: str) -> None:
    with pytest.raises(UserError, match=words):
        probe_words(names, pid)


def test_a_process_that_has_ended_and_a_thread_are_refused_before() -> None:
    ended = os.posix_spawnp("true", ["true"], {})
    os.waitid(os.P_PID, ended, os.WEXITED | os.WNOWAIT)
    with pytest.raises(UserError, match=f"process {ended} has ended, and only waits for its parent"):
        probe_words((), ended)
    os.waitpid(ended, 0)
    told, ends = Event(), Event()

    def wait() -> None:
        told.set()
        ends.wait()

    thread = Thread(target=wait)
    thread.start()
    told.wait()
    tid = thread.native_id
    with pytest.raises(UserError, match=f"{tid} is a thread of process {os.getpid()}: give --thread {tid}"):
        probe_words((), tid)
    ends.set()
    thread.join()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "give a run, a trace.dat, --pid, --thread, --begin and --end, or -- and a program"),
        (["--pid", "4", "--begin", "marker:a"], "--begin and --end go together: give both"),
        (["--begin", "a", "--end", "marker:b"], "'a' is no mark: write marker:TEXT"),
        (["a", "--begin", "uprobe:none:f", "--end", "marker:b"], "is for a new trace"),
        (["a", "b"], "'b' is one argument too many: write -- in front of a program"),
        (["--pid", "4", "--", "./app"], "give one --pid"),
        (["--", "/no/such/program"], "cannot start /no/such/program: No such file or directory"),
    ],
)
def test_wrong_words_end_in_one_sentence(
    words: list[str], said: str, refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in refused("explain", *words)
    assert not list(tmp_path.iterdir())


def _is_gone(pid: int) -> bool:
    """Whether a process ends; it waits for that."""
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        ready, _, _ = select.select([handle], [], [], 180)
        os.close(handle)
        return bool(ready)
    return True


FAMILIES = {False: "echo $$; sleep 1000 & echo $!; echo all; wait", True: "echo $$; echo all; exec sleep 1000"}
"""A program with a child, and one without: it tells the numbers."""
KEEPING = """
import sys
from rtproof.experiment import application_runs
with application_runs._program(sys.argv[1:]) as program:
    program.begin()
    sys.stdin.read()
    print("ends", flush=True)
"""


@pytest.mark.parametrize("killed", [True, False])
def test_a_program_ends_with_rtproof_and_so_does_what_it_started(killed: bool) -> None:
    words = [sys.executable, "-c", KEEPING, "sh", "-c", FAMILIES[killed]]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as rtproof:
        assert rtproof.stdout is not None
        out = rtproof.stdout
        pids = [int(line) for line in iter(lambda: out.readline().strip(), "all")]
        assert len(pids) == 2 - killed
        assert all(Path(f"/proc/{pid}").exists() for pid in pids)
        if killed:
            rtproof.kill()
        rtproof.communicate(timeout=180)
    assert all(map(_is_gone, pids))


def test_a_program_begins_when_it_is_told_to(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    begun = tmp_path / "begun"
    with application_runs._program(("sh", "-c", f"echo $$ > {begun}; exit 3")) as program:
        assert program is not None
        assert Path(f"/proc/{program.pid}").exists()
        assert not begun.exists()
        program.begin()
        assert _is_gone(program.pid)
        assert begun.read_text() == f"{program.pid}\n"
        program.tell_end()
    assert capfd.readouterr().err == "rtproof: sh ended with exit code 3\n"
    with application_runs._program(("sleep", "1000")) as program:
        assert program is not None
    assert _is_gone(program.pid)


def test_a_program_that_cannot_be_started_is_told(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF")
    broken.chmod(0o755)
    with application_runs._program((str(broken),)) as program:
        assert program is not None
        program.begin()
        assert _is_gone(program.pid)
        with pytest.raises(UserError, match=r"cannot start .*: Exec format error"):
            program.tell_end()
    for name, why in ((tmp_path, "Is a directory"), (APP, "Permission denied"), ("no-such-program", "No such file")):
        with pytest.raises(UserError, match=why), application_runs._program((str(name),)):
            pass


@pytest.mark.parametrize(
    ("program", "filtered"),
    [("/opt/motion", "motion"), ("./äöü", "äöü"), ("./äöüäöüäöü", "4711"), ("./new\nline", "4711"), ("./1234", "4711")],
)
def test_a_program_whose_name_no_filter_can_have_is_filtered_by_its_number(program: str, filtered: str) -> None:
    assert application_runs._calls_of((), (program,), 4711) == [filtered]


def _built(folder: Path) -> Path:
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler called cc (Debian: apt-get install gcc libc6-dev)")
    program = folder / "foreign_app"
    subprocess.run(["cc", "-O2", "-o", program, APP, "-lpthread", "-lrt"], check=True)
    return program


FULL_DISK = """
mount -t tmpfs -o size=14m none "$1" && cd "$1" || exit 77
"$2" run -o r --probe foreign --trace explain,whole,keep_mib=5 --duration 600s --progress 500ms 2>told &
while ! grep -q ^tracing told; do kill -0 $! || exit 77; sleep 0.1; done
head -c 100m /dev/zero >fill 2>/dev/null
wait $!
code=$?
tail -n 1 told
rm fill
cp r "$3"
exit $code
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="a trace needs root: run the tests as root")
def test_a_full_disk_is_told_and_what_was_traced_is_kept(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    places = [str(each) for each in (tmp_path / "disk", agent_process.agent(), tmp_path / "r")]
    words = ["unshare", "-m", "sh", "-c", FULL_DISK, "sh", *places]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=900)
    if done.returncode == 77:
        pytest.skip("needs a kernel with tracefs, and unshare -m with a tmpfs: run as root outside of a container")
    assert (done.returncode, done.stdout) == (
        2,
        "rtproof-agent: no space was left for the record; the run ended early, what was written is whole\n",
    )
    record = run_folder.open_run(tmp_path / "r").record
    assert record.end is not None
    assert record.end.text == "no space is left for the trace"
    pages = int(kernel_trace.trace_information(record)["whole"].partition(",")[0].removeprefix("pages="))
    kept = [len(kernel_trace.trace_content(record, f"cpu{cpu}/raw")) for cpu in kernel_trace.trace_cpus(record)]
    assert pages * 4096 == sum(kept) > 0
    assert kernel_trace.task_names(record)


@pytest.mark.skipif(os.geteuid() != 0, reason="a trace needs root: run the tests as root")
def test_the_trace_tells_what_the_application_tells(tmp_path: Path) -> None:
    """The application begins once the trace is on. Its own figure is more by as much as it reads the clock later."""
    program, record = _built(tmp_path), tmp_path / "run.rtrec"
    words = (
        "--probe foreign:thread=app-timerfd --trace explain,whole,calls_of=app-timerfd --duration 600s --progress 1s"
    )
    agent = subprocess.Popen(
        [agent_process.agent(), "run", *words.split(), "-o", record], stderr=subprocess.PIPE, text=True
    )
    assert agent.stderr is not None
    said = ""
    for line in agent.stderr:
        said += line
        if line.startswith("progress"):
            break
    else:
        agent.wait()
        pytest.skip(f"needs a kernel with tracefs, as root outside of a container: {said}")
    told = subprocess.run([program, "timerfd", "200", "5000"], capture_output=True, text=True, check=True).stdout
    agent.send_signal(2)
    agent.communicate(timeout=300)
    found = open_run(record).record
    traced_ns = np.concatenate([block.values for block in found.blocks(0)])
    due_ns = np.concatenate([part.due_ns for part in aligned_fields(found, found.series[:1])])
    own_ns, read_ns = np.array([line.split() for line in told.splitlines()], np.int64).T
    returned_ns = due_ns + traced_ns + found.begin.origin_monotonic_ns
    at = np.searchsorted(read_ns, returned_ns)
    assert own_ns.size // 2 < at.size == np.unique(at).size
    more_ns = own_ns[at] - traced_ns - (read_ns[at] - returned_ns)
    assert more_ns.max() < 1000  # less where its timer had expired again meanwhile: it counts from the last time
    assert abs(np.median(more_ns)) < 1000
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".rtproof")]


def slept(number: int, *, began: bool = False, called: str = "victim") -> list[TraceEvent]:
    """Four sleeps of the thread with that number, from this period on, behind the event of a new thread."""
    cpu = sleeping((0, 0, 0, 0))
    shift_ns = number * 10 * PERIOD_NS
    new = [TraceEvent(DUE_NS - PERIOD_NS, 0, "sched_wakeup_new", 0, 0, 1, {"comm": called, "pid": VICTIM, "prio": 19})]
    renamed = [
        event._replace(
            time_ns=event.time_ns + shift_ns,
            values={
                key: called if value == "victim" else value + shift_ns if key in ("softexpires", "now") else value
                for key, value in event.values.items()
            },
        )
        for event in [*(new if began else ()), *cpu.events]
    ]
    return sorted(renamed, key=lambda event: event.time_ns)


def test_a_number_that_the_kernel_gives_again_is_another_thread() -> None:
    walk = ThreadWalk(0xFF)
    walk.walk([*slept(0), *slept(1, began=True, called="stranger")])
    first, second = (thread for thread in walk.every() if thread.tid == VICTIM)
    assert (first.name, len(first.wakings), second.name, len(second.wakings)) == ("victim", 4, "stranger", 4)
    wanted = WantedThreads(("victim",))
    assert wanted.has(first)
    assert not wanted.has(second)
