# SPDX-License-Identifier: Apache-2.0
"""``python -m rtproof``, and the command ``rtproof``: 2 and a sentence also where nothing of it can be imported."""

import gc
import io
import sys

INTERRUPTED_CODE = 130
GARBAGE_THRESHOLD = 100_000
"""Python looks for cycles among its objects after so many new ones. The usual 700 come many times in the imports."""


def _write_whole() -> None:
    """Put a buffer over standard output where Python has none (PYTHONUNBUFFERED).

    Without one a write that the disk takes only a part of loses the rest without an error. Only the process itself may
    do this: the buffer closes the file below it at the end.
    """
    raw = getattr(sys.stdout, "buffer", None)
    if isinstance(raw, io.RawIOBase):
        out = sys.stdout
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(raw), encoding=out.encoding, errors=out.errors, line_buffering=True, write_through=True
        )


def run() -> int:
    """The exit code of the command line."""
    gc.set_threshold(GARBAGE_THRESHOLD)
    try:
        _write_whole()
        from rtproof.cli.main import main

        return main()
    except KeyboardInterrupt:
        return INTERRUPTED_CODE
    except SystemExit:
        raise
    except BaseException as error:
        from rtproof.core import defects

        return defects.exit_code_of(error)
    finally:
        # The end of the process need not look for cycles. If duckdb is there it must, or duckdb prints what leaked.
        if "duckdb" not in sys.modules:
            gc.freeze()


if __name__ == "__main__":
    sys.exit(run())
