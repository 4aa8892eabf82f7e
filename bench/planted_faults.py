#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: planted_faults.py [WORDS...]    runs the short set of tests on each fault of planted_faults.toml, in a copy

The last line says how many faults a test caught. WORDS: only the faults whose description has one of them.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
FAULTS = Path(__file__).with_suffix(".toml")
TESTS = ("-q", "-x", "-p", "no:cacheprovider", "-n", "3", "--set", "short")
CORPUS = "tests/test_golden_outputs.py"
"""A part of the short set that catches most faults in seconds, so it is asked first."""


def first_failure(copy: Path, *files: str) -> str:
    """The test that fails first, empty if none does."""
    environment = {**os.environ, "PYTHONPATH": str(copy / "src")}
    command = [sys.executable, "-m", "pytest", *TESTS, *files]
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    if done.returncode == 0:
        return ""
    return failed[1] if failed else f"(exit code {done.returncode}) {done.stdout[-300:]} {done.stderr[-300:]}"


def main() -> int:
    faults = [
        fault
        for fault in tomllib.loads(FAULTS.read_text())["fault"]
        if not sys.argv[1:] or any(word in fault["about"] for word in sys.argv[1:])
    ]
    caught = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        subprocess.run(["sh", ROOT / "tools" / "copy_source.sh", copy], check=True)
        broken = first_failure(copy)
        if broken:
            sys.exit(f"without a fault {broken} fails, so nothing can be said of faults")
        for fault in faults:
            file = copy / "src" / "rtproof" / fault["file"]
            sound = file.read_text()
            assert sound.count(fault["old"]) == 1, f"{fault['file']} does not have this once: {fault['old']}"
            file.write_text(sound.replace(fault["old"], fault["new"]))
            began = time.monotonic()
            test = first_failure(copy, CORPUS) or first_failure(copy)
            file.write_text(sound)
            caught += bool(test)
            print(
                f"{'caught' if test else 'MISSED'} {time.monotonic() - began:4.0f} s  {fault['about']}  {test}",
                flush=True,
            )
    print(f"{caught} of {len(faults)} planted faults were caught")
    return 0 if caught >= 0.95 * len(faults) else 1


if __name__ == "__main__":
    sys.exit(main())
