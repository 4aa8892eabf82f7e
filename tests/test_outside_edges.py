# SPDX-License-Identifier: Apache-2.0
"""Answers to edges, by the agent and by the chip that gives them: both series side by side, in virtual time."""

import lab_edges
import lab_kernels
import numpy as np
import pytest
from lab_edges import EDGES, LOADS, Answers


@pytest.fixture(scope="module", params=lab_edges.KERNELS)
def measured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answers]:
    lab_kernels.kernel(request.param)
    lab_kernels.module(request.param)
    return lab_edges.measured(request.param, tmp_path_factory.mktemp("guest") / "out")


def test_the_figure_from_outside_contains_the_way_into_the_handler_and_the_line(measured: dict[str, Answers]) -> None:
    """It begins before the handler and ends at the line, which is driven after the task has run."""
    for load in LOADS:
        answers = measured[load]
        assert len(answers.outside) == len(answers.output) == EDGES
        assert (answers.task > 0).all()
        assert (answers.task < answers.output).all()
        assert (np.sort(answers.outside) > np.sort(answers.task)).all(), load


def test_the_difference_is_the_way_in_less_the_way_back(measured: dict[str, Answers]) -> None:
    """Both ways are short pieces of the kernel, so no load and no wait for the processor is in the difference."""
    for answers in measured.values():
        assert 0 < answers.longer_ns < answers.output.min()
    assert measured["idle"].longer_ns / 2 < measured["mmap"].longer_ns < measured["idle"].longer_ns * 2
