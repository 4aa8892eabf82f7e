# SPDX-License-Identifier: Apache-2.0
"""Errors, each one sentence: the user can correct a ``UserError``; a ``TargetError`` comes from the target."""

AGENT_SAYS = "rtproof-agent: "
"""Before the agent's own sentences. What begins otherwise comes from a load, a tool or the connection."""


class RtproofError(Exception):
    """Base of everything the program raises on purpose."""


class UserError(RtproofError):
    """The request cannot be met because of an argument, a file or a missing privilege. Trying again does not help."""


class RecordError(UserError):
    """A file is not a record, or this version cannot read the record."""


class NoRecordError(RecordError):
    """A file holds no part of a record: the file is of another kind, or its beginning is lost."""


class TargetError(RtproofError):
    """The target misbehaved: the agent died, the board vanished, the disk filled up. Trying again may help."""


class LinkError(TargetError):
    """The connection to the target could not be made, or broke. What runs there may go on."""


class RecordStaysError(TargetError):
    """The record could not be kept here. It is still on the target, so the run can be taken up again."""


class NoSuchRunError(TargetError):
    """The target knows nothing of the run: it was fetched and removed, or the target's memory was cleared."""


class BoardLostError(TargetError):
    """The target does not come back after a boot. Each further try would wait as long."""
