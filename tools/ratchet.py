#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: ratchet.py    writes tools/ratchet.toml: the lines, data classes and files of each part of the repository

tests/test_ratchet.py fails if a figure has risen above that table. Whoever needs more room writes the table anew, and
says why in the commit. A data class is a dataclass, a NamedTuple, a TypedDict or a Struct of msgspec.
"""

import ast
import subprocess
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "tools" / "ratchet.toml"
COUNTED = {".py", ".c", ".h", ".sh"}
FOREIGN = ("src/rtproof/report/vendor", "tests/golden_outputs/inputs", "debian/missing-sources")
DATA_BASES = {"NamedTuple", "TypedDict", "Struct"}
Figures = tuple[int, int, int]
"""Lines, data classes, files."""


def part_of(path: Path) -> str:
    """A package of the host, or else the folder at the top, its tests apart; src/rtproof/*.py are ``rtproof``."""
    parts = path.parts
    if parts[:2] != ("src", "rtproof"):
        return f"{parts[0]}.tests" if "tests" in parts[1:-1] else parts[0]
    return f"rtproof.{parts[2]}" if len(parts) > 3 else "rtproof"


def data_classes(source: str) -> int:
    found = 0
    if not any(word in source for word in ("dataclass", *DATA_BASES)):  # parsing takes long
        return found
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            marks = " ".join(ast.unparse(each) for each in node.decorator_list)
            bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
            found += "dataclass" in marks or not bases.isdisjoint(DATA_BASES)
    return found


def figures() -> dict[str, Figures]:
    """The figures of each part, of the files that git has or would take. OSError where no git answers for ROOT."""
    if not (ROOT / ".git").exists():
        raise FileNotFoundError(f"{ROOT} is no checkout")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    counted: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for name in sorted(set(names)):
        path = ROOT / name
        if path.suffix not in COUNTED or name.startswith(FOREIGN) or "/" not in name or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8")
        row = counted[part_of(Path(name))]
        row[0] += len(text.splitlines())
        row[1] += data_classes(text) if path.suffix == ".py" else 0
        row[2] += 1
    return {part: (row[0], row[1], row[2]) for part, row in sorted(counted.items())}


def main() -> None:
    rows = [f'"{part}" = [{", ".join(map(str, row))}]' for part, row in figures().items()]
    TABLE.write_text(
        "\n".join(["# SPDX-License-Identifier: Apache-2.0", "# part = [lines, data classes, files]", *rows, ""])
    )


if __name__ == "__main__":
    main()
