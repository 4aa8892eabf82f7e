# SPDX-License-Identifier: Apache-2.0

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from rtproof.core import plugins
from rtproof.core.errors import UserError

FILES = {
    "__init__.py": "",
    "late.py": "ORDER = 20",
    "early.py": "ORDER = 10",
    "also_early.py": "ORDER = 10",
    "_helper.py": "raise RuntimeError('helpers are not plug-ins')",
}


@pytest.fixture
def fruits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    folder = tmp_path / "fruits"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("fruits")
    for name in [name for name in sys.modules if name.partition(".")[0] == "fruits"]:
        del sys.modules[name]


def test_the_files_of_the_folder_are_the_plugins(fruits: ModuleType) -> None:
    assert plugins.plugin_names(fruits) == ["also-early", "early", "late"]


def test_a_new_file_is_a_new_plugin(fruits: ModuleType) -> None:
    Path(fruits.__path__[0], "added.py").write_text("ORDER = 15")
    assert plugins.load_plugin(fruits, "added").ORDER == 15


def test_order_first_then_name(fruits: ModuleType) -> None:
    assert [module.__name__ for module in plugins.load_plugins(fruits)] == [
        "fruits.also_early",
        "fruits.early",
        "fruits.late",
    ]


@pytest.mark.parametrize("name", ["plum", "_helper", "", "late.x", "../late"])
def test_a_wrong_name_is_answered_with_the_right_ones(fruits: ModuleType, name: str) -> None:
    with pytest.raises(UserError, match=r"in fruits; there are: also-early, early, late$"):
        plugins.load_plugin(fruits, name)


def test_a_broken_plugin_harms_only_who_asks_for_it(fruits: ModuleType) -> None:
    Path(fruits.__path__[0], "broken.py").write_text("import there_is_no_such_module")
    assert plugins.load_plugin(fruits, "late").ORDER == 20
    with pytest.raises(ModuleNotFoundError):
        plugins.load_plugin(fruits, "broken")
