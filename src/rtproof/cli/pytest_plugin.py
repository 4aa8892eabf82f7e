# SPDX-License-Identifier: Apache-2.0
"""The plugin for pytest: a fixture ``rtproof`` that measures a target and judges it.

Only pytest imports this module, by the package's entry point. It imports nothing that takes long until a test measures,
because it is loaded into every run of pytest wherever rtproof is installed. docs/pytest.md is its manual.
"""

import re
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rtproof.cli.pytest_errors import LABGRID_FIXTURE, MeasurementError

if TYPE_CHECKING:
    from rtproof.cli.pytest_runs import RunResult

USUAL_TARGET = "local"
USUAL_FOLDER = "runs"


class InvalidRunError(MeasurementError):
    """The run did not measure what was asked, so it says nothing about the target. result: of the run."""

    def __init__(self, result: "RunResult") -> None:
        super().__init__(" ".join(result.lines()))
        self.result = result


_results = pytest.StashKey[list["RunResult"]]()
_PROPERTY = "rtproof"
_SAYS_NOTHING = re.compile(r"(AssertionError(: )?)?(assert False|assert not True|False is not true|True is not false)?")
"""The first line of an assertion's message that says no more than that it does not hold."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rtproof", "how late a target reacts (fixture rtproof)")
    group.addoption("--rtproof-target", metavar="NAME", help=f"where to measure, or {LABGRID_FIXTURE}")
    group.addoption(
        "--rtproof-target-option",
        metavar="KEY=VALUE",
        action="append",
        help="an option of the target; may be repeated; those of the ini file do not count then",
    )
    group.addoption("--rtproof-output", metavar="FOLDER", help="folder for the runs")
    parser.addini("rtproof_target", f"where the fixture rtproof measures (default {USUAL_TARGET})")
    parser.addini("rtproof_target_options", "options of the target, KEY=VALUE, one a line", type="linelist")
    parser.addini("rtproof_output", f"folder for the runs (default {USUAL_FOLDER}, beside the ini file)")


class Rtproof:
    """What the fixture gives. target: a name; options: of the target, KEY=VALUE; output: the folder for the runs."""

    def __init__(self, item: pytest.Item, target: str, options: Sequence[str], output: Path, board: Any) -> None:
        self.target = target
        self.options = tuple(options)
        self.output = output
        self._item = item
        self._labgrid_target = board

    def __repr__(self) -> str:
        return f"<rtproof on {self.target}>"

    def run(self, **options: Any) -> "RunResult":
        """Measure and judge. The options are those of ``rtproof run``, with _ for -.

        MeasurementError if nothing was measured that could be judged; InvalidRunError if the run is INVALID.
        """
        __tracebackhide__ = True
        from rtproof.cli import pytest_runs
        from rtproof.core.defects import error_sentence

        try:
            words = (self.target, *self.options)
            result, failure = pytest_runs.measure(words, self.output, self._item.nodeid, options, self._labgrid_target)
        except Exception as error:
            raise MeasurementError(pytest_runs.usage_sentence(error) or error_sentence(error)) from None
        self._keep(result)
        if result.interrupted:
            raise KeyboardInterrupt
        if failure:
            raise MeasurementError(failure)
        if result.invalid:
            raise InvalidRunError(result)
        return result

    def _keep(self, result: "RunResult") -> None:
        """For the report of the test. The figures of a test's second run have names of their own in JUnit's file."""
        results = self._item.stash.setdefault(_results, [])
        results.append(result)
        which = f"_{len(results)}" if len(results) > 1 else ""
        self._item.user_properties.extend((f"{_PROPERTY}{which}_{name}", text) for name, text in result.properties())


@pytest.fixture
def rtproof(request: pytest.FixtureRequest) -> Rtproof:
    """Measures the target that --rtproof-target or the ini file names, and judges it: see docs/pytest.md of rtproof."""
    config = request.config
    asked, given = config.getoption("--rtproof-target"), config.getoption("--rtproof-target-option")
    target = asked or config.getini("rtproof_target") or USUAL_TARGET
    # Options of the ini file are those of the ini file's target.
    options = given or ([] if asked else config.getini("rtproof_target_options"))
    typed, stored = config.getoption("--rtproof-output"), config.getini("rtproof_output") or USUAL_FOLDER
    output = config.invocation_params.dir / typed if typed else config.rootpath / stored
    board = _labgrid_target(request) if target == LABGRID_FIXTURE else None
    return Rtproof(request.node, target, options, output, board)


def _labgrid_target(request: pytest.FixtureRequest) -> Any:
    """labgrid's own, which its options bind to a board; labgrid skips the test without them."""
    try:
        return request.getfixturevalue("target")
    except pytest.FixtureLookupError:
        pytest.fail(f"the target {LABGRID_FIXTURE} needs labgrid's fixture 'target': install labgrid", pytrace=False)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """Say of a test that failed what its runs showed, and turn the failure of a measurement into an error.

    A fixture of the test may have measured as well, before the test or after it.
    """
    outcome = yield
    if call.excinfo is None:
        return
    report: pytest.TestReport = outcome.get_result()
    if not report.failed:
        return
    if isinstance(call.excinfo.value, MeasurementError):
        if report.when == "call":
            # The phase is what pytest and JUnit's file tell an error of the test's surroundings by.
            report.when = "setup"
        _set_message(report, str(call.excinfo.value))
    elif isinstance(call.excinfo.value, AssertionError):
        _tell(report, item.stash.get(_results, []))


def _tell(report: pytest.TestReport, results: list["RunResult"]) -> None:
    if others := [each for each in results if not (each.held or each.proven)]:
        _set_message(report, others[-1].sentence, only_if_empty=True)
    if results:
        text = "\n".join(line for each in results for line in each.lines())
        if add := getattr(report.longrepr, "addsection", None):
            add("rtproof", text, "-")


def _set_message(report: pytest.TestReport, message: str, *, only_if_empty: bool = False) -> None:
    """The line that the summary and JUnit's file show. only_if_empty: keep a message that gives a reason."""
    place = getattr(report.longrepr, "reprcrash", None)
    if place is None:
        return
    if not only_if_empty or _SAYS_NOTHING.fullmatch(place.message.partition("\n")[0]):
        place.message = message
