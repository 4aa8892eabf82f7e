# SPDX-License-Identifier: Apache-2.0
"""What ``--setup`` tells the guest's shell: before the agent, part of the cell, and no cell is measured if it fails."""

import json
import subprocess
from pathlib import Path

import lab_cases
import pytest
from lab_desk import desk, verifying

from rtproof.cli.main import main
from rtproof.lab.guest_cell import IDLE_LOAD, CellSetting, GuestCell

__all__ = ["desk", "verifying"]

LINE = "echo 2 > /proc/irq/8/smp_affinity"


def cell(*lines: str) -> GuestCell:
    agent = Path(__file__)
    return GuestCell(lab_cases.RT, IDLE_LOAD, CellSetting(setup=lines, setup_must_work=bool(lines)), agent)


def shell(*lines: str) -> subprocess.CompletedProcess[str]:
    """The setup as the job has it, and a last command that stands for the agent."""
    script = "\n".join([*cell(*lines).setting.setup_lines(), "echo measured $WORD"])
    return subprocess.run(["sh", "-c", script], check=False, capture_output=True, text=True, timeout=300)


def test_the_lines_stand_before_the_agent_in_their_order_and_make_another_cell() -> None:
    script = cell("true", LINE).job().script
    assert script.index("true") < script.index(LINE) < script.index("usleep ")
    keys = {cell().key(), cell("true").key(), cell("true", LINE).key(), cell(LINE, "true").key()}
    assert len(keys) == 4


def test_what_works_is_run_in_the_shell_that_starts_the_agent() -> None:
    done = shell("WORD=it; export WORD", "printf '%s\\n' \"it's\"", "( sleep 0 ) &")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "measured it"), done.stderr


@pytest.mark.parametrize("line", ["false", "echo 1 > /dev/null/file", "if", "echo 'it", "no-such-program-here"])
def test_a_line_that_fails_ends_the_cell_with_a_sentence(line: str) -> None:
    done = shell("true", line)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.splitlines()[-1] == f"the setup failed: {line}"


def test_the_result_names_the_lines_and_verify_reads_them(verifying: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--kernel", "debian-6.1", "--preempt", "none", "--load", "idle", "--shifts", "1", "--output", "result"]
    assert main(["lab", "compare", *words, "--setup", LINE, "--setup", " ", "--setup", "true"]) == 0
    file = verifying / "result" / "result.json"
    told = json.loads(file.read_text())
    assert told["setting"]["setup"] == [LINE, "true"]
    page = (verifying / "result" / "page.html").read_text()
    assert "echo 2 &gt; /proc/irq/8/smp_affinity" in page
    capsys.readouterr()
    assert main(["lab", "verify", str(file)]) == 0, capsys.readouterr().out
    told["setting"]["setup"].pop()
    file.write_text(json.dumps(told))
    assert main(["lab", "verify", str(file)]) == 1
    assert "job under idle: " in capsys.readouterr().out
