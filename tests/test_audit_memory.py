# SPDX-License-Identifier: Apache-2.0
"""The checks of memory: what makes each good, a finding, not applicable, or unknown."""

import pytest
from audit_cases import MISSING, judged, made_facts

from rtproof.audit.audit_model import Outcome

GOOD, FINDING, UNKNOWN, CONFLICTING = Outcome.GOOD, Outcome.FINDING, Outcome.UNKNOWN, Outcome.CONFLICTING
NOT_APPLICABLE = Outcome.NOT_APPLICABLE
THP = "/sys/kernel/mm/transparent_hugepage"
VM = "/proc/sys/vm"
SWAPS = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
DISK = SWAPS + "/dev/sda2                               partition\t999420\t\t0\t\t-2\n"
SINGLE = {
    "mem.compact.unevict": (f"{VM}/compact_unevictable_allowed", "0", "1", GOOD),
    "mem.compact.pro": (f"{VM}/compaction_proactiveness", "0", "20", GOOD),
    "mem.stat": (f"{VM}/stat_interval", "10", "1", NOT_APPLICABLE),
    "mem.zone_reclaim": (f"{VM}/zone_reclaim_mode", "0", "1", NOT_APPLICABLE),
    "mem.swap": ("/proc/swaps", SWAPS, DISK, GOOD),
    "mem.overcommit": (f"{VM}/overcommit_memory", "2", "0", UNKNOWN),
    "mem.thp": (f"{THP}/enabled", "always [madvise] never", "[always] madvise never", GOOD),
}
"""Of each check that rests on one file: the file, a good value, a bad one, and the outcome if there is none."""


@pytest.mark.parametrize("check", SINGLE)
def test_one_file_decides(check: str) -> None:
    path, good, bad, absent = SINGLE[check]
    assert judged(check, made_facts({path: f"{good}\n"})).outcome is GOOD
    found = judged(check, made_facts({path: f"{bad}\n"}))
    assert found.outcome is FINDING
    assert path in [value.path for value in found.read]
    assert judged(check, made_facts({path: MISSING})).outcome is absent
