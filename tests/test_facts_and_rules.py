# SPDX-License-Identifier: Apache-2.0
"""Doubts from single facts of a thread: calls of a loop that only sleeps, and a warm-up without an activation."""

import pytest
from analysis_records import fact
from doubt_cases import clean, facts, said_of

from rtproof.record.contents import Moment


@pytest.mark.parametrize(("key", "value", "doubts"), [
    ("io_calls", 0, set()), ("io_calls", 12, {"io-calls"}),
    ("warmup_activations", 0, {"warm-up"}), ("warmup_activations", 1, set()), ("warmup_activations", 1_000, set()),
])  # fmt: skip
def test_a_fact_of_a_thread_is_a_doubt(key: str, value: int, doubts: set[str]) -> None:
    moment = Moment.END if key == "io_calls" else Moment.START
    assert set(said_of(clean(facts=(*facts({}), fact(key, value, moment, 0))))) == doubts
