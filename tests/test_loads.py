# SPDX-License-Identifier: Apache-2.0

from pathlib import Path

import pytest
from agent_process import agent, run

from rtproof import loads
from rtproof.core.errors import UserError

MINE = 'name = "mine"\nhelp = "x"\n[[parts]]\nload = "cpu"\noptions = { workers = 1 }\n'


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


def test_a_load_of_the_agent_goes_to_it_as_it_is() -> None:
    assert loads.resolve(["sched:groups=2", "net"]) == ("--load", "sched:groups=2", "--load", "net")
    assert loads.resolve([]) == ()


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


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("nowhere.toml", "cannot read nowhere.toml: No such file or directory"),
        ("./", "/ is no file|^. is no file"),
        ("doload:restart", "load doload: 'restart' is not of the form key=value"),
        ("doload:restart=1s,restart=2s", "load doload: restart is given twice"),
        ("doload:speed=1", "load doload has no parameter 'speed'; there are: restart"),
    ],
)
def test_what_makes_no_sense_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        loads.resolve([text])


@pytest.mark.parametrize("name", loads.names())
def test_the_agent_takes_every_definition_of_ours(name: str) -> None:
    """It looks at all arguments before it says that it was not told where to write."""
    done = run("run", "--duration", "1s", *loads.resolve([name]))
    assert done.stderr == "rtproof-agent: where shall the record go? say -o FILE, or -o - for standard output\n"


def test_names_are_taken_once() -> None:
    assert agent()
    listed = [line.split("\t") for line in run("list").stdout.splitlines()]
    own = {row[1] for row in listed if row[0] == "load"}
    assert own
    assert not own & set(loads.names())
