#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: kinds_passed.py ARGUMENT...    runs rtproof, then prints how many files, functions and kinds of data it passed

A function counts once it was called. A kind of data is a dataclass, a NamedTuple or a Struct of msgspec that was an
argument or a result of such a function. Threads are watched, other processes are not.
"""

import dataclasses
import sys
import threading
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import rtproof
from rtproof.cli.main import main

ROOT = str(Path(rtproof.__file__).parent)


class Passed:
    """What a run of the program has passed so far."""

    def __init__(self) -> None:
        self.functions: set[CodeType] = set()
        self.kinds: set[str] = set()

    def watch(self, frame: FrameType, event: str, result: Any) -> None:
        """Take a call or a return, as ``sys.setprofile`` gives it."""
        own = frame.f_code.co_filename.startswith(ROOT) and frame.f_code.co_name != "<module>"
        if event not in ("call", "return") or not own:
            return
        self.functions.add(frame.f_code)
        values = list(frame.f_locals.values()) if event == "call" else [result]
        self.kinds.update(type(each).__qualname__ for each in values if is_data(type(each)))


def is_data(kind: type) -> bool:
    data = dataclasses.is_dataclass(kind) or hasattr(kind, "_fields") or hasattr(kind, "__struct_fields__")
    return data and kind.__module__.startswith("rtproof")


def run() -> None:
    passed = Passed()
    threading.setprofile(passed.watch)
    sys.setprofile(passed.watch)
    try:
        code: object = main()
    except SystemExit as end:
        code = end.code
    sys.setprofile(None)
    files = {code.co_filename for code in passed.functions}
    counts = f"{len(files)} files, {len(passed.functions)} functions, {len(passed.kinds)} kinds of data"
    print(f"exit code {code}: {counts}: {', '.join(sorted(passed.kinds))}", file=sys.stderr)


if __name__ == "__main__":
    run()
