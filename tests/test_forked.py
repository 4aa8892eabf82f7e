# SPDX-License-Identifier: Apache-2.0

import os
import signal

import pytest

from rtproof.core.errors import RtproofError
from rtproof.core.processes import each_by_itself, in_processes


def test_items_keep_their_order_and_are_worked_on_elsewhere() -> None:
    found = list(in_processes(lambda n: (n, os.getpid()), range(6), 3))
    assert [n for n, _ in found] == list(range(6))
    assert os.getpid() not in {process for _, process in found}


@pytest.mark.parametrize(("items", "workers"), [(range(5), 1), (range(1), 4), (range(0), 4)])
def test_nothing_is_forked_for_one(items: range, workers: int) -> None:
    assert {*in_processes(lambda _: os.getpid(), items, workers)} <= {os.getpid()}


def test_an_error_of_the_work_comes_through() -> None:
    with pytest.raises(ZeroDivisionError):
        list(in_processes(lambda n: 1 // n, [1, 0], 2))


def test_a_killed_process_is_one_sentence() -> None:
    with pytest.raises(RtproofError, match="too little memory"):
        list(in_processes(lambda _: os.kill(os.getpid(), signal.SIGKILL), [1, 2], 2))


def kill_odd(number: int) -> int:
    if number % 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.mark.parametrize("workers", [2, 4])
def test_a_killed_process_costs_no_other_item_its_result(workers: int) -> None:
    found = each_by_itself(kill_odd, range(6), workers, str)
    assert found[::2] == [0, 2, 4]
    assert all("was killed" in str(each) for each in found[1::2])


@pytest.mark.parametrize("workers", [1, 3])
def test_an_error_costs_no_other_item_its_result(workers: int) -> None:
    found = each_by_itself(lambda n: 1 // n, [1, 0, 1], workers, lambda problem: type(problem).__name__)
    assert found == [1, "ZeroDivisionError", 1]
