# SPDX-License-Identifier: Apache-2.0

import msgspec
import pytest

from rtproof.core.errors import UserError
from rtproof.loads.definition import LoadFile, agent_load_options, default_parts, part_name

FILE = msgspec.convert(
    {
        "name": "mine",
        "help": "x",
        "restart": "65s",
        "parameters": {
            "workers": {"default": 1, "help": "x", "least": 1, "most": 8},
            "kind": {"default": "cpu", "help": "x"},
        },
        "parts": [
            {"load": "sched", "options": {"groups": "{workers}"}, "restart": "5s"},
            {"load": "{kind}"},
            {
                "program": ["/usr/bin/Stress", "--{kind}", "{workers}", "it's"],
                "count": "lines",
                "again": True,
                "rest": "1500ms",
                "processes": 3,
                "needs": "x-{kind}",
            },
        ],
    },
    LoadFile,
)


def test_parts_become_words_of_the_agent() -> None:
    assert agent_load_options(FILE, {}) == (
        *("--load", "sched:groups=1,restart=5s", "--load", "cpu:restart=65s", "--program"),
        "stress:count=2,again=1,needs=x-cpu,rest=2,processes=3,restart=65s /usr/bin/Stress --cpu 1 'it'\"'\"'s'",
    )


def test_what_the_user_sets_takes_the_place_of_presets() -> None:
    found = agent_load_options(FILE, {"workers": "8", "kind": "vm", "restart": "3s"})
    assert found[:4] == ("--load", "sched:groups=8,restart=5s", "--load", "vm:restart=3s")
    assert found[5].endswith(",restart=3s /usr/bin/Stress --vm 8 'it'\"'\"'s'")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"threads": "2"}, "load mine has no parameter 'threads'; there are: workers, kind, restart"),
        ({"workers": "9"}, "load mine: workers: '9' is not a whole number from 1 to 8"),
        ({"workers": "two"}, "load mine: workers: 'two' is not a whole number from 1 to 8"),
        ({"kind": ""}, "load mine: kind: '' is not a text of at least one character"),
        ({"restart": "1ms"}, "load mine: restart must be at least 100ms, not '1ms'"),
        ({"restart": "5"}, "the duration '5' has no unit: write one of ns, us, ms, s, min, h or d"),
    ],
)
def test_settings_without_sense_are_refused(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(UserError) as refused:
        agent_load_options(FILE, given)
    assert str(refused.value) == sentence


def test_what_a_load_needs_is_known_beforehand() -> None:
    assert list(default_parts(FILE)) == [
        *(("load", "sched"), ("load", "cpu")),
        *(("program", "x-cpu"), ("program", "/usr/bin/Stress")),
    ]
    assert part_name(FILE.parts[2]) == "stress"
