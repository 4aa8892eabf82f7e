# SPDX-License-Identifier: Apache-2.0
"""Files of figures that are no time on any machine say so themselves, whatever becomes of the sentence beside them."""

from dataclasses import replace
from pathlib import Path

import pytest
from analysis_records import fact
from app_cases import TABLE, app_record
from export_cases import limited_record
from stage_records import VIRTUAL

from rtproof import exporters
from rtproof.core import plugins
from rtproof.judge.analyse import analyse
from rtproof.record.contents import Fact, Record
from rtproof.summary import recorded_facts

PLAYED = fact("simulated", "poisson,seed=1")
WORDS = {VIRTUAL: recorded_facts.VIRTUAL_TIME_SENTENCE, PLAYED: recorded_facts.SIMULATED_SENTENCE}
FORMATS = [module for module in plugins.load_plugins(exporters) if "trace" not in module.SUFFIX]


def record_for(suffix: str) -> Record:
    return app_record(TABLE, comment="words") if "app" in suffix else limited_record()


@pytest.mark.parametrize("marked", [(), (VIRTUAL,), (PLAYED,), (VIRTUAL, PLAYED)])
@pytest.mark.parametrize("suffix", [module.SUFFIX for module in FORMATS])
def test_what_is_no_time_is_said_in_the_file_and_beside_it(
    tmp_path: Path, suffix: str, marked: tuple[Fact, ...]
) -> None:
    if suffix == ".parquet":
        pytest.importorskip("duckdb")
    (module,) = (each for each in FORMATS if suffix == each.SUFFIX)
    made = record_for(suffix)
    path = tmp_path / f"a{suffix}"
    sentence = module.export(analyse(replace(made, facts=(*made.facts, *marked))), path, {})
    content = path.read_bytes()
    for kind, words in WORDS.items():
        assert (words.encode() in content) == (words in sentence) == (kind in marked)


def test_all_formats_of_figures_are_looked_at() -> None:
    assert {".csv", ".app.csv", ".bins.csv", ".exceedances.csv", ".hist.txt", ".hlog", ".parquet"} <= {
        each.SUFFIX for each in FORMATS
    }
