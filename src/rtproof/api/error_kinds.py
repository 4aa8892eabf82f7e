# SPDX-License-Identifier: Apache-2.0
"""One kind of error for users of the Python API: ``RtproofError``, whose text is one sentence."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from rtproof.core.defects import error_sentence
from rtproof.core.errors import RtproofError


@contextmanager
def one_kind_of_error() -> Iterator[None]:
    """Within the context, an error of the user, of a file or of the system becomes a ``RtproofError``.

    Any other exception is a defect of rtproof, and stays what it is, with its traceback.
    """
    try:
        yield
    except RtproofError:
        raise
    except click.ClickException as problem:
        raise RtproofError(problem.format_message().rstrip(".")) from None
    except OSError as problem:
        raise RtproofError(error_sentence(problem)) from problem
