# SPDX-License-Identifier: Apache-2.0
"""Does a co-kernel run beside Linux? Then Linux's own threads were measured, and the co-kernel's tasks were not."""

from collections.abc import Iterator

from rtproof.analysis.checks.case import INVALID, WARNING, Case, Check, sentence_list
from rtproof.analysis.cokernels import core_beside, core_threads, mode_switches
from rtproof.analysis.kernel_config import kernel_config
from rtproof.analysis.model import Doubt
from rtproof.analysis.ownthreads import own_threads
from rtproof.analysis.phrases import quantity


def in_band(case: Case) -> Iterator[Doubt]:
    """rtproof measures threads of Linux. A co-kernel exists so that its tasks do not have to wait for Linux."""
    core = core_beside(case.record)
    if core:
        what = (
            f"in-band: {core} runs beside Linux, and what was measured is Linux's own thread; the co-kernel's tasks "
            "are not delayed by Linux and were not measured"
        )
        remedy = "measure the co-kernel's tasks with its own tool (Xenomai: latency; EVL: latmus; RTAI: latency)"
        yield Doubt("in-band", WARNING, what, remedy)


def core_unseen(case: Case) -> Iterator[Doubt]:
    """A kernel built with a co-kernel may run one that is switched off, or one that hides from the agent."""
    config = kernel_config(case.record)
    built = next((name for name in ("XENOMAI", "EVL") if config and config.has(name)), None)
    if config and built and not core_beside(case.record):
        what = (
            f"the kernel was built with a co-kernel (CONFIG_{built} in {config.path}), but neither /proc nor /sys "
            "shows one: whether a co-kernel runs beside Linux is not known"
        )
        remedy = "mount /proc and /sys on the target; or look for xenomai.state or evl.state among its boot options"
        yield Doubt("core-unseen", WARNING, what, remedy)


def core_tasks(case: Case) -> Iterator[Doubt]:
    """A task of the co-kernel delays every thread of Linux on its CPU: no priority of Linux is above it."""
    cpus, own = {summary.series.cpu for summary in case.summaries}, own_threads(case.record)
    rivals = [
        f"{thread.name} (PID {thread.process}, priority {thread.priority}, CPU {thread.cpu})"
        for thread in core_threads(case.record)
        if thread.before_linux and thread.process not in own and (thread.cpu in cpus or -1 in cpus)
    ]
    if rivals:
        what = (
            f"{quantity(len(rivals), 'task')} of the co-kernel could delay what was measured: {sentence_list(rivals)}"
        )
        yield Doubt(
            "core-tasks", WARNING, what, "stop the co-kernel's tasks, or move them to CPUs that are not measured"
        )


def mode_switching(case: Case) -> Iterator[Doubt]:
    """A thread of the co-kernel that calls Linux waits for Linux, so its latencies are of neither kernel."""
    own = own_threads(case.record)
    rises = [
        f"{each.thread} by {each.end - each.start:,}"
        for each in mode_switches(case.record)
        if each.start is not None and each.end is not None and each.end > each.start and each.process in own
    ]
    if rises:
        what = f"measured threads left the co-kernel for Linux: mode switches rose for {sentence_list(rises)}"
        yield Doubt("mode-switches", INVALID, what, "find the call of Linux in the measured loop, and measure again")


CHECKS: tuple[Check, ...] = (in_band, core_unseen, core_tasks, mode_switching)
