# SPDX-License-Identifier: Apache-2.0
"""usage: preset_table.py [FACTS]    puts the setup lists of articles into docs/reference/setup-lists.md

Without FACTS a guest is booted and its facts are collected. It gets the file of its kernel's options, which the guest
of the lab does not have by itself.
"""

import sys
from pathlib import Path

from lab_table import put

from rtproof.audit.facts import AuditRequest, Facts
from rtproof.audit.presets import preset_names
from rtproof.audit.setup_list import PresetResult, judge_preset, read_preset
from rtproof.experiment.audited_system import collect, read_facts
from rtproof.record.contents import Record
from rtproof.report.pages.audit_page import AS_ASKED
from rtproof.vm.cache_folders import lab_cache

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "setup-lists.md"
BEGIN, END = "<!-- tools/preset_table.py writes from here -->\n", "<!-- to here: the setup lists -->"
KERNEL = "debian-6.1-rt"


def guest_facts() -> Record:
    """Boot a guest and collect its facts."""
    (options,) = (lab_cache() / "kernels" / KERNEL / "boot").glob("config-*")
    return collect("qemu", (("kernel", KERNEL), ("files", f"/boot/{options.name}={options}")))


def tables(record: Record) -> str:
    """Return a table for each list in Markdown."""
    parts = []
    for name in preset_names():
        preset = read_preset(name)
        result = judge_preset(Facts(record, AuditRequest(purpose=preset.purpose)), preset)
        command = f"    rtproof audit --for {name} --target qemu --target-option kernel={KERNEL}"
        parts.append(f"## {preset.title}\n\n{command}\n\n{preset_markdown(result)}")
    begin = record.begin
    return "\n".join([*parts, f"Read in {begin.kernel_release}, {begin.machine}.\n"])


def preset_markdown(result: PresetResult) -> str:
    """A table: what the article did, whether the system has it, the check, and where today's knowledge differs."""
    rows = ["| the article | has it | this system | check | today |", "|---|---|---|---|---|"]
    for one in result.settings:
        article = f"`{one.setting.asked}`: {one.setting.said} ({one.setting.where})"
        check = f"`{one.check.check.id}`: {one.check.outcome.value}" if one.check else "none"
        cells = (article, AS_ASKED[one.outcome], one.has, check, " ".join(one.differs))
        rows.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    put(PAGE, tables(read_facts(Path(sys.argv[1])) if sys.argv[1:] else guest_facts()), BEGIN, END)
