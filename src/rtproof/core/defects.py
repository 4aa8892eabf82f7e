# SPDX-License-Identifier: Apache-2.0
"""Turn any exception into one sentence. An exception that nobody expected is reported as a defect of rtproof.

The traceback of a defect goes into a new file, and the sentence names the file. If the variable ``RTPROOF_DEBUG`` is
set, the traceback is printed to standard error instead. A defect never looks like a verdict.
"""

import contextlib
import errno
import os
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path

from rtproof import __version__
from rtproof.core.errors import RtproofError
from rtproof.core.printable import one_line

DEBUG = "RTPROOF_DEBUG"
DEFECT_CODE = 2
"""Exit code of a usage or tool error. Python's own exit code 1 would mean REFUTED."""
MOST_CHARACTERS = 200
"""Longest quotation of an error's own text in the sentence. The file with the traceback holds the whole text."""
MOST_CHARACTERS_OF_OURS = 2_000
"""Longest sentence that rtproof wrote for people. Such a sentence may quote a file or an argument."""
PACKAGE_FOLDER = Path(__file__).parent.parent


def error_sentence(error: BaseException) -> str:
    """One line that says what is wrong, without the prefix ``rtproof:``.

    If the error is a defect, this function also writes the traceback to a file or to standard error.
    """
    if isinstance(error, RtproofError):
        return one_line(str(error), MOST_CHARACTERS_OF_OURS)
    if isinstance(error, OSError):
        reason = (error.strerror or str(error) or type(error).__name__).lower()
        told = f"{error.filename}: {reason}" if error.filename else reason
        if error.errno == errno.ENOSPC:
            told = f"no space left on the disk while writing {error.filename or 'the output'}"
        return one_line(told, MOST_CHARACTERS_OF_OURS)
    if isinstance(error, MemoryError):
        return "there is too little memory for this, so nothing was decided"
    if isinstance(error, ImportError) and _foreign(error.name):
        return (
            f"the Python package {one_line(str(error.name), MOST_CHARACTERS)!r} cannot be loaded "
            f"({_words(error)}): install rtproof again with all that it needs"
        )
    words = _words(error)
    what = f"{type(error).__name__}: {words}" if words else type(error).__name__
    said = f"this is a defect of rtproof {__version__} and no verdict: {what}{_place(error)}"
    return f"{said}; {_where_to_report(error)}"


def _foreign(name: str | None) -> bool:
    return bool(name) and str(name).partition(".")[0] != PACKAGE_FOLDER.name


def _words(error: BaseException) -> str:
    """The error's own text, or "" if the exception fails to produce one."""
    try:
        return one_line(str(error), MOST_CHARACTERS)
    except Exception:
        return ""


def _place(error: BaseException) -> str:
    """The deepest line of rtproof in the traceback, as " (file, line N)"; "" if rtproof is not in the traceback."""
    frames = traceback.walk_tb(error.__traceback__)
    ours = [(Path(frame.f_code.co_filename), line) for frame, line in frames if _is_ours(frame.f_code.co_filename)]
    return f" ({ours[-1][0].relative_to(PACKAGE_FOLDER)}, line {ours[-1][1]})" if ours else ""


def _is_ours(file: str) -> bool:
    return PACKAGE_FOLDER in Path(file).parents


def _where_to_report(error: BaseException) -> str:
    if os.environ.get(DEBUG):
        with contextlib.suppress(Exception):
            print("".join(traceback.format_exception(error)), file=sys.stderr, end="")
        return "please report it where you got rtproof, with the lines above"
    kept = _keep(error)
    if not kept:
        return f"set {DEBUG}=1 to see its traceback, and please report it where you got rtproof"
    return f"please report it where you got rtproof, with the file {kept}"


def _keep(error: BaseException) -> str:
    """Write the traceback to a new file and return its path, or "" if that fails."""
    import platform
    import tempfile

    try:
        text = "".join(traceback.format_exception(error))
        with tempfile.NamedTemporaryFile(
            "w", prefix="rtproof-defect-", suffix=".txt", delete=False, errors="backslashreplace"
        ) as file:
            file.write(f"rtproof {__version__}, Python {platform.python_version()}, {platform.platform()}\n")
            file.write(f"{sys.argv!r}\n\n{text}")
    except Exception:
        return ""
    return file.name


def exit_code_of(error: BaseException) -> int:
    """Print the error of a program that cannot even start, and return its exit code."""
    with contextlib.suppress(Exception):
        print(f"rtproof: {error_sentence(error)}", file=sys.stderr)
    return DEFECT_CODE


@contextlib.contextmanager
def raising_thread_errors() -> Iterator[None]:
    """At the end of the context, raise the first exception that ended a thread meanwhile.

    Without this, Python only prints such an exception and the program goes on.
    """
    found: list[BaseException] = []
    before = threading.excepthook
    threading.excepthook = lambda told: found.append(told.exc_value or told.exc_type())
    try:
        yield
    finally:
        threading.excepthook = before
    if found:
        raise found[0]
