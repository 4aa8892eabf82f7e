# SPDX-License-Identifier: Apache-2.0
"""Bring a program to a board whose shell has ``cat``, ``chmod`` and ``mv``, and find out whether it arrived whole.

A connection that carries text only gets it in blocks as text, and a block that was spoilt on the way is sent again. A
board may lack mktemp, base64, gzip, stat and every checksum. Then the length alone is compared.
"""

import base64
import gzip
import hashlib
import re
import secrets
import shlex
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rtproof.boards.shell import Answer, Shell
from rtproof.core.errors import TargetError

UPLOAD_TIMEOUT_S = 600
BLOCK = 24_576
"""Bytes of a block, before they become text. One that does not arrive is sent again in parts of a quarter."""
SMALLEST_BLOCK = 512
TRIES = 4
BLOCK_TIMEOUT_S = 120
TRIAL = b"rt\x00\xffproof\n"
SAY_EVERY_S = 2
CHECK = "{ sha256sum || md5sum || echo =$(wc -c); } 2>/dev/null"
"""A tool that is not there leaves its input to the next one."""
Say = Callable[[str], None]
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


def own_folder(shell: Shell, asked: str, *, in_ram: bool = False) -> str:
    """A folder on the board for this user's agent and runs. TargetError with what the board said if none can be had.

    asked: the folder to take, or "" for the first of USUAL_FOLDERS that serves. in_ram: only one on a tmpfs.
    """
    places = (shlex.quote(asked),) if asked else FOLDERS_IN_RAM if in_ram else USUAL_FOLDERS
    answer = shell.ask((IS_IN_RAM if in_ram else "") + _folder_script(places, in_ram=in_ram))
    found: list[str] = OWN_FOLDER.findall(answer.output.decode(errors="replace").replace("\r", ""))
    if answer.status or not found:
        where = asked or ("a folder in RAM (a tmpfs)" if in_ram else "a folder for temporary files")
        raise TargetError(f"{shell.name}: nothing can be kept or run in {where}: {answer.words()}")
    return found[-1]


def _folder_script(places: Sequence[str], *, in_ram: bool) -> str:
    """Try the places. A folder that another user has made is not ours. Two runs at once each try a file of their own.

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


def bring(shell: Shell, program: Path, folder: str, say: Say) -> str:
    """The path of the program on the board, from an earlier upload if that is whole. TargetError if it is damaged."""
    content = program.read_bytes()
    place = f"{folder}/agents/{hashlib.sha256(content).hexdigest()[:16]}/{program.name}"
    quoted = shlex.quote(place)
    check = if_whole(f"{CHECK} < {quoted}", content)
    if is_whole(shell.ask(f"[ -x {quoted} ] && {check}")):
        return place
    arriving = f"{place}.new-{secrets.token_hex(4)}"  # Two runs may bring the same program at once.
    new = shlex.quote(arriving)
    ready = f"chmod 700 {new} && mv -f {new} {quoted} && {check} || {{ rm -f {new}; exit 1; }}"
    _ask_well(shell, folder, f"umask 077; mkdir -p {shlex.quote(place.rpartition('/')[0])}")
    if shell.binary:
        answer = _ask_well(shell, folder, f"umask 077; cat > {new} && {ready}", content)
    else:
        send_as_text(shell, content, arriving, say)
        answer = _ask_well(shell, folder, ready)
    if not is_whole(answer):
        raise TargetError(f"{shell.name}: the agent cannot be kept in {folder}: what arrived is not what was sent")
    return place


def _ask_well(shell: Shell, folder: str, command: str, given: bytes = b"") -> Answer:
    answer = shell.ask(command, given, UPLOAD_TIMEOUT_S)
    if answer.status:
        raise TargetError(f"{shell.name}: the agent cannot be kept in {folder}: {answer.words()}")
    return answer


def if_whole(check: str, content: bytes, then: str = "echo whole") -> str:
    """A command line that does something if the check read this content. MD5 need not keep out an attacker here."""
    sha256, md5 = hashlib.sha256(content).hexdigest(), hashlib.md5(content, usedforsecurity=False).hexdigest()
    return f'case "$({check})" in {sha256}*|{md5}*|={len(content)}) {then};; esac'


def is_whole(answer: Answer) -> bool:
    return b"whole" in answer.output.split()


def _octal(content: bytes) -> bytes:
    """Lines for printf. It takes at most three octal digits of a byte, so nothing can be taken for the next."""
    text = b"".join(b"\\%03o" % byte for byte in content)
    return b"".join(text[at : at + 64] + b"\n" for at in range(0, len(text), 64))


Decoder = tuple[str, Callable[[bytes], bytes]]
"""A way from text to bytes on the board: the command that reads the text, and what makes the text."""
DECODERS: dict[str, Decoder] = {
    "base64": ("base64 -d", base64.encodebytes),
    "printf": ('while read -r text; do printf "$text"; done', _octal),
}


def send_as_text(shell: Shell, content: bytes, place: str, say: Say) -> None:
    """Write the bytes to a new file on the board. TargetError if a block does not arrive, or nothing decodes it."""
    decoding = (
        name
        for name, (command, encode) in DECODERS.items()
        if is_whole(shell.ask(if_whole(f"{command} | {CHECK}", TRIAL), encode(TRIAL)))
    )
    name = next(decoding, "")
    if not name:
        raise TargetError(f"{shell.name} has nothing that turns text into bytes: {' or '.join(DECODERS)}")
    packed = shell.ask("echo | gzip -c | gzip -dc").status == 0
    sent = gzip.compress(content, mtime=0) if packed else content
    new, arrived = shlex.quote(place), shlex.quote(f"{place}.text" if packed else place)
    folder = place.rpartition("/")[0]
    _ask_well(shell, folder, f"umask 077; : > {arrived}")
    begun = said = time.monotonic()
    for at in range(0, len(sent), BLOCK):
        _send_block(shell, DECODERS[name], sent[at : at + BLOCK], arrived, BLOCK)
        now = time.monotonic()
        if now - said > SAY_EVERY_S:
            done = min(at + BLOCK, len(sent))
            left_s = (now - begun) / done * (len(sent) - done)
            say(f"rtproof: bringing the agent: {done // 1000} of {len(sent) // 1000} kB, {left_s:.0f} s left")
            said = now
    if packed:
        _ask_well(shell, folder, f"gzip -dc < {arrived} > {new} && rm -f {arrived}")
    say(f"rtproof: the agent is there after {time.monotonic() - begun:.1f} s, by {name}{' and gzip' * packed}")


def _send_block(shell: Shell, decoder: Decoder, block: bytes, arrived: str, size: int) -> None:
    """Append a block to the file. The board compares it, so that only one answer must come back."""
    command, encode = decoder
    part = f"{arrived}.part"
    keep = f"cat {part} >> {arrived} && rm -f {part} && echo whole"
    append = f"umask 077; {command} > {part}; {if_whole(f'{CHECK} < {part}', block, keep)}"
    for _ in range(TRIES if size <= SMALLEST_BLOCK else 1):
        answer = shell.ask(append, encode(block), BLOCK_TIMEOUT_S)
        if is_whole(answer):
            return
    if size <= SMALLEST_BLOCK:
        raise TargetError(f"{shell.name}: a block of the agent does not arrive whole: {answer.words()}")
    for at in range(0, len(block), size // 4):
        _send_block(shell, decoder, block[at : at + size // 4], arrived, size // 4)
