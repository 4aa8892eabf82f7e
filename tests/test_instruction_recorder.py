# SPDX-License-Identifier: Apache-2.0
"""QEMU's plugin without QEMU: a small library stands in its place and says which blocks of code a guest runs."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from rtproof.lab.cell_explanation import WantedRecordings, build_plugin
from rtproof.lab.executed_code import parse_blocks

MARK, LENGTH = 0x1000, 3
WHOLE: Mapping[int, int] = MappingProxyType({})
STAND_IN = """
#include "qemu_plugin_api.h"
static char cpus[4];
__thread void *current_cpu = cpus;
void *qemu_get_cpu(int number) { return cpus + number; }
void take_turn(int number) { current_cpu = cpus + number; }
struct qemu_plugin_tb { uint64_t address; };
static qemu_plugin_vcpu_tb_trans_cb_t translate;
static qemu_plugin_vcpu_udata_cb_t run;
static void *argument;
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, qemu_plugin_vcpu_tb_trans_cb_t call)
{ (void)id; translate = call; }
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, qemu_plugin_vcpu_udata_cb_t call,
    enum qemu_plugin_cb_flags flags, void *of)
{ (void)tb; (void)flags; run = call; argument = of; }
void qemu_plugin_register_vcpu_idle_cb(qemu_plugin_id_t id, qemu_plugin_vcpu_simple_cb_t call) { (void)id; (void)call; }
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb) { (void)tb; return 3; }
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb) { return tb->address; }
struct qemu_plugin_insn { uint64_t address; } instruction;
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index)
{ instruction.address = tb->address + 4 * index; return &instruction; }
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn) { return insn->address; }
static qemu_plugin_vcpu_udata_cb_t count;
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, qemu_plugin_vcpu_udata_cb_t call,
    enum qemu_plugin_cb_flags flags, void *of)
{ (void)insn; (void)flags; count = call; (void)of; }
static uint64_t *number;
#ifdef BEFORE_9
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn, enum qemu_plugin_op op, void *of,
    uint64_t by)
{ (void)insn; (void)op; number = of; (void)by; }
#endif
void execute(uint64_t address, unsigned int instructions)
{
    struct qemu_plugin_tb tb = { address };
    translate(0, &tb);
    run(0, argument);
    for (; instructions; instructions--)
        number ? (void)++*number : count(0, 0);
}
"""
GUEST = """
import ctypes, os, struct, sys
stand_in = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
words = [word.encode() for word in sys.argv[3:]]
cpus = int(os.environ.get("CPUS", "0"))
info = struct.pack("P2i?3x2i", 0, 1, 2, True, cpus, cpus) if cpus else None
code = ctypes.CDLL(sys.argv[2]).qemu_plugin_install(0, info, len(words), (ctypes.c_char_p * len(words))(*words))
stand_in.execute.argtypes = [ctypes.c_uint64, ctypes.c_uint]
cut = dict(map(int, word.split(":")) for word in os.environ.get("CUT", "").split())
for turn in range(6 if code == 0 else 0):
    for address in (0x1000, int(os.environ.get("SECOND", 0x2000 + turn)), 0x3000 + turn):
        stand_in.take_turn(turn % (cpus or 1))
        stand_in.execute(address, cut.get(address, 3))
sys.exit(-code)
"""
"""Six passes of the mark, each with two more blocks behind it. In a process of its own: a plugin is loaded once.

With several processors, each pass is of the next one. The stand-in names processor 0 to the plugin for all of them,
as QEMU 10 does.
"""


@pytest.fixture(scope="module", params=["-DBEFORE_9", "-DFROM_9"])
def stand_in(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("there is no C compiler here")
    folder = tmp_path_factory.mktemp("stand-in")
    (folder / "qemu.c").write_text(STAND_IN)
    headers = Path(__file__).parent.parent / "qemu_plugin"
    words = [compiler, "-shared", "-fPIC", request.param, f"-I{headers}", f"{folder}/qemu.c", "-o", f"{folder}/qemu.so"]
    subprocess.run(words, check=True)
    return folder / "qemu.so"


def run_guest(
    stand_in: Path, words: list[str], cpus: int = 0, cut: Mapping[int, int] = WHOLE, second: int = 0
) -> subprocess.CompletedProcess[str]:
    """cpus: 0 for a QEMU that tells nothing of its machine. cut: how many instructions run of the block at an address.

    second: the address of each second block, if it is the same in all turns.
    """
    python = [sys.executable, "-c", GUEST, str(stand_in), str(build_plugin())]
    environment = os.environ | {"CPUS": str(cpus), "CUT": " ".join(f"{at}:{n}" for at, n in cut.items())}
    environment |= {"SECOND": str(second)} if second else {}
    return subprocess.run([*python, *words], capture_output=True, text=True, check=False, env=environment)


def recorded(
    stand_in: Path, folder: Path, wanted: WantedRecordings, cut: Mapping[int, int] = WHOLE, second: int = 0
) -> dict[str, tuple[list[int], list[int], int]]:
    """The files: addresses and beginnings of the blocks, and how many were dropped."""
    words = wanted.words(Path("plugin"), folder / "blocks").split(",")[1:]
    done = run_guest(stand_in, words, cut=cut, second=second)
    assert done.returncode == 0, done.stderr
    found = {file.name: parse_blocks(file.read_bytes()) for file in folder.iterdir()}
    return {name: (each.address.tolist(), each.start_ns.tolist(), each.dropped) for name, each in found.items()}


def test_each_wanted_pass_has_a_recording_from_so_many_passes_earlier(stand_in: Path, tmp_path: Path) -> None:
    """Pass 0 has nothing before it, passes 3 and 4 share a part, and pass 9 never comes."""
    found = recorded(stand_in, tmp_path, WantedRecordings(MARK, (0, 3, 4, 9), 2, 100))
    second = [MARK, 0x2001, 0x3001, MARK, 0x2002, 0x3002]
    third = [MARK, 0x2002, 0x3002, MARK, 0x2003, 0x3003]
    assert found == {
        "blocks.0": ([], [], 0),
        "blocks.3": (second, [LENGTH * at for at in range(3, 9)], 0),
        "blocks.4": (third, [LENGTH * at for at in range(6, 12)], 0),
    }


def test_a_block_that_an_exception_ends_has_no_more_time_than_its_instructions(stand_in: Path, tmp_path: Path) -> None:
    """Of the block at 0x2001 the second instruction faults. It counts when it is repeated."""
    found = recorded(stand_in, tmp_path, WantedRecordings(MARK, (2,), 1, 100), {0x2001: 2})
    assert found["blocks.2"] == ([MARK, 0x2001, 0x3001], [9, 12, 13], 0)


def test_an_instruction_that_speaks_to_a_device_ends_its_block_and_counts(stand_in: Path, tmp_path: Path) -> None:
    """The block of the mark is ended by its second instruction, and goes on at its third."""
    found = recorded(stand_in, tmp_path, WantedRecordings(MARK, (2,), 1, 100), {MARK: 2}, second=MARK + 8)
    assert found["blocks.2"] == ([MARK, MARK + 8, 0x3001], [8, 10, 13], 0)


def test_a_recording_that_is_longer_than_its_room_keeps_the_end(stand_in: Path, tmp_path: Path) -> None:
    found = recorded(stand_in, tmp_path, WantedRecordings(MARK, (1, 5), 3, 4))
    assert found == {
        "blocks.1": ([MARK, 0x2000, 0x3000], [0, 3, 6], 0),
        "blocks.5": ([0x3003, MARK, 0x2004, 0x3004], [33, 36, 39, 42], 5),
    }


def test_only_the_passes_on_one_processor_are_counted_if_so_wished(stand_in: Path, tmp_path: Path) -> None:
    """Passes 1, 3 and 5 are of processor 1, and count as 0, 1 and 2."""
    words = WantedRecordings(MARK, (1,), 1, 100, 1).words(Path("plugin"), tmp_path / "blocks").split(",")[1:]
    done = run_guest(stand_in, words, cpus=2)
    assert done.returncode == 0, done.stderr
    found = parse_blocks((tmp_path / "blocks.1").read_bytes())
    assert found.address.tolist() == [MARK, 0x2001, 0x3001, MARK, 0x2002, 0x3002]
    assert found.cpu.tolist() == [1, 1, 1, 0, 0, 0]
    assert found.start_ns.tolist() == [LENGTH * at for at in range(3, 9)]
    assert (found.end_cpu, found.end_ns) == (1, LENGTH * 9)
