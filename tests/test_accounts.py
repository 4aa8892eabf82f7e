# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

import pytest
from analysis_records import SERIES, record
from report_cases import system_file

from rtproof.record.contents import Moment, Record
from rtproof.summary.recorded_facts import account_number, probe_accounts


def told(*contents: str, moment: Moment = Moment.END, errno: int = 0) -> Record:
    made = record([], [replace(SERIES, id=at, thread=at) for at in (1, 0)])
    files = (system_file(f"app/thread{at}", text, moment, errno) for at, text in enumerate(contents))
    return replace(made, files=tuple(files))


def test_words_and_values_of_each_thread_in_order() -> None:
    found = probe_accounts(told("loops 5\nsensed 41500 mC\nempty \nbare\n\n", "loops 7\n"), "app")
    assert list(found.items()) == [
        (0, {"loops": "5", "sensed": "41500 mC", "empty": "", "bare": ""}),
        (1, {"loops": "7"}),
    ]


def test_threads_without_an_account_are_left_out() -> None:
    assert probe_accounts(told("loops 5\n"), "ipc") == {}
    assert probe_accounts(told("", "loops 1\n"), "app") == {1: {"loops": "1"}}
    assert probe_accounts(told("loops 5\n", moment=Moment.START), "app") == {}
    assert probe_accounts(told("loops 5\n", errno=5), "app") == {}


@pytest.mark.parametrize(
    ("text", "found"), [("12", 12), ("-3", -3), ("", None), ("1.5", None), ("x", None), ("²", None)]
)
def test_only_whole_numbers_are_numbers(text: str, found: int | None) -> None:
    assert account_number({"word": text}, "word") == found
    assert account_number({}, "word") is None
