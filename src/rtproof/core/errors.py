# SPDX-License-Identifier: Apache-2.0
"""Errors with two branches: the user can mend one, the target the other.

The command line prints the message of either as one line and exits with 2. Each message is one sentence that says
what is wrong and, where it helps, what to do.
"""


class RtproofError(Exception):
    """Base of everything the program raises on purpose."""


class UserError(RtproofError):
    """What was asked cannot be done: an argument, a file, a missing privilege. Asking again changes nothing."""


class RecordError(UserError):
    """A file is not a record, or is one that this version cannot read."""


class NoRecordError(RecordError):
    """There is nothing of a record in a file: it is something else, or its beginning is lost."""


class TargetError(RtproofError):
    """The target misbehaved: the agent died, the board vanished, the disk filled up. Trying again may help."""
