# SPDX-License-Identifier: Apache-2.0
"""Where in its program a late thread slept: from the addresses of its stack to the functions of a file."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from explain_cases import DUE_NS, HOG, LITTLE, VICTIM, Cpu, pages_of, traced_run
from test_elf_symbols import BASE, CODE_AT, FUNC, Elf

from rtproof.explain.causes import Cause
from rtproof.explain.explanation import Explanation, explain
from rtproof.explain.program_waits import file_namer
from rtproof.explain.trace_events import TraceEvent
from rtproof.record.contents import Moment, Record, SystemFile
from rtproof.report.blocks import Table, Text
from rtproof.report.sections.explained import budget_blocks, explained_blocks

Stack = tuple[int, tuple[int, ...]]
LOADED, PROCESS = 0x7F00_0000_0000, 77
US = 1_000
SEEN_NS = DUE_NS + 4_000 * US
"""When the files of the process were seen."""


def late_by_a_lock() -> Record:
    """The victim runs for 10 us, sleeps until the hog wakes it 3 ms later, and ends."""
    cpu = Cpu().timer(0).to_victim(5 * US)
    cpu.switch(15 * US, HOG, state=1)
    cpu.add(3015 * US, "sched_waking", comm="victim", pid=VICTIM, prio=19, target_cpu=0)
    cpu.to_victim(3020 * US).switch(3100 * US, HOG, state=1)
    return traced_run([3_050 * US], cpu)


def with_waits(record: Record, maps: str, *stacks: Stack, exec_ns: int | None = None) -> Record:
    """The record with the stacks of the victim at these times. exec_ns: when it begins to run its program."""
    origin_ns = record.begin.origin_monotonic_ns
    events = [
        TraceEvent(origin_ns + DUE_NS + at, 0, "user_stack", 0, 0, VICTIM, {"tgid": PROCESS, "caller": each})
        for at, each in stacks
    ]
    if exec_ns is not None:
        began_ns = origin_ns + DUE_NS + exec_ns
        events.append(TraceEvent(began_ns, 0, "sched_process_exec", 0, 0, PROCESS, {"pid": PROCESS}))
    events.sort(key=lambda event: event.time_ns)
    contents = {"waits/cpu0": pages_of(events, LITTLE), "waits/maps": maps.encode()}
    files = tuple(SystemFile(0, Moment.END, f"trace/{name}", 0, False, each) for name, each in contents.items())
    return replace(record, files=(*record.files, *files))


def program(folder: Path) -> Path:
    file = folder / "app"
    file.write_bytes(Elf().of((("cycle", BASE + CODE_AT + 0x100, FUNC), ("take", BASE + CODE_AT + 0x200, FUNC))))
    return file


def mapped(file: Path, inode: int | None = None, process: int = PROCESS) -> str:
    number = file.stat().st_ino if inode is None else inode
    head = f"process {process} {SEEN_NS}\n"
    return f"{head}{LOADED:x}-{LOADED + 0x800:x} r-xp {CODE_AT:08x} fe:00 {number}                     {file}\n"


EARLIER = (-500 * US, (LOADED + 0x100,))
STACK = (16 * US, (LOADED + 0x210, LOADED + 0x108, LOADED + 0x300))
ADDRESSES = ("0x7f0000000210", "0x7f0000000108", "0x7f0000000300")
PLACES = ("take", "cycle", "app+0x1300")


def waits_of(found: Explanation) -> dict[Cause, tuple[str, ...]]:
    return {part.cause.cause: part.waits_in for part in found.budgets[0].parts}


@pytest.mark.parametrize(
    ("maps", "stacks", "exec_ns", "places"),
    [
        ({}, (EARLIER, STACK, (50 * US, EARLIER[1])), None, PLACES),
        ({"inode": 1}, (STACK,), None, ("app+0x1210", "app+0x1108", "app+0x1300")),  # another file by now
        ({"process": PROCESS + 1}, (STACK,), None, ADDRESSES),
        ({}, (STACK,), 20 * US, ADDRESSES),  # another program of the process
        ({}, (STACK,), 10 * US, PLACES),
        ({}, (STACK,), 5_000 * US, PLACES),
        ({}, ((-500 * US, STACK[1]),), None, ()),  # the stack of an earlier sleep
        ({}, ((3_200 * US, STACK[1]),), None, ()),  # what came before the oldest stack is not known
    ],
)
def test_the_functions_in_which_it_slept_have_their_names_where_these_are_sure(
    maps: dict[str, int], stacks: Sequence[Stack], exec_ns: int | None, places: tuple[str, ...], tmp_path: Path
) -> None:
    record = with_waits(late_by_a_lock(), mapped(program(tmp_path), **maps), *stacks, exec_ns=exec_ns)
    waits = waits_of(explain(record, US))
    assert waits.pop(Cause.BLOCKED) == places
    assert set(waits.values()) == {()}


def test_code_of_no_file_keeps_its_address() -> None:
    maps = f"process {PROCESS} {SEEN_NS}\n"
    maps += f"{LOADED + 0x100:x}-{LOADED + 0x200:x} --xp 00000000 00:00 0      [uprobes]\n"
    found = explain(with_waits(late_by_a_lock(), maps, STACK), US)
    assert waits_of(found)[Cause.BLOCKED] == ("0x7f0000000210", "[uprobes]", "0x7f0000000300")


def test_the_report_says_where(tmp_path: Path) -> None:
    record = with_waits(late_by_a_lock(), mapped(program(tmp_path)), STACK)
    found = explain(record, US)
    lines = [line for each in explained_blocks(found, record) if isinstance(each, Text) for line in each.paragraphs]
    assert "98.4 % of the time the late thread slept in app+0x1300 > cycle > take (1 late activation)." in lines
    table = budget_blocks(found, 8)[-1]
    assert isinstance(table, Table)
    assert [row[-1] for row in table.rows] == ["take < cycle < app+0x1300"]


def test_a_file_is_named_by_its_device_and_inode(tmp_path: Path) -> None:
    record = with_waits(
        late_by_a_lock(), mapped(program(tmp_path), inode=7) + "7f02-7f03 r--s 0 08:11 7 /srv/a\x1bb c\n"
    )
    name = file_namer(record)
    assert name("254:0", 7) == f"{tmp_path / 'app'} on 254:0"
    assert name("8:17", 7) == "/srv/a\N{REPLACEMENT CHARACTER}b c on 8:17"
    assert name("8:17", 8) == "with inode 8 on 8:17"
