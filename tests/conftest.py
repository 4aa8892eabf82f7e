# SPDX-License-Identifier: Apache-2.0
"""In which order tests run, and beside which others, whatever xdist spreads over processes.

Those marked ``all_loads`` begin, in one process: they wait much and compute little, and look for what loads leave on
the whole machine. Beside them run those marked ``slow``, which start no load outside of a guest. The ordinary ones
follow, then those marked ``real``, beside which little else is left to run; at last those marked ``serial``, each
alone. A file goes to one process, because its tests share fixtures; one with ``real`` or ``serial`` tests, or with
single ``slow`` ones, is given out test by test.

``--quick`` (``make test-quick``) leaves out the marked tests and the files of ``LENGTHY``.
"""

import fcntl
import functools
import importlib
import os
import re
import signal
import sys
from collections.abc import Generator, Iterator
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

# Container images like to forbid it, and each of the many processes that tests start would compile all modules anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A test with a cache of its own would otherwise have zig build the C library anew, which takes most of a minute.
os.environ.setdefault("ZIG_GLOBAL_CACHE_DIR", str(Path.home() / ".cache" / "zig"))


class Kind(IntEnum):
    """In their order; of several marks the last one decides."""

    ALL_LOADS, SLOW, ORDINARY, REAL, SERIAL = range(5)


LENGTHY = {
    "guests in QEMU": (
        "agent_trace cli_guests cli_lab conftest guest_modules guest_traces guests lab_matrix loads_in_guests "
        "probe_app probe_cycle probe_gpio profiles_in_guests targets trace_manners vm_edges vm_guest"
    ),
    "compilers besides the agent's own": "agents golden packaging tools",
    "a browser": "docs_site report_browser",
    "runs that measure": (
        "agent_app agent_arm agent_conditions agent_ends agent_methods cli_campaign cli_real cli_run cli_until faults "
        "loads_measured loads_of_agent loads_singly probe_ipc profile_real several_runs"
    ),
    "Debian's mirror": "lab_kernels lab_packages",
    "simulations and thousands of damaged records": (
        "bench_stats claim_attacked comparison_tests core_files fuzz objections_injected record_damaged record_packed "
        "native_scan report_campaign report_campaign_rows report_formats summary_series watch"
    ),
    "many processes": "campaign_files cli_compare checks_loads export_text export_tools pytest_plugin boards_serial",
}
"""Files that ``--quick`` leaves out, by what takes their time; names without ``test_`` and ``.py``."""
MARKED = re.compile(r"@pytest\.mark\.slow\b|\bmark\.(real|serial)\b")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="leave out what takes long: see LENGTHY in tests/conftest.py")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=_kind)
    if config.getoption("--quick"):
        lengthy = {f"test_{name}.py" for names in LENGTHY.values() for name in names.split()}
        left_out = [item for item in items if _kind(item) is not Kind.ORDINARY or item.path.name in lengthy]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Share the compilation of all test modules: each process imports a part before it collects everything.

    Otherwise each of them compiles all of a new checkout at the same time, because none finds what another one is at.
    """
    here = Path(__file__).parent
    told: dict[str, Any] = getattr(session.config, "workerinput", {})
    if told and [Path(argument).resolve() for argument in session.config.args] == [here]:
        number, count = int(told["workerid"].removeprefix("gw")), int(told["workercount"])
        for path in sorted(here.glob("test_*.py"))[number::count]:
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
    place = item.config.rootpath / "build"
    place.mkdir(exist_ok=True)
    with (place / name).open("w") as lock:
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
