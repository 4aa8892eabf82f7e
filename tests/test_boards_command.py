# SPDX-License-Identifier: Apache-2.0
"""The target command, with stand-ins for programs that differ in quoting, exit statuses and bytes."""

import stat
from pathlib import Path

import pytest

from rtproof.boards.shell import ask
from rtproof.core.errors import LinkError, UserError
from rtproof.targets.command import MANNERS, open_program_shell

DOCKER = ("exec -i name", 'shift 3; exec "$@"')
KUBECTL = (
    "exec -i pod -c rt --",
    'while [ "$1" != -- ]; do shift; done; shift; "$@"; s=$?; '
    '[ $s = 0 ] || echo "command terminated with exit code $s" >&2; exit $s',
)
ADB = ("shell", 'shift; sh -c "$*"')
OLD_ADB = ("shell", "shift; sh -c \"$*\" 2>&1 | sed 's/$/\\r/'; exit 0")


def stand_in(folder: Path, words: str, body: str) -> list[str]:
    """A program that passes a command on as another one does, and its words."""
    program = folder / "program"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return [str(program), *words.split()]


@pytest.mark.parametrize(
    ("program", "found"),
    [
        (DOCKER, (0, True, True)),
        (KUBECTL, (0, True, True)),
        (ADB, (1, True, True)),
        (OLD_ADB, (1, False, False)),
    ],
    ids=["docker", "kubectl", "adb", "adb of old"],
)
def test_how_a_program_passes_things_on_is_found(
    tmp_path: Path, program: tuple[str, str], found: tuple[int, bool, bool]
) -> None:
    shell = open_program_shell(stand_in(tmp_path, *program))
    assert (MANNERS.index(shell._manner), shell._told, shell.binary) == found
    answer = ask(shell, "printf '%s\\n' 'a  b' \"$(( 1 + 1 ))\"; exit 3")
    assert answer.status == 3
    assert answer.output.replace(b"\r", b"") == b"a  b\n2\n"
    assert ask(shell, "tr a-z A-Z", b"given\n").output.replace(b"\r", b"") == b"GIVEN\n"


def test_programs_that_run_nothing_are_refused_in_a_sentence(tmp_path: Path) -> None:
    for body, words in (
        ("echo 'no such container' >&2; exit 1", "no such container"),
        ("exit 0", "it said nothing"),
        ('shift 3; exec "$@" < /dev/null', "passes no standard input on"),
    ):
        with pytest.raises(UserError, match=words) as refused:
            open_program_shell(stand_in(tmp_path, DOCKER[0], body))
        assert "\n" not in str(refused.value)
    with pytest.raises(UserError, match="cannot be started"):
        open_program_shell([str(tmp_path / "nothing")])


def test_a_command_that_never_ends_is_given_up(tmp_path: Path) -> None:
    shell = open_program_shell(stand_in(tmp_path, *DOCKER))
    with pytest.raises(LinkError, match=r"no answer within 0\.2 s"):
        ask(shell, "sleep 60", timeout_s=0.2)
