# SPDX-License-Identifier: Apache-2.0

from pathlib import Path

import msgspec
import pytest
from agent_process import agent, run

from rtproof import loads
from rtproof.core.errors import UserError
from rtproof.loads import LoadFile, agent_load_options, default_parts, part_name, read_load

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


MINE = 'name = "mine"\nhelp = "x"\n[[parts]]\nload = "cpu"\noptions = { workers = 1 }\n'


@pytest.fixture
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("_home")
def test_a_load_of_the_agent_goes_to_it_as_it_is() -> None:
    assert loads.resolve(["sched:groups=2", "net"]) == ("--load", "sched:groups=2", "--load", "net")
    assert loads.resolve([]) == ()


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
        "serve:restart=9s@0", "zero:restart=9s@0", "sched:groups=1,pairs=20,restart=5s@0", "lsr:restart=9s@0"
    ]  # fmt: skip
    option, program = loads.resolve(["ping:host=me@home@0-1"])
    assert (option, program.split()[0]) == ("--program", "ping:count=2,needs=ping,processes=8@0-1")
    assert "me@home" in program, "only the last @ counts, and a list of CPUs has to follow it"
    assert loads.load_name("dd:mib=8@0,2-3") == loads.load_name("dd") == "dd"


@pytest.mark.usefixtures("_home")
def test_a_value_that_would_name_cpus_is_refused() -> None:
    text = MINE + '[parameters.path]\ndefault = "/"\nhelp = "where"\n'
    Path("mine.toml").write_text(text.replace("{ workers = 1 }", '{ path = "{path}" }'))
    with pytest.raises(UserError, match="load mine: 'cpu:path=/a@3' ends with '@3', which would name CPUs"):
        agent_load_options(read_load(Path("mine.toml")), {"path": "/a@3"})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("nowhere.toml", "cannot read nowhere.toml: No such file or directory"),
        ("./", "/ is no file|^. is no file"),
        ("doload:restart", "load doload: 'restart' is not of the form key=value"),
        ("doload:restart=1s,restart=2s", "load doload: restart is given twice"),
        ("doload:speed=1", "load doload has no parameter 'speed'; there are: restart"),
        ("doload@0@1", "load 'doload@0@1' is bound twice: give one @ with all of its CPUs, such as @0-2,5"),
        ("fs:mib=8@0@1", "load 'fs:mib=8@0@1' is bound twice"),
        ("doload@", "load 'doload@': an @ stands at the end, with a list of CPUs behind it: NAME"),
        ("mmap@one", "load 'mmap@one': an @ stands at the end, with a list of CPUs behind it: NAME"),
        ("mmap@0:workers=1", "load 'mmap@0:workers=1': an @ stands at the end"),
        ("doload@2-1", "load 'doload' can't be bound to '@2-1': a list of CPUs is such as 0-2,5"),
        ("fs:mib=8@x", "load fs: mib: '8@x' is not a whole number from 1 to 65536"),
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


@pytest.mark.usefixtures("_home")
def test_names_are_taken_once() -> None:
    assert agent()
    listed = [line.split("\t") for line in run("list").stdout.splitlines()]
    own = {row[1] for row in listed if row[0] == "load"}
    assert own
    assert not own & set(loads.names())


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
