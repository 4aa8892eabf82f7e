# SPDX-License-Identifier: Apache-2.0
"""Results that an earlier version left are still read.

The code of commit 537db1b wrote the files in tests/data/written_by_537db1b: ``rtproof run --profile`` with the agent of
``fake_agent``, one cell of which failed, and ``bench/stats.py --short 01h_seconds 01i_pairs``. The reports were left
out, and the white space of result.json. bench.json is not there: no program reads it.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rtproof.cli.main import main
from rtproof.experiment import campaign_folder
from rtproof.record import run_folder
from rtproof.schema.published import ANALYSIS_VERSION

OLD = Path(__file__).parent / "data" / "written_by_537db1b"
CAMPAIGN = OLD / "campaign"
RUN = CAMPAIGN / "cells" / "good"


def paths(data: Any, place: str = "") -> Iterator[str]:
    """Every place in plain data, with the kind of value there; elements of a list are not told apart."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from paths(value, f"{place}.{key}")
    elif isinstance(data, list):
        for value in data:
            yield from paths(value, f"{place}[]")
    else:
        yield f"{place}: {'number' if isinstance(data, float) else type(data).__name__}"


def test_the_run_json_has_what_was_asked() -> None:
    info = run_folder.open_run(RUN).info
    assert info is not None
    assert (info.schema_version, info.target, info.rtproof_version) == (3, "local", "0.1.0")
    (asked,) = info.requirements
    assert (asked.limit_ns, asked.at_most_ns, asked.confidence) == (10**9, 3_600 * 10**9, 0.95)
    assert (asked.gap_ns, asked.longest_ns, asked.bunches) == (60 * 10**9, 600 * 10**9, 1.0)


def test_the_campaign_json_has_its_cells() -> None:
    found = campaign_folder.read_campaign_file(CAMPAIGN)
    assert found.command == "rtproof run --profile own.toml --agent ./agent-does_its_load --output campaign"
    assert [cell.key for cell in found.profile.cells] == ["good", "refuses"]
    assert found.profile.cells[0].options == {"period": "1ms", "load": ("good",)}
    assert [claim.limit_ns for claim in found.profile.claims] == [10**9]
    assert found.article is not None
    assert found.article.name == "ten-ms"


def test_the_campaign_is_shown_with_every_key_that_it_had(capsys: pytest.CaptureFixture[str]) -> None:
    before = json.loads((CAMPAIGN / "result.json").read_bytes())
    assert main(["show", str(CAMPAIGN), "--json"]) == before["exit_code"] == 2
    now = json.loads(capsys.readouterr().out)
    good, refused = (cell["results"][0] for cell in now["cells"])
    old_good, old_refused = (cell["results"][0] for cell in before["cells"])
    assert (old_good["analysis"]["version"], good["analysis"]["version"]) == (3, ANALYSIS_VERSION)
    assert good["analysis"]["pooled"] == old_good["analysis"]["pooled"]
    assert (refused["analysis"], refused["failure"]) == (None, old_refused["failure"])
    old_good["report"] = None  # the page is not stored
    gone = ".cells[].results[].analysis.record.preemption_model.pipeline: NoneType"  # since version 8
    assert set(paths(before)) - set(paths(now)) == {gone}
