# SPDX-License-Identifier: Apache-2.0

from pathlib import Path

import pytest

from rtproof.core.errors import UserError
from rtproof.loads.definition import read_load

GOOD = """
name = "mine"
help = "what it does"
restart = "65s"
[parameters.workers]
default = 1
help = "how many"
least = 1
most = 8
[parameters.kind]
default = "cpu"
help = "of what kind"
choices = ["cpu", "vm"]
[[parts]]
load = "sched"
options = { groups = "{workers}" }
[[parts]]
program = ["stress-ng", "--{kind}", "{workers}"]
count = "lines"
rest = "5s"
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text)
    return path


def test_a_definition_is_read(tmp_path: Path) -> None:
    file = read_load(written(tmp_path, GOOD))
    assert (file.name, file.restart, len(file.parts)) == ("mine", "65s", 2)
    assert file.parameters["kind"].choices == ("cpu", "vm")


@pytest.mark.parametrize(
    ("there", "instead", "sentence"),
    [
        ('help = "what it does"', 'halp = "x"', "there is no key 'halp'"),
        ('count = "lines"', 'counts = "lines"', "there is no key 'counts' in parts[1]"),
        ('count = "lines"', 'count = "packets"', "parts[1].count: Invalid enum value 'packets'"),
        ("most = 8", "largest = 8", "there is no key 'largest' in parameters"),
        (
            'restart = "65s"',
            'restart = "65 parsecs"',
            "restart: the duration '65 parsecs' has the unknown unit 'parsecs'",
        ),
        ('restart = "65s"', 'restart = "65"', "restart: the duration '65' has no unit"),
        ('restart = "65s"', 'restart = "1ms"', "restart: '1ms' is less than 100ms"),
        ('rest = "5s"', 'rest = "5 furlongs"', "parts[1].rest: the duration '5 furlongs' has the unknown unit"),
        ('rest = "5s"', "memory_mib = 0", "parts[1].memory_mib: it must be at least 1"),
        ('rest = "5s"', 'memory_mib = "much"', "parts[1].memory_mib: Expected `int | null`, got `str`"),
        ('rest = "5s"', "options = { a = 1 }", "parts[1].options: a program has none"),
        ('rest = "5s"', 'name = "a b"', "parts[1].name: 'a b' is no name"),
        ('name = "mine"', 'name = "yours"', "name: it is 'yours', but the file is called 'mine'"),
        ('load = "sched"', 'load = "sched"\nagain = true', "parts[0].again: this is for programs only"),
        (
            'load = "sched"',
            'load = "sched"\nprogram = ["a"]',
            "parts[0]: it must have a load of the agent or a program",
        ),
        ('load = "sched"', 'load = "a,b"', "parts[0]: 'a,b' may hold no comma and no space"),
        ('"{workers}" }', '"{worker}" }', "parts[0]: there is no parameter 'worker'"),
        ("default = 1", "default = 9", "parameters.workers.default: '9' is not a whole number from 1 to 8"),
        ('default = "cpu"', 'default = "disk"', "parameters.kind.default: 'disk' is none of cpu, vm"),
        ('default = "cpu"', 'default = "cpu"\nmost = 3', "parameters.kind: least and most are for numbers"),
        ("least = 1", 'choices = ["a"]', "parameters.workers.choices: they are for texts"),
        ("[parameters.kind]", "[parameters.restart]", "parameters.restart: a parameter can't have this name"),
        ("[[parts]]", "[[parts", "is not TOML"),
    ],
)
def test_what_makes_no_sense_is_refused_with_file_and_key(
    tmp_path: Path, there: str, instead: str, sentence: str
) -> None:
    assert there in GOOD
    path = written(tmp_path, GOOD.replace(there, instead))
    with pytest.raises(UserError) as refused:
        read_load(path)
    assert str(refused.value).startswith(f"{path}")
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_definition_has_parts(tmp_path: Path) -> None:
    for parts in ("parts = []", "[[parts]]\nload = 'cpu'\n" * 17):
        path = written(tmp_path, f"name = 'mine'\nhelp = 'x'\n{parts}")
        with pytest.raises(UserError, match=r"parts: there are (0|17), and there must be 1 to 16"):
            read_load(path)
