# SPDX-License-Identifier: Apache-2.0
"""The exporters for test services, for Prometheus, and for scripts that read the JSON of cyclictest."""

import json
import re
from pathlib import Path

import pytest
from analysis_records import block, record
from export_cases import small_analysis

from rtproof import importers
from rtproof.core.errors import UserError
from rtproof.exporters import cyclictest_json, openmetrics
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis
from rtproof.record.requirement import Requirement


def judged(limit_ns: int) -> Analysis:
    """A short run with a value of 3 ms: REFUTED by a limit below that, UNDECIDED by others."""
    asked = Requirement(limit_ns, 1_000_000_000, longest_ns=50_000_000, gap_ns=50_000_000)
    return analyse(record([block([1_000, 3_002_500, 500, 1_900_000])]), asked)


def written(module: object, analysis: Analysis, tmp_path: Path, **options: str) -> str:
    module.export(analysis, tmp_path / "a", options)  # type: ignore[attr-defined]
    return (tmp_path / "a").read_text()


SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="[^"]*",?)*)\})? (-?[0-9.e+-]+)')


def metrics(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Every sample by its name. The text has to be one of OpenMetrics: each name declared, # EOF at its end."""
    lines = text.splitlines()
    assert lines.pop() == "# EOF"
    types = {line.split()[2]: line.split()[3] for line in lines if line.startswith("# TYPE ")}
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for line in lines:
        if line.startswith("#"):
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        base = re.sub("_(bucket|count|sum)$", "", match[1])
        assert types[base if types.get(base) == "histogram" else match[1]]
        labels = dict(re.findall(r'([a-z]+)="([^"]*)"', match[2] or ""))
        found.setdefault(match[1], []).append((labels, float(match[3])))
    return found


def test_each_bucket_of_openmetrics_holds_the_values_up_to_its_bound(tmp_path: Path) -> None:
    analysis = small_analysis()
    found = metrics(written(openmetrics, analysis, tmp_path))
    for thread, values_ns in ((0, [-300, 7, 1_000, 70_000, 1_900_000, 3_002_500]), (1, [100, 200, 300])):
        buckets = [each for each in found["rtproof_latency_seconds_bucket"] if each[0]["thread"] == str(thread)]
        for labels, below in buckets:
            bound_ns = float(labels["le"]) * 1e9
            assert below == sum(each <= round(bound_ns) if bound_ns < 1e18 else True for each in values_ns)
        assert buckets[-1][0]["le"] == "+Inf"
        (total,) = (n for labels, n in found["rtproof_latency_seconds_sum"] if labels["thread"] == str(thread))
        assert total == pytest.approx(sum(values_ns) / 1e9)
    assert [n for _, n in found["rtproof_missed_activations"]] == [4, 0]
    assert [n for _, n in found["rtproof_max_latency_seconds"]] == [0.0030025, 3e-07]


def test_openmetrics_has_a_set_of_states_for_each_limit(tmp_path: Path) -> None:
    found = metrics(written(openmetrics, judged(5_000_000), tmp_path))
    states = {labels["verdict"]: n for labels, n in found["rtproof_verdict"]}
    assert states == {"HELD": 0, "EXCEEDED": 0, "PROVEN": 0, "REFUTED": 0, "UNDECIDED": 1, "INVALID": 0}
    assert found["rtproof_verdict"][0][0]["limit"] == "5ms-per-1s"


def test_a_name_that_is_no_name_of_a_metric_is_refused(tmp_path: Path) -> None:
    for name in ("a b", "1a", "ä", ""):
        with pytest.raises(UserError, match="no name of a metric"):
            written(openmetrics, small_analysis(), tmp_path, name=name)
    assert "own_latency_seconds_count" in written(openmetrics, small_analysis(), tmp_path, name="own")


def test_the_json_of_cyclictest_is_read_back(tmp_path: Path) -> None:
    text = written(cyclictest_json, small_analysis(), tmp_path, bins="2000")
    found = importers.read(tmp_path / "a")
    assert found.tool == "cyclictest --json"
    assert [(part.count, part.max_ns, part.overflow) for part in found.parts] == [(6, 3_002_000, 1), (3, 0, 0)]
    assert [part.cpu for part in found.parts] == [0, 3]
    assert json.loads(text)["return_code"] == 0


def test_the_return_code_is_that_of_the_verdict(tmp_path: Path) -> None:
    assert json.loads(written(cyclictest_json, judged(5_000_000), tmp_path))["return_code"] == 4
