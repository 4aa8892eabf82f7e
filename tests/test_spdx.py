# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LINE = "SPDX-License-Identifier: Apache-2.0"
FOLDERS = ("agent", "src", "tests", "tools", "bench", "examples", ".ci")
SUFFIXES = {".py", ".c", ".h", ".sh", ".js", ".css", ".toml"}
TOP_FILES = ("Makefile", "agent/Makefile", "pyproject.toml", "hatch_build.py", ".ci/run")


def source_files() -> list[Path]:
    """Ours, that is, without what comes from elsewhere with its own licence."""
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    ours = [path for path in found if "vendor" not in path.parts and "data" not in path.relative_to(ROOT).parts]
    ours = [path for path in ours if not path.is_symlink()]  # of the kernel module, which is GPL-2.0
    return sorted({*ours, *(ROOT / name for name in TOP_FILES)})


@pytest.mark.parametrize("path", source_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_licence_stands_in_the_first_line_or_after_the_interpreter(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    first = lines[1] if lines[0].startswith("#!") else lines[0]
    assert first.strip("/*#<!-> ") == LINE


def test_the_licence_itself_is_there() -> None:
    assert "Apache License" in (ROOT / "LICENSE").read_text()


def test_vendored_files_bring_their_licence() -> None:
    vendored = [path for path in (ROOT / "src/rtproof/report/vendor").glob("*") if path.is_dir()]
    assert vendored
    for folder in vendored:
        assert list(folder.glob("LICENSE*")), f"{folder} has no licence file"
