# SPDX-License-Identifier: Apache-2.0
"""Bring bytes through a connection that carries text only, with what the board has, such as base64 or printf.

The file goes in blocks, so that a block that was spoilt on the way is sent again, and nothing else. gzip makes it
shorter where the board has it.
"""

import base64
import gzip
import hashlib
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass

from rtproof.boards.posix_checksum import posix_checksum
from rtproof.boards.shell import Shell, ask
from rtproof.core.errors import TargetError

BLOCK = 24_576
"""Bytes of a block, before they become text. One that does not arrive is sent again in parts of a quarter."""
SMALLEST_BLOCK = 512
LINE = 57
"""Bytes of a line, which are 76 characters of base64."""
TRIES = 4
BLOCK_TIMEOUT_S = 120
TRIAL = b"rt\x00\xffproof\n"
SAY_EVERY_S = 2


@dataclass(frozen=True)
class Decoder:
    """A way from text to bytes on the board. command: reads the text and writes the bytes."""

    name: str
    command: str
    encode: Callable[[bytes], bytes]


def _base64_lines(content: bytes) -> bytes:
    lines = (base64.b64encode(content[at : at + LINE]) for at in range(0, len(content), LINE))
    return b"".join(line + b"\n" for line in lines)


def _uuencoded(content: bytes) -> bytes:
    return b"begin-base64 600 rtproof\n" + _base64_lines(content) + b"====\n"


def _octal(content: bytes) -> bytes:
    """Lines for printf. It takes at most three octal digits of a byte, so nothing can be taken for the next."""
    lines = (content[at : at + 16] for at in range(0, len(content), 16))
    return b"".join(b"".join(b"\\%03o" % byte for byte in line) + b"\n" for line in lines)


DECODERS = (
    Decoder("base64", "base64 -d", _base64_lines),
    Decoder("openssl", "openssl base64 -d", _base64_lines),
    Decoder("uudecode", "uudecode -o /dev/stdout", _uuencoded),
    Decoder("printf", 'while read -r text; do printf "$text"; done', _octal),
)


def decoder_of(shell: Shell) -> Decoder:
    """The first that gives back what was encoded. TargetError if none does."""
    for decoder in DECODERS:
        answer = ask(shell, _if_whole(f"{decoder.command} | {_CHECK}", TRIAL, "echo whole"), decoder.encode(TRIAL))
        if b"whole" in answer.output.split():
            return decoder
    raise TargetError(f"{shell.name} has nothing that turns text into bytes: base64, openssl, uudecode or printf")


def send_as_text(shell: Shell, content: bytes, place: str, say: Callable[[str], None]) -> None:
    """Write the bytes to a new file on the board. TargetError if a block does not arrive.

    say: takes a sentence every few seconds: how much is there, and how long the rest will take.
    """
    decoder = decoder_of(shell)
    packed = ask(shell, "echo | gzip -c | gzip -dc").status == 0
    sent = gzip.compress(content, mtime=0) if packed else content
    new, arrived = shlex.quote(place), shlex.quote(f"{place}.text" if packed else place)
    _ask_well(shell, f"umask 077; : > {arrived}")
    begun = said = time.monotonic()
    for at in range(0, len(sent), BLOCK):
        _send_block(shell, decoder, sent[at : at + BLOCK], arrived, BLOCK)
        now = time.monotonic()
        if now - said > SAY_EVERY_S:
            done = min(at + BLOCK, len(sent))
            left_s = (now - begun) / done * (len(sent) - done)
            say(f"rtproof: bringing the agent: {done // 1000} of {len(sent) // 1000} kB, {left_s:.0f} s left")
            said = now
    if packed:
        _ask_well(shell, f"gzip -dc < {arrived} > {new} && rm -f {arrived}")
    say(f"rtproof: the agent is there after {time.monotonic() - begun:.1f} s, by {decoder.name}{' and gzip' * packed}")


def _send_block(shell: Shell, decoder: Decoder, block: bytes, arrived: str, size: int) -> None:
    """Append a block to the file. The board compares it, so that only one answer must come back."""
    part = f"{arrived}.part"
    keep = f"cat {part} >> {arrived} && rm -f {part} && echo whole"
    append = f"umask 077; {decoder.command} > {part}; {_if_whole(f'{_CHECK} < {part}', block, keep)}"
    for _ in range(TRIES if size <= SMALLEST_BLOCK else 1):
        answer = ask(shell, append, decoder.encode(block), BLOCK_TIMEOUT_S)
        if b"whole" in answer.output.split():
            return
    if size <= SMALLEST_BLOCK:
        raise TargetError(f"{shell.name}: a block of the agent does not arrive whole: {answer.words()}")
    for at in range(0, len(block), size // 4):
        _send_block(shell, decoder, block[at : at + size // 4], arrived, size // 4)


_CHECK = "{ sha256sum || md5sum || cksum || echo =$(wc -c); }"
"""A tool that is not there leaves its input to the next one."""


def _if_whole(check: str, content: bytes, then: str) -> str:
    """A command line that does something if the check says that it read this content."""
    sha256, md5 = hashlib.sha256(content).hexdigest(), hashlib.md5(content, usedforsecurity=False).hexdigest()
    sums = f'{sha256}*|{md5}*|"{posix_checksum(content)} {len(content)}"*|={len(content)}'
    return f'case "$({check} 2>/dev/null)" in {sums}) {then};; esac'


def _ask_well(shell: Shell, command: str) -> None:
    answer = ask(shell, command)
    if answer.status:
        raise TargetError(f"{shell.name}: the agent cannot be kept there: {answer.words()}")
