# SPDX-License-Identifier: Apache-2.0
"""A sector of a record is zeroed, flipped, cut or repeated: no verdict becomes better than that of the whole record."""

from pathlib import Path

import pytest
from inputs_sectors import BETTER, SECTOR, SPOILS, drawn, tried

GOLDEN = Path(__file__).parent / "data" / "golden"


@pytest.mark.parametrize("kind", SPOILS)
def test_no_damaged_sector_makes_a_verdict_better(kind: str, tmp_path: Path) -> None:
    """PROVEN stood over a zeroed sector with the only exceedance, and over a run that ended REFUTED."""
    path = GOLDEN / "x86_64.rtrec"
    sectors = range(0, -(-path.stat().st_size // SECTOR), 2)
    ends = tried(path, [(kind, sector) for sector in sectors], 1, tmp_path)
    assert [each for each in ends if each.startswith(BETTER)] == []
    assert ends.total() == len(sectors)


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(GOLDEN.glob("[!f]*-1.[23].rtrec")), ids=lambda path: path.stem)
def test_no_damaged_sector_of_any_machines_record(path: Path, tmp_path: Path) -> None:
    ends = tried(path, drawn(path, 200, 1), 1, tmp_path)
    assert [each for each in ends if each.startswith(BETTER)] == []
    assert ends.total() == 200
