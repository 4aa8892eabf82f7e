# SPDX-License-Identifier: Apache-2.0
"""Edges for a guest's input, at this host's pace."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from rtproof.core.errors import TargetError
from rtproof.vm import gpio_edges
from rtproof.vm.qemu_process import Guest


class Board:
    """A guest that lives for so many edges, and its lines."""

    def __init__(self, lives: int, breaks: bool = False) -> None:
        self.driven: list[tuple[int, bool]] = []
        self.closed = self.broken = False
        self._lives, self._breaks = lives, breaks
        self._others = 0

    def alive(self) -> bool:
        return len(self.driven) < self._lives

    def answer(self, line: int, level: bool, output: int, timeout_s: float) -> bool:
        if self._breaks and self.driven:
            self.broken = True
            raise TargetError("QEMU ended unexpectedly")
        assert (output, timeout_s) == (gpio_edges.OUTPUT_LINE, gpio_edges.ANSWER_TIMEOUT_S)
        self.driven.append((line, level))
        self._others = 2
        return True

    def change(self, timeout_s: float) -> str | None:
        """Other outputs that change."""
        assert timeout_s == gpio_edges.PACE_S
        self._others -= 1
        return "another" if self._others else None


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Board:
    made = Board(*request.param)

    @contextmanager
    def lines_of(guest: Any) -> Iterator[Board]:
        assert guest is made
        yield made
        made.closed = True

    monkeypatch.setattr(gpio_edges, "gpio_lines", lines_of)
    return made


def until_over(board: Board) -> None:
    """Edges while this does something else."""
    with gpio_edges.edges_beside(cast(Guest, board)):
        end = time.monotonic() + 10
        while board.alive() and not board.broken and time.monotonic() < end:
            time.sleep(0.001)
        assert not board.closed


@pytest.mark.parametrize("board", [(5,)], indirect=True)
def test_the_input_goes_up_and_down_until_the_guest_is_over(board: Board) -> None:
    until_over(board)
    assert board.driven == [(gpio_edges.INPUT_LINE, level) for level in (True, False, True, False, True)]
    assert board.closed


@pytest.mark.parametrize("board", [(5, True)], indirect=True)
def test_a_guest_that_ends_in_the_midst_of_an_edge_is_over(board: Board) -> None:
    until_over(board)
    assert board.driven == [(gpio_edges.INPUT_LINE, True)]
    assert board.closed
