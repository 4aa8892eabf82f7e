# SPDX-License-Identifier: Apache-2.0
"""Bring a program to a board whose shell has ``cat``, ``chmod`` and ``mv``, and find out whether it arrived whole.

A board may lack mktemp, base64, stat and every checksum. Then the length alone is compared.
"""

import hashlib
import re
import secrets
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from rtproof.boards import text_upload
from rtproof.boards.posix_checksum import posix_checksum
from rtproof.boards.shell import Answer, Shell, ask
from rtproof.core.errors import TargetError

UPLOAD_TIMEOUT_S = 600
CHECK = "{ sha256sum %s || md5sum %s || cksum %s || wc -c < %s; } 2>/dev/null"
"""Prints what the first of these tools that is there says of a file."""
USUAL_FOLDERS = ('"${HOME:-/nonexistent}/.cache"', "/var/tmp", "/tmp", "/dev/shm", "/run")  # noqa: S108 - the shell of the board makes a folder of its own there
"""Where the agent and its runs may go, in order. The first two outlive a reboot on most boards."""
FOLDERS_IN_RAM = ('"${XDG_RUNTIME_DIR:-/run}"', "/dev/shm", "/run", "/tmp")  # noqa: S108 - as above
IS_IN_RAM = (
    'is_in_ram() { near=$1; until [ -z "$near" ] || [ -d "$near" ]; do near=${near%/*}; done; '
    'real=$(cd "${near:-/}" && pwd -P) || return 1; longest=-1; kind=; '
    "while read -r _ mount type _; do "
    'case "$real/" in "${mount%/}"/*) '
    "[ ${#mount} -lt $longest ] || { longest=${#mount}; kind=$type; };; esac; "
    'done < /proc/mounts; [ "$kind" = tmpfs ]; }; '
)
"""A function of the shell: whether a path is or would be on a tmpfs.

Of several mounts the one with the longest path holds, and of those the last.
"""
OWN_FOLDER = re.compile(r"^/.*/rtproof-\d+$", re.MULTILINE)
"""A name with a line end in it fits only in part, and is not taken."""
_SIXTEEN = set("0123456789abcdef")


def own_folder(shell: Shell, asked: str, *, in_ram: bool = False) -> str:
    """A folder on the board for this user's agent and runs. TargetError with what the board said if none can be had.

    asked: the folder to take, or "" for the first of USUAL_FOLDERS in which files can be written and programs run.
    in_ram: only a folder on a tmpfs, by what /proc/mounts says; nothing is written anywhere else.
    """
    places = (shlex.quote(asked),) if asked else FOLDERS_IN_RAM if in_ram else USUAL_FOLDERS
    answer = ask(shell, (IS_IN_RAM if in_ram else "") + _folder_script(places, in_ram=in_ram))
    found: list[str] = OWN_FOLDER.findall(answer.output.decode(errors="replace").replace("\r", ""))
    if answer.status or not found:
        where = asked or ("a folder in RAM (a tmpfs)" if in_ram else "a folder for temporary files")
        raise TargetError(f"{shell.name}: nothing can be kept or run in {where}: {answer.words()}")
    return found[-1]


def _folder_script(places: Sequence[str], *, in_ram: bool) -> str:
    """Try the places. A folder that another user has made is not ours, whatever its mode.

    Two runs may begin at once, so each tries a file of its own.
    A login shell that is a csh takes an exclamation mark before a letter as a word of its history, even in quotes.
    """
    asked_first = 'is_in_ram "$place" || { echo "$place is not in RAM (tmpfs)" >&2; continue; }; ' if in_ram else ""
    return (
        f"umask 077; for place in {' '.join(places)}; do {asked_first}"
        'own=$place/rtproof-$(id -u 2>/dev/null || echo 0); mkdir -p "$own" || continue; '
        '[ ! -h "$own" ] || { echo "$own is a link, which another user may have made" >&2; continue; }; '
        '[ -O "$own" ] || { echo "$own belongs to another user" >&2; continue; }; '
        '(printf "#\\041/bin/sh\\nexit 0\\n" > "$own/try$$") && chmod 700 "$own/try$$" && "$own/try$$"; fit=$?; '
        'rm -f "$own/try$$"; [ $fit = 0 ] && cd "$own" && pwd -P && exit 0; done; exit 1'
    )


def bring(shell: Shell, program: Path, folder: str, say: Callable[[str], None]) -> str:
    """The path of the program on the board, from an earlier upload if that is whole.

    TargetError if it does not arrive whole. say: takes a sentence about how far a slow upload is.
    """
    content = program.read_bytes()
    place = f"{folder}/agents/{hashlib.sha256(content).hexdigest()[:16]}/{program.name}"
    quoted = shlex.quote(place)
    check = CHECK % ((quoted,) * 4)
    there = ask(shell, f"[ -x {quoted} ] && {check}")
    if there.status == 0 and _fits(there, content):
        return place
    arriving = f"{place}.new-{secrets.token_hex(4)}"  # Two runs may bring the same program at once.
    new = shlex.quote(arriving)
    ready = f"chmod 700 {new} && mv -f {new} {quoted} && {check} || {{ rm -f {new}; exit 1; }}"
    made = ask(shell, f"umask 077; mkdir -p {shlex.quote(place.rpartition('/')[0])}")
    if made.status:
        raise TargetError(f"{shell.name}: the agent cannot be kept in {folder}: {made.words()}")
    if shell.binary:
        answer = ask(shell, f"umask 077; cat > {new} && {ready}", content, UPLOAD_TIMEOUT_S)
    else:
        text_upload.send_as_text(shell, content, arriving, say)
        answer = ask(shell, ready)
    if answer.status or not _fits(answer, content):
        why = answer.words() if answer.status else "what arrived is not what was sent"
        raise TargetError(f"{shell.name}: the agent cannot be kept in {folder}: {why}")
    return place


def _fits(answer: Answer, content: bytes) -> bool:
    """Whether the word of sha256sum, md5sum, cksum or wc for the file is right."""
    words = answer.output.decode(errors="replace").split()
    first = words[0] if words else ""
    for length, digest in ((64, hashlib.sha256), (32, _md5)):
        if len(first) == length and set(first) <= _SIXTEEN:
            return first == digest(content).hexdigest()
    if len(words) >= 3:
        return words[:2] == [str(posix_checksum(content)), str(len(content))]
    return first == str(len(content))


def _md5(content: bytes) -> "hashlib._Hash":
    """It is to find what went wrong on the way, so it need not keep out an attacker."""
    return hashlib.md5(content, usedforsecurity=False)
