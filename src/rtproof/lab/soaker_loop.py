# SPDX-License-Identifier: Apache-2.0
"""Find the loop of the soaker in its program, so that its instructions can be told from those of other programs."""

from rtproof.vm.kernel_files import PT_LOAD, elf_segments

SOAKER_NOPS = 16
_NOPS = {62: (b"\x90",), 183: (b"\x1f\x20\x03\xd5",), 40: (b"\x00\xf0\x20\xe3", b"\x00\xbf")}
"""The instruction that does nothing, by the machine's number in an ELF file: x86-64, ARM of 64 bits and of 32 bits."""
_LONGEST_JUMP = 5


def idle_loop(program: bytes) -> tuple[int, int]:
    """The addresses of the soaker's loop, from and to, in its ELF file; twice 0 if there is none.

    The loop is SOAKER_NOPS times the instruction that does nothing, and the jump back.
    """
    nops = _NOPS.get(int.from_bytes(program[18:20], "little"), ())
    found = [(program.find(nop * SOAKER_NOPS), len(nop) * SOAKER_NOPS + _LONGEST_JUMP) for nop in nops]
    for place, length in found:
        start = _address_of(program, place) if place >= 0 else 0
        if start:
            return start, start + length
    return 0, 0


def _address_of(elf: bytes, place: int) -> int:
    """The address of a byte of an ELF file when it runs; 0 if no part of it is loaded from there."""
    loaded = ((offset, address, length) for kind, offset, address, length in elf_segments(elf) if kind == PT_LOAD)
    return next((address + place - start for start, address, length in loaded if start <= place < start + length), 0)
