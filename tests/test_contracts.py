# SPDX-License-Identifier: Apache-2.0
"""Every plug-in against the contract of its folder (the docstring of the folder's ``__init__.py``)."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import click
import pytest
from analysis_records import MS, block, record
from app_cases import TABLE, app_record
from click.testing import CliRunner
from stage_records import staged

from rtproof import exporters, targets
from rtproof.cli import commands
from rtproof.cli.main import cli, main
from rtproof.core import plugins
from rtproof.core.errors import UserError
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis
from rtproof.judge.doubts.registry import RULES, SAID_BY_CHECKS
from rtproof.judge.doubts.result_row import ResultClaim
from rtproof.record.requirement import Requirement
from rtproof.report import blocks, formats, sections
from rtproof.report.section_list import SECTIONS, ReportSection, sections_of

KINDS = (commands, exporters, formats, targets)


class Plugin(NamedTuple):
    package: ModuleType
    name: str

    def load(self) -> Any:
        return plugins.load_plugin(self.package, self.name)

    def __str__(self) -> str:
        return f"{self.package.__name__.removeprefix('rtproof.')}.{self.name}"


def every(*kinds: ModuleType) -> pytest.MarkDecorator:
    found = [Plugin(package, name) for package in kinds for name in plugins.plugin_names(package)]
    return pytest.mark.parametrize("plugin", found, ids=str)


@pytest.fixture(scope="module", params=["refuted", "not asked", "no samples", "several fields", "application"])
def analysis(request: pytest.FixtureRequest) -> Analysis:
    if request.param == "no samples":
        return analyse(record([]), Requirement(MS), 1)
    if request.param == "application":
        return analyse(app_record(TABLE, TABLE[:1]), Requirement(MS), 1)
    if request.param == "several fields":
        return analyse(staged({"irq": [900, 800], "task": [2_000, 3_000]}, {"irq": [700], "task": [5_000]}), None, 1)
    ran = block([10_000, -300, 2_500_000, 20_000, 10_000], {2: 2})
    return analyse(record([ran]), Requirement(500_000) if request.param == "refuted" else None, 1)


def test_listing_and_loading_plugins_leaves_heavy_libraries_alone() -> None:
    packages = ", ".join(kind.__name__ for kind in KINDS)
    load = f"[plugins.load_plugins(kind) for kind in ({packages})]"
    code = f"import sys, {packages}; from rtproof.core import plugins; {load}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "rtproof.exporters.parquet" in loaded
    assert not {"duckdb", "scipy", "pyarrow"} & set(loaded)


@every(commands)
def test_a_command_has_the_name_of_its_file_and_tells_about_itself(plugin: Plugin) -> None:
    command = plugin.load().command
    assert isinstance(command, click.Command)
    assert command.name == plugin.name
    assert command.get_short_help_str()
    assert CliRunner().invoke(command, ["--help"], prog_name=plugin.name, **cli.context_settings).exit_code == 0
    for each in with_subcommands(command):
        for parameter in each.params:
            assert isinstance(parameter, click.Argument) or getattr(parameter, "help", None), (
                f"{parameter.name} has no help"
            )


def with_subcommands(command: click.Command) -> Iterator[click.Command]:
    yield command
    if isinstance(command, click.Group):
        for child in command.commands.values():
            yield from with_subcommands(child)


@every(commands)
def test_a_command_refuses_what_it_does_not_know_in_one_line(
    plugin: Plugin, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([plugin.name, "--no-such-option"]) == (1 if plugin.name == "cyclictest" else 2)
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "--no-such-option" in err


@every(exporters)
def test_an_exporter_writes_a_file_and_says_so_or_refuses_and_leaves_none(
    plugin: Plugin, analysis: Analysis, tmp_path: Path
) -> None:
    module = plugin.load()
    path = tmp_path / f"out{module.SUFFIX}"
    try:
        sentence = module.export(analysis, path, {})
    except UserError:
        picky = hasattr(module, "NEEDS")
        assert picky or analysis.pooled.obtained == 0, "only a record without samples may be refused"
        assert not path.exists()
        return
    assert sentence
    assert "\n" not in sentence
    assert path.stat().st_size > 0


@every(exporters)
def test_an_exporter_never_writes_over_a_file(plugin: Plugin, analysis: Analysis, tmp_path: Path) -> None:
    module = plugin.load()
    path = tmp_path / f"mine{module.SUFFIX}"
    path.write_text("mine")
    with pytest.raises(UserError):
        module.export(analysis, path, {})
    assert path.read_text() == "mine"


@every(exporters)
def test_an_exporter_refuses_option_values_without_sense(plugin: Plugin, analysis: Analysis, tmp_path: Path) -> None:
    module = plugin.load()
    for option in set(module.OPTIONS) - set(getattr(module, "FREE", ())):
        with pytest.raises(UserError):
            module.export(analysis, tmp_path / "out", {option: "no such value"})
        assert not (tmp_path / "out").exists()


def test_no_module_of_the_sections_is_left_out_of_the_list() -> None:
    assert {section.module for section in SECTIONS} == set(plugins.plugin_names(sections))


def test_each_section_of_the_list_has_its_function() -> None:
    modules = {section: plugins.load_plugin(sections, section.module) for section in SECTIONS}
    assert [each.name for each, module in modules.items() if not hasattr(module, f"{each.name}_section")] == []


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)
def test_a_section_renders_whole_blocks_and_the_same_ones_again(section: ReportSection, analysis: Analysis) -> None:
    assert section.title
    if section not in sections_of(analysis):
        return
    rendered = section.draw(analysis)
    assert isinstance(rendered, list)
    assert rendered
    assert rendered == section.draw(analysis)
    for each in rendered:
        complain(each)


def complain(each: blocks.Block) -> None:
    """Fails for a block that a format could not draw or nobody could have read aloud."""
    match each:
        case blocks.Text():
            assert all(each.paragraphs)
            assert each.kind in {"normal", "good", "bad", "doubt", "code"}
        case blocks.Table():
            assert each.caption
            assert {len(row) for row in each.rows} <= {len(each.header)}
            assert all(column < len(each.header) for column in each.numeric)
        case blocks.Plot():
            assert each.says
            assert all(len(curve.x) == len(curve.y) for curve in each.curves)
        case blocks.HeatMap():
            assert each.says
            assert len(each.rows) == len(each.y_edges) - 1
            assert {len(row) for row in each.rows} <= {len(each.x_edges) - 1}
        case blocks.Bars():
            assert each.says
            assert {part.kind for _, parts in each.bars for part in parts} <= set(each.kinds)
            assert all(0 <= part.begin < part.end <= each.end for _, parts in each.bars for part in parts)
        case _:
            pytest.fail(f"{each} is no block")


EVERY_BLOCK = (
    blocks.Text(("the first paragraph",)),
    blocks.Text(("rtproof run --duration 20s",), "code"),
    blocks.Table("latencies", ("thread", "max"), (("cpu 0", "12 us"),), (1,)),
    blocks.Table("folded latencies", ("thread", "max"), (("cpu 1", "13 us"),), (1,), folded=True),
    blocks.Plot("histogram", "falls steeply", "latency", "count", (blocks.Curve("cpu 2", (1.0, 2.0), (5.0, 0.0)),)),
    blocks.Plot(
        "empty", "nothing to see", "latency", "count", (), (blocks.Marker("limit", "x", 1.0),), True, True, "step"
    ),
    blocks.HeatMap("over time", "stays low", "time", "latency", (0.0, 1.0, 2.0), (1.0, 10.0), ((3, 0),)),
    blocks.Bars(
        "bars", "all red", "us", ("red",), (("first bar", (blocks.BarPart("red", 0.0, 2.0, "it is red"),)),), 4.0
    ),
)
THEIR_WORDS = (
    *("the first paragraph", "rtproof run --duration 20s", "latencies", "12 us", "folded latencies", "13 us"),
    *("histogram", "falls steeply", "empty", "nothing to see", "over time", "stays low"),
    *("bars", "all red"),
)


@every(formats)
def test_a_format_draws_every_kind_of_block_and_always_the_same(plugin: Plugin) -> None:
    module = plugin.load()
    assert module.SUFFIX.startswith(".")
    parts = [blocks.Section("all", "All there is", EVERY_BLOCK)]
    drawn = module.draw("A title", parts)
    assert drawn == module.draw("A title", parts)
    if not {"ONLY_PLOTS", "ONLY_PART"} & vars(module).keys():
        text = drawn.decode()
        assert [words for words in ("A title", "All there is", *THEIR_WORDS) if words not in text] == []


@every(targets)
def test_a_target_that_needs_no_options_opens_and_offers_what_a_target_offers(plugin: Plugin) -> None:
    module = plugin.load()
    if module.OPTIONS:
        pytest.skip("whether it can be opened depends on its options")
    offered = {method for method in vars(targets.Target) if not method.startswith("_")}
    with module.open_target({}) as target:
        assert [method for method in offered if not callable(getattr(target, method, None))] == []


@pytest.mark.parametrize("code", RULES)
def test_a_rule_has_nothing_against_a_row_that_tells_nothing(code: str) -> None:
    rows = [ResultClaim("a"), ResultClaim("b", group="g"), ResultClaim("c", group="g")]
    assert list(RULES[code]([])) == list(RULES[code](rows)) == []


def test_no_doubt_stands_for_two_rules() -> None:
    cited = [code for codes in SAID_BY_CHECKS.values() for code in codes]
    assert set(SAID_BY_CHECKS) <= set(RULES)
    assert len({*RULES, *cited}) == len(RULES) + len(cited)
