# SPDX-License-Identifier: Apache-2.0
"""Every export format of a run whose activations have several values."""

from pathlib import Path
from types import ModuleType

import pytest
from stage_records import VIRTUAL, staged

from rtproof import exporters
from rtproof.core import plugins
from rtproof.exporters import _columns, bins, csv, cyclictest, hdr, parquet
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis

LINES = """thread,cpu,field,activation,due_ns,latency_ns,missed_after
0,0,irq,0,0,1000,1
0,0,irq,2,2000000,2500,0
0,0,task,0,0,7000,1
0,0,task,2,2000000,9000,0
"""


def analysis() -> Analysis:
    return analyse(staged({"irq": [1_000, 2_500], "task": [7_000, 9_000]}, gaps={0: 1}))


def written(module: ModuleType, folder: Path, made: Analysis, **options: str) -> tuple[str, str]:
    """The sentence and the file."""
    path = folder / f"a{module.SUFFIX}"
    sentence: str = module.export(made, path, options)
    return sentence, path.read_text()


def test_csv_has_a_line_for_each_value_and_a_column_for_its_field(tmp_path: Path) -> None:
    sentence, text = written(csv, tmp_path, analysis())
    assert text == LINES
    assert "4 samples;" in sentence


def test_parquet_has_the_same_rows(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    parquet.export(analysis(), tmp_path / "a.parquet", {})
    with duckdb.connect() as connection:
        found = connection.execute("SELECT * FROM read_parquet(?)", [str(tmp_path / "a.parquet")]).fetchall()
    assert [",".join(map(str, row)) for row in found] == LINES.splitlines()[1:]


def test_bins_have_a_column_for_each_field(tmp_path: Path) -> None:
    _, text = written(bins, tmp_path, analysis(), count="4")
    assert text.splitlines()[0] == "from_ns,to_ns,thread0.irq,thread0.task"
    assert text.splitlines()[2:] == ["0,2000,1,0", "2000,4000,1,0", "4000,6000,0,0", "6000,8000,0,1", "8000,,0,1"]


def test_hdr_has_a_histogram_for_each_field(tmp_path: Path) -> None:
    sentence, text = written(hdr, tmp_path, analysis())
    tags = [line.partition(",")[0] for line in text.splitlines() if line.startswith("Tag=")]
    assert tags == ["Tag=thread0.irq", "Tag=thread0.task"]
    assert ": 2 histograms" in sentence


def test_cyclictest_has_the_judged_field_only_and_says_so(tmp_path: Path) -> None:
    sentence, text = written(cyclictest, tmp_path, analysis())
    assert "# Min Latencies: 00007\n" in text
    assert "# Max Latencies: 00009\n" in text
    assert "of several fields it holds task" in sentence


def test_a_field_cannot_break_the_format() -> None:
    assert _columns.plain('a,b "c"\n;é') == "a_b__c____"


FOR_ALL = [
    name for name in plugins.plugin_names(exporters) if not hasattr(plugins.load_plugin(exporters, name), "NEEDS")
]


@pytest.mark.parametrize("name", FOR_ALL)
def test_what_is_no_time_is_said_with_every_export(name: str, tmp_path: Path) -> None:
    module = plugins.load_plugin(exporters, name)
    if name == "parquet":
        pytest.importorskip("duckdb")
    for number, facts in enumerate([(), (VIRTUAL,)]):
        made = analyse(staged({"irq": [1], "task": [2]}, facts=facts))
        sentence = module.export(made, tmp_path / f"{number}", {})
        assert ("virtual time" in sentence) == bool(facts)


def test_formats_with_room_for_words_say_it_inside(tmp_path: Path) -> None:
    made = analyse(staged({"irq": [1], "task": [2]}, facts=(VIRTUAL,)))
    assert "#[virtual time: instructions" in written(hdr, tmp_path, made)[1]
    assert "\n# virtual time: instructions" in written(cyclictest, tmp_path, made)[1]
