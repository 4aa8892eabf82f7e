# SPDX-License-Identifier: Apache-2.0
"""Which tests a set has, in which order they run, what they may write, and what the last lines say of skipped ones.

``--set short`` (``make test``) leaves out the marked tests and the files of ``LENGTHY``. ``--set repeatable``
(``make test-repeatable``, in CI) runs those of ``LENGTHY`` that a busy machine cannot fail: ``REPEATABLE``. Without
the option everything runs.

Those marked ``all_loads`` begin, in one process: they wait much and compute little, and look for what loads leave on
the whole machine. Beside them run those marked ``slow``, which start no load outside of a guest. The ordinary ones
follow, then those marked ``real``, beside which little else is left to run; at last those marked ``serial``, each
alone. A file goes to one process, because its tests share fixtures; one with ``real`` or ``serial`` tests, or with
single ``slow`` ones, is given out test by test.
"""

import fcntl
import functools
import importlib
import os
import re
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, nullcontext, suppress
from enum import IntEnum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes is the machine's business: others may load it.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


# A shell that starts the tests in the background has them ignore Ctrl-C, which many of them send themselves.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).parent.parent

# Container images like to forbid it, and each of the many processes that tests start would compile all modules anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))  # noqa: PTH111 - a user may have no home
if not os.access(next(place for place in (CACHE, *CACHE.parents) if place.exists()), os.W_OK):
    CACHE = ROOT / "build" / "cache"
    os.environ["XDG_CACHE_HOME"] = str(CACHE)

# No test makes or uses the user's key.
os.environ["XDG_STATE_HOME"] = str(ROOT / "build" / "state")

# A test with a cache of its own would otherwise have zig build the C library anew, which takes most of a minute.
os.environ.setdefault("ZIG_GLOBAL_CACHE_DIR", str(CACHE / "zig"))


MAY_WRITE = [
    *(os.path.realpath(place) for place in (tempfile.gettempdir(), "/var/tmp", CACHE)),
    *(os.path.realpath(ROOT / name) for name in ("build", ".hypothesis", ".pytest_cache", "tests/golden_outputs")),
    *("/dev", "/proc", "/sys"),
]
"""Below these folders the process of a test may open files for writing. What other programs open is not seen."""
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
REFUSED: list[str] = []


def _refuse_strange_writes(event: str, given: tuple[Any, ...]) -> None:
    """Stop a test that writes elsewhere: as root it would change the machine."""
    if event != "open" or "PYTEST_CURRENT_TEST" not in os.environ or not (given[2] or 0) & WRITING:
        return
    if not isinstance(given[0], str | bytes | os.PathLike):  # a descriptor, which was opened before
        return
    path = Path(os.path.realpath(os.fsdecode(given[0])))
    strange = "__pycache__" not in path.parts and not any(path.is_relative_to(place) for place in MAY_WRITE)
    if strange and path.parent.is_dir() and not path.is_dir():  # a folder is opened for a file without a name
        REFUSED.append(f"a test writes {path}, which is outside of its temporary folder")
        raise AssertionError(REFUSED[-1])


def _refuse_the_cache_before_tests(event: str, given: tuple[Any, ...]) -> None:
    """What tests there are must not depend on what the user's cache has, and pytest must find them without it."""
    reads = event in ("open", "os.listdir", "os.scandir") and isinstance(given[0], str | os.PathLike)
    if reads and "PYTEST_CURRENT_TEST" not in os.environ:
        path = Path(given[0]).absolute()
        assert not path.is_relative_to(CACHE / "rtproof"), f"{path} is read while pytest collects"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None, object, object]:
    """A test that caught the refusal fails nevertheless."""
    ended = yield
    refused = "\n".join(REFUSED)
    REFUSED.clear()
    assert not refused, refused
    return ended


sys.addaudithook(_refuse_strange_writes)
sys.addaudithook(_refuse_the_cache_before_tests)


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run a command that must refuse with exit code 2 and print nothing else; the one line that it says."""

    def refuse(*words: object) -> str:
        from rtproof.cli.main import main

        capsys.readouterr()
        assert main([str(word) for word in words]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n"), err.startswith("rtproof: ")) == ("", 1, True), err
        return err

    return refuse


class Kind(IntEnum):
    """In their order; of several marks the last one decides."""

    ALL_LOADS, SLOW, ORDINARY, REAL, SERIAL = range(5)


LENGTHY = {
    "guests in QEMU": (
        "agent_trace cli_guests cli_lab guest_explain guest_explain_own guest_explain_senders guest_modules "
        "guest_program_waits guest_recorder guest_traces guest_waits guests guests_turns lab_explain "
        "lab_manners lab_matrix lab_several_processors loads_in_guests profiles_in_guests targets trace_manners "
        "tuned_guests tuning_in_guests vm_edges vm_guest vm_hangs probe_app probe_cycle probe_gpio settings_cut_off "
        "settings_restored"
    ),
    "compilers besides the agent's own": "agents golden packaging",
    "a browser": "docs_site report_browser",
    "runs that measure": (
        "agent_app agent_conditions agent_ends agent_methods api_measured audit_targets cli_campaign cli_real cli_run "
        "cli_until docs_examples exec_probe faults application_runs kill_everything loads_measured "
        "loads_of_agent loads_singly outside_edges pair_session probe_ipc probe_latmon several_runs watched_run"
    ),
    "Debian's mirror": "lab_kernels lab_packages",
    "simulations and thousands of damaged records": (
        "claim_attacked comparison_tests core_files fuzz objections_injected record_damaged record_packed "
        "native_scan watch"
    ),
    "many processes": (
        "boards_attacked boards_lost boards_serial campaign_files checks_loads export_tools pytest_plugin tune_command"
    ),
}
"""Files that only ``make test-all`` runs, by what takes their time; names without ``test_`` and ``.py``."""
REPEATABLE = (
    "campaign_files claim_attacked cli_run comparison_tests core_files docs_site export_tools fuzz golden "
    "guest_explain guest_explain_own guest_recorder guest_waits kill_everything lab_explain lab_kernels lab_matrix "
    "native_scan objections_injected packaging record_damaged record_packed report_browser tune_command"
)
"""Of these, the files that CI runs, too: no clock of the machine decides what they assert."""
MARKED = re.compile(r"@pytest\.mark\.slow\b|\bmark\.(real|serial)\b")

HOW_TO_HAVE = (
    ("scheduling policy|real-time policies", "run it as root, or set the limit rtprio"),
    ("cannot keep the agent", "set XDG_CACHE_HOME to a folder that can be written"),
    ("chromium", "apt-get install chromium"),
    ("compiler|gcc|no cc", "apt-get install gcc libc6-dev"),
    ("qemu-system", "apt-get install qemu-system-x86 qemu-system-arm"),
    ("qemu-user|qemu-arm|is not installed .Debian: qemu", "apt-get install qemu-user-static"),
    ("kernel of Debian|cannot be had here|is not in the cache|no kernel", "rtproof lab kernels fetch NAME"),
    ("cyclictest|rt-tests", "apt-get install rt-tests"),
    (r"\broot\b|CAP_|mounted|namespace", "run it as root"),
    ("no program|there is no|lacks|is not installed|not on PATH", "make test-all installs what Debian has"),
)
"""What words in the reason of a skip say is missing, and what brings it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--set", choices=("short", "repeatable", "all"), default="all", help="see tests/conftest.py")
    parser.addoption("--update-golden", action="store_true", help="store what test_golden_outputs.py finds")


def pytest_configure(config: pytest.Config) -> None:
    os.environ["RTPROOF_TEST_SET"] = config.getoption("--set")
    if config.option.basetemp:
        MAY_WRITE.append(os.path.realpath(config.option.basetemp))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out a file of tests that the set does not have. A file that the command names is never asked about."""
    is_test = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    return True if is_test and not _has(config, collection_path) else None


def _has(config: pytest.Config, path: Path) -> bool:
    name = path.stem.removeprefix("test_")
    match config.getoption("--set"):
        case "short":
            return all(name not in names.split() for names in LENGTHY.values())
        case "repeatable":
            return name in REPEATABLE.split()
    return True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=_kind)
    if config.getoption("--set") == "short":
        left_out = [item for item in items if _kind(item) is not Kind.ORDINARY]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how many tests were skipped for what reason, and what brings the thing that was missing."""
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ").partition("\n")[0]
        for report in terminalreporter.stats.get("skipped", [])
    )
    for reason, count in reasons.most_common():
        how = next((how for words, how in HOW_TO_HAVE if re.search(words, reason)), "")
        terminalreporter.write_line(f"skipped {count}: {reason}{f'   ({how})' if how else ''}")
    if terminalreporter.config.getoption("--set") == "short":
        terminalreporter.write_line(f"left out: {', '.join(LENGTHY)}   (make test-all)")


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Share the compilation of all test modules: each process imports a part before it collects everything.

    Otherwise each of them compiles all of a new checkout at the same time, because none finds what another one is at.
    """
    here = Path(__file__).parent
    told: dict[str, Any] = getattr(session.config, "workerinput", {})
    if told and [Path(argument).resolve() for argument in session.config.args] == [here]:
        number, count = int(told["workerid"].removeprefix("gw")), int(told["workercount"])
        paths = [path for path in sorted(here.glob("test_*.py")) if _has(session.config, path)]
        for path in paths[number::count]:
            with suppress(Exception, pytest.skip.Exception):  # of which collecting it tells
                importlib.import_module(path.stem)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Share locks between processes, or have one alone, while a test runs; set-up and tear-down included.

    A serial test has the machine for itself. One with all loads has only the loads for itself.
    """
    kind = _kind(item)
    with (
        _locked(item, "tests.lock", alone=kind is Kind.SERIAL),
        nullcontext() if kind is Kind.SLOW else _locked(item, "loads.lock", alone=kind is Kind.ALL_LOADS),
    ):
        return (yield)


@contextmanager
def _locked(item: pytest.Item, name: str, *, alone: bool) -> Iterator[None]:
    place = item.config.rootpath / "build" / name
    try:
        place.parent.mkdir(exist_ok=True)
        place.touch()
    except OSError:  # a checkout that cannot be written
        place = Path(tempfile.gettempdir(), f"rtproof-{os.getuid()}-{name}")
    with place.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            path = nodeid.partition("::")[0]
            return nodeid if _is_spread(config.rootpath / path) else path

    config.option.loadscopereorder = False
    return Scheduling(config, log)


@functools.cache
def _is_spread(path: Path) -> bool:
    return MARKED.search(path.read_text(encoding="utf-8")) is not None


def _kind(item: pytest.Item) -> Kind:
    marked = (kind for kind in reversed(Kind) if item.get_closest_marker(kind.name.lower()))
    return next(marked, Kind.ORDINARY)
