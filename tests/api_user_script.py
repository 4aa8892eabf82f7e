# SPDX-License-Identifier: Apache-2.0
"""A script of a user of the Python API, as ``mypy --strict`` sees it (``make lint``); test_api.py runs it."""

import sys
from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import rtproof
from rtproof import Archive, Comparison, Figures, RtproofError, Run, State, Verdict


def latest_ns(run: Run) -> int | None:
    """The largest latency of a run."""
    figures: Figures = run.summary().pooled
    assert_type(figures.max_ns, int | None)
    return figures.max_ns


def proven(run: Run) -> bool:
    """Whether 500 us hold."""
    verdict = run.verdict("500us", at_most="1/h", longest=600_000_000_000, fixed_beforehand=True)
    assert_type(verdict, Verdict)
    return verdict.state is State.PROVEN


def share_above(run: Run, limit_ns: int) -> float:
    """The share of the activations that ran that were later than a limit, read piece by piece."""
    above = n = 0
    for chunk in run.samples(view="observed").chunks():
        assert_type(chunk.latency_ns, NDArray[np.int64])
        above += int((chunk.latency_ns > limit_ns).sum())
        n += len(chunk)
    return above / n


def measure(seed: int, folder: str) -> Run:
    """A run of a simulated system."""
    return rtproof.run(
        target="simulated", target_options={"seed": seed}, record="samples", duration="1s", output=f"{folder}/{seed}"
    )


def main(folder: str) -> None:
    """Measure, and look at what is there."""
    fresh = measure(1, folder)
    archive = rtproof.open_archive(folder)
    assert_type(archive, Archive)
    for run in archive:
        assert_type(run, Run)
        print(run.path, latest_ns(run), proven(run), share_above(run, 100_000))
    compared = rtproof.compare(fresh, archive[:1], names=("fresh", "old"))
    assert_type(compared, Comparison)
    print(compared.refusal or compared.finding)
    try:
        rtproof.open("there is nothing here")
    except RtproofError as problem:
        print(problem)


if __name__ == "__main__":
    main(sys.argv[1])
