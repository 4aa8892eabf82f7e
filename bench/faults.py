# SPDX-License-Identifier: Apache-2.0
"""``make faults``: let the n-th system call fail, and replay write logs; two tables, and failure if a promise broke.

docs/faults.md describes what must hold. ``--most`` limits how many calls of each kind fail, ``--states`` how many
states each log is read in.
"""

import argparse
import errno
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from crash_states import Replay, replay
from faulty_runs import (
    AGENT_FAULTS,
    AGENT_RUN,
    HEAD,
    HOST_FAULTS,
    LOADED,
    PLAIN,
    WITH_CHECKPOINTS,
    Fault,
    NoFaultsHereError,
    Tally,
    agent_subject,
    host_subjects,
    let_fail,
    run_faulty,
    tool,
)

from rtproof.agents.build import find_agent

LOGGED = {
    "two threads": (*AGENT_RUN, "--duration", "3s", "--checkpoint", "500ms", "--period", "200us"),
    "limits": (*AGENT_RUN, "--duration", "3s", "--checkpoint", "500ms", "--limit", "20us", "--limit", "1ms"),
    "summary": (*AGENT_RUN, "--duration", "3s", "--checkpoint", "500ms", "--record", "summary"),
}
"""Runs whose writes are replayed, by name."""
STATES_HEAD = (
    "| log | writes and cuts | flushes | states tried | of them different | before the first flush, unreadable "
    "| summaries made | findings |\n|---|---|---|---|---|---|---|---|"
)


def all_tallies(scratch: Path, most: int) -> Iterator[Tally]:
    """The rows of the first table, each as soon as it is known."""
    plain, loaded = agent_subject("agent", PLAIN), agent_subject("agent with loads", LOADED)
    several = agent_subject("agent with checkpoints", WITH_CHECKPOINTS)
    for kind, errors in AGENT_FAULTS.items():
        for error in errors:
            yield let_fail(plain, scratch, kind, error, most=most)
    for kind, error in (("clone", errno.EAGAIN), ("mmap", errno.ENOMEM), ("write", errno.EIO), ("open", errno.EMFILE)):
        yield let_fail(loaded, scratch, kind, error, most=most // 4)
    record_only = agent_subject("agent, its record only", PLAIN, own_paths=True)
    for kind, error in (
        ("write", errno.ENOSPC),
        ("write", errno.EIO),
        ("fdatasync", errno.EIO),
        ("open", errno.EMFILE),
    ):
        yield let_fail(record_only, scratch, kind, error, keep_on=True, most=most // 4)
    for kind, error in (("write", errno.ENOSPC), ("fdatasync", errno.EIO), ("fdatasync", errno.EINTR)):
        yield let_fail(several, scratch, kind, error, most=most // 4)
    for subject in host_subjects(scratch):
        for kind, errors in HOST_FAULTS.items():
            for error in errors:
                yield let_fail(subject, scratch, kind, error, most=most // 4)


def logged_run(scratch: Path, options: Sequence[str]) -> Path:
    """The log of all writes of the record of an agent's run."""
    record, log = scratch / "logged.rtrec", scratch / "log"
    record.unlink(missing_ok=True)
    end = run_faulty(scratch, (find_agent(), *options, "-o", record), Fault("write"), str(record), str(log))
    if end.exit_code != 0:
        raise NoFaultsHereError(f"the run to be logged failed: {end.said}")
    return log


def states_line(name: str, done: Replay) -> str:
    """A row of the second table."""
    return (
        f"| {name} | {done.steps - done.flushes} | {done.flushes} | {done.tried} | {done.different} "
        f"| {done.unreadable} | {done.analysed} | {len(done.findings)} |"
    )


def main(arguments: list[str]) -> int:
    """Print both tables; 1 if a promise broke, 2 if calls cannot be made to fail here."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=400)
    parser.add_argument("--states", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=13)
    asked = parser.parse_args(arguments)
    findings: list[str] = []
    try:
        tool()
        with tempfile.TemporaryDirectory(prefix="rtproof-faults-") as folder:
            scratch = Path(folder)
            print(HEAD)
            runs = 0
            for tally in all_tallies(scratch, asked.most):
                print(tally.line(), flush=True)
                runs += tally.runs
                findings += tally.findings
            print(f"\n{runs} runs\n\n{STATES_HEAD}")
            for name, options in LOGGED.items():
                done = replay(logged_run(scratch, options), scratch, asked.states, asked.seed)
                print(states_line(name, done), flush=True)
                findings += done.findings
    except NoFaultsHereError as reason:
        print(f"no faults can be made here: {reason}", file=sys.stderr)
        return 2
    print(f"\n{len(findings)} findings", *findings, sep="\n")
    return bool(findings)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
