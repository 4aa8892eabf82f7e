# SPDX-License-Identifier: Apache-2.0
"""What a run folder makes this computer run is run only for the user who began the run on this computer."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rtproof.cli.main import main
from rtproof.record import unfinished_run
from rtproof.record.run_folder import GENERATOR_NAME, INFO_NAME, RECORD_NAME
from rtproof.record.unfinished_run import UnfinishedRun

FOLDER = Path("run")
FILE = FOLDER / "unfinished.json"
REFUSED = "nothing shows that you began the run in run on this computer"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state folder of a user in whose folder ``run`` is a run that this user began here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    FOLDER.mkdir()
    unfinished_run.write(FOLDER, named())
    return tmp_path / "state" / "rtproof"


def named(said: str = "was-run") -> UnfinishedRun:
    """A run that is reached through a program which leaves a file, and reaches nothing."""
    where = {"agent": "/a", "folder": "/f", "before": "", "record": "/f/r"}
    options = {"exec": f"sh -c 'touch {said}; exit 1'", "dir": "/tmp"}
    return UnfinishedRun(target="command", target_options=options, where=where, goal="1 s", length_ns=10**9)


def edit(change: Callable[[dict[str, object]], object]) -> None:
    content = json.loads(FILE.read_text())
    change(content)
    FILE.write_text(json.dumps(content))


def ran() -> bool:
    return Path("was-run").exists()


def key_of_mode(mode: int) -> Callable[[Path], object]:
    return lambda state: (state / "key").chmod(mode)


def key_behind_link(state: Path) -> None:
    (state / "key").rename(state / "elsewhere")
    (state / "key").symlink_to("elsewhere")


STRANGE: dict[str, Callable[[Path], object]] = {
    "an edited command": lambda _: edit(lambda content: content["target_options"].update(dir="/")),  # type: ignore[attr-defined]
    "an edited place on the board": lambda _: edit(lambda content: content["where"].update(agent="/b")),  # type: ignore[attr-defined]
    "no signature, as before": lambda _: edit(lambda content: content.pop("signature")),
    "a signature of no letters": lambda _: edit(lambda content: content.update(signature="\u00e9")),
    "another user's key": lambda state: (state / "key").write_bytes(bytes(unfinished_run.KEY_SIZE)),
    "a lost state folder": lambda state: (state / "key").unlink(),
    "a key that is cut off": lambda state: (state / "key").write_bytes(b"short"),
    "a key that others can read": key_of_mode(0o640),
    "a key that others can write": key_of_mode(0o602),
    "a key behind a link": key_behind_link,
}


@pytest.mark.parametrize("command", ["attach", "stop"])
@pytest.mark.parametrize("how", STRANGE)
def test_a_folder_that_is_not_the_users_own_runs_nothing(
    how: str, command: str, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    STRANGE[how](state)
    assert main([command, str(FOLDER)]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert REFUSED in said
    assert "--target command --target-option 'exec=sh -c '\"'\"'touch was-run; exit 1'\"'\"''" in said
    assert said.endswith("--trust allows that")
    assert not ran()
    assert main([command, str(FOLDER), "--trust"]) == 2
    assert ran()


@pytest.mark.parametrize("change", [lambda: None, lambda: edit(lambda content: content.update(later=1))])
def test_the_users_own_folder_is_taken_up(change: Callable[[], object], capsys: pytest.CaptureFixture[str]) -> None:
    """Also if a later version wrote more into the file, which this one does not use."""
    change()
    assert main(["attach", str(FOLDER)]) == 2
    assert REFUSED not in capsys.readouterr().err
    assert ran()


def test_a_folder_is_known_in_another_place_and_through_a_link(tmp_path: Path) -> None:
    FOLDER.rename("moved")
    FOLDER.symlink_to("moved")
    main(["attach", str(FOLDER)])
    assert ran()


def test_both_boards_of_a_run_are_refused_before_any_is_reached(capsys: pytest.CaptureFixture[str]) -> None:
    (FOLDER / "generator-unfinished.json").write_text(json.dumps({**json.loads(FILE.read_text()), "goal": "2 s"}))
    assert main(["attach", str(FOLDER)]) == 2
    assert REFUSED in capsys.readouterr().err
    assert not ran()


def test_the_key_is_the_users_alone_and_stays(state: Path) -> None:
    key = (state / "key").read_bytes()
    assert (len(key), (state / "key").stat().st_mode & 0o777, state.stat().st_mode & 0o777) == (32, 0o600, 0o700)
    unfinished_run._make_key(state / "key")
    assert (state / "key").read_bytes() == key
    assert [each.name for each in state.iterdir()] == ["key"]


@pytest.mark.parametrize("place", ["/dev/null", "/proc/self"])
def test_a_run_begins_without_a_place_for_the_key(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", place)
    unfinished_run.write(FOLDER, named())
    assert "signature" not in json.loads(FILE.read_text())
    assert not unfinished_run.is_own(unfinished_run.read(FOLDER))


def test_a_run_begins_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")

    def no_home() -> Path:
        raise RuntimeError

    monkeypatch.setattr(Path, "home", no_home)
    unfinished_run.write(FOLDER, named())
    assert not unfinished_run.is_own(unfinished_run.read(FOLDER))


def test_to_check_a_signature_makes_no_key(state: Path) -> None:
    (state / "key").unlink()
    main(["show", str(FOLDER)])
    assert not list(state.iterdir())


@pytest.mark.parametrize("own", [True, False])
def test_show_recommends_to_attach_only_to_the_users_own_run(own: bool, capsys: pytest.CaptureFixture[str]) -> None:
    if not own:
        edit(lambda content: content.pop("signature"))
    assert main(["show", str(FOLDER)]) == 2
    assert ("rtproof attach run fetches it" in capsys.readouterr().err) == own


@pytest.mark.parametrize("own", [True, False])
def test_nor_of_a_run_on_two_boards(own: bool, capsys: pytest.CaptureFixture[str]) -> None:
    unfinished_run.write(FOLDER, named(), GENERATOR_NAME)
    if not own:
        (FOLDER / "generator-unfinished.json").write_text("{}")
    info = {"command": [], "started": "2026-11-25T09:00:00+00:00", "host": "", "user": "", "rtproof_version": ""}
    info |= {"agent_sha256": "", "agent_arch": "", "target": "ssh", "generator": "ssh"}
    (FOLDER / INFO_NAME).write_text(json.dumps({**info, "schema_version": 4}))
    (FOLDER / RECORD_NAME).write_bytes(b"x")
    assert main(["show", str(FOLDER)]) == 2
    said = capsys.readouterr().err
    assert "the record of the board that gave the edges is not in run" in said
    assert ("rtproof attach run fetches it" in said) == own
