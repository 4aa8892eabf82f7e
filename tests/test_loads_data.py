# SPDX-License-Identifier: Apache-2.0

from pathlib import Path

import pytest
from agent_process import run

from rtproof import loads
from rtproof.core.errors import UserError
from rtproof.loads import agent_load_options, read_load

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


@pytest.mark.parametrize(
    ("there", "instead", "sentence"),
    [
        ('help = "what it does"', 'halp = "x"', "there is no key 'halp'"),
        ('count = "lines"', 'count = "packets"', "parts[1].count: Invalid enum value 'packets'"),
        (
            'restart = "65s"',
            'restart = "65 parsecs"',
            "restart: the duration '65 parsecs' has the unknown unit 'parsecs'",
        ),
        ('restart = "65s"', 'restart = "1ms"', "restart: '1ms' is less than 100ms"),
        ('rest = "5s"', "memory_mib = 0", "parts[1].memory_mib: it must be at least 1"),
        ('rest = "5s"', "options = { a = 1 }", "parts[1].options: a program has none"),
        ('name = "mine"', 'name = "yours"', "name: it is 'yours', but the file is called 'mine'"),
        (
            'load = "sched"',
            'load = "sched"\nprogram = ["a"]',
            "parts[0]: it must have a load of the agent or a program",
        ),
        ('"{workers}" }', '"{worker}" }', "parts[0]: there is no parameter 'worker'"),
        ('default = "cpu"', 'default = "cpu"\nmost = 3', "parameters.kind: least and most are for numbers"),
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


MINE = 'name = "mine"\nhelp = "x"\n[[parts]]\nload = "cpu"\noptions = { workers = 1 }\n'


@pytest.fixture
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("_home")
def test_a_definition_is_found_by_its_name_by_its_path_and_in_the_users_folder(tmp_path: Path) -> None:
    Path("mine.toml").write_text(MINE)
    wanted = ("--load", "cpu:workers=1")
    assert loads.resolve(["mine.toml"]) == loads.resolve(["./mine.toml"]) == wanted
    assert loads.resolve([f"{tmp_path}/mine.toml"]) == wanted
    assert loads.resolve(["mine"]) == ("--load", "mine")
    loads.user_folder().mkdir(parents=True)
    Path("mine.toml").rename(loads.user_folder() / "mine.toml")
    assert loads.resolve(["mine:restart=2s"]) == ("--load", "cpu:workers=1,restart=2s")
    assert {"mine", "doload"} <= set(loads.names())


@pytest.mark.usefixtures("_home")
def test_every_part_of_a_definition_is_bound_to_the_cpus() -> None:
    Path("mine.toml").write_text(MINE)
    assert loads.resolve(["mmap:mib=8@0,2-3"]) == ("--load", "mmap:mib=8@0,2-3")
    assert loads.resolve(["./mine.toml@1"]) == ("--load", "cpu:workers=1@1")
    assert [word for word in loads.resolve(["doload:restart=9s@0"]) if "@" in word] == [
        "serve:restart=9s@0", "zero:restart=9s@0",
        "sched:groups=1,pairs=20,rate=0,restart=5s@0", "lsr:rate=0,restart=9s@0",
    ]  # fmt: skip
    option, program = loads.resolve(["ping:host=me@home@0-1"])
    assert (option, program.split()[0]) == ("--program", "ping:count=2,needs=ping,processes=8@0-1")
    assert "me@home" in program, "only the last @ counts, and a list of CPUs has to follow it"
    assert loads.load_name("dd:mib=8@0,2-3") == loads.load_name("dd") == "dd"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("nowhere.toml", "cannot read nowhere.toml: No such file or directory"),
        ("doload:restart", "load doload: 'restart' is not of the form key=value"),
        ("doload:speed=1", "load doload has no parameter 'speed'; there are: messages, entries, restart"),
        ("doload@0@1", "load 'doload@0@1' is bound twice: give one @ with all of its CPUs, such as @0-2,5"),
        ("mmap@0:workers=1", "load 'mmap@0:workers=1': an @ stands at the end"),
        ("doload@2-1", "load 'doload' can't be bound to '@2-1': a list of CPUs is such as 0-2,5"),
    ],
)
@pytest.mark.usefixtures("_home")
def test_what_makes_no_sense_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        loads.resolve([text])


@pytest.mark.parametrize("name", loads.names())
@pytest.mark.usefixtures("_home")
def test_the_agent_takes_every_definition_of_ours(name: str) -> None:
    """It looks at all arguments before it says that it was not told where to write."""
    done = run("run", "--duration", "1s", *loads.resolve([name]))
    assert done.stderr == "rtproof-agent: no place for the record: say -o FILE, or -o - for standard output\n"


WORDS = """
name = "mine"
help = "x"
restart = "65s"
[parameters]
workers = { default = 1, help = "x", least = 1, most = 8 }
kind = { default = "cpu", help = "x" }
[[parts]]
load = "sched"
options = { groups = "{workers}" }
restart = "5s"
[[parts]]
load = "{kind}"
[[parts]]
program = ["/usr/bin/Stress", "--{kind}", "{workers}", "it's"]
count = "lines"
again = true
rest = "1500ms"
processes = 3
needs = "x-{kind}"
"""


def test_parts_become_words_of_the_agent(tmp_path: Path) -> None:
    assert agent_load_options(read_load(written(tmp_path, WORDS)), {}) == (
        *("--load", "sched:groups=1,restart=5s", "--load", "cpu:restart=65s", "--program"),
        "stress:count=2,again=1,needs=x-cpu,rest=2,processes=3,restart=65s /usr/bin/Stress --cpu 1 'it'\"'\"'s'",
    )
