# SPDX-License-Identifier: Apache-2.0
"""Export formats, one file each.

An exporter module has ``SUFFIX: str`` (file name ending with its dot), ``OPTIONS: dict[str, str]`` (name of an option
and its help; values arrive as text) and ``export(analysis: Analysis, path: Path, options: dict[str, str]) -> str``,
which writes the file, never over an existing one, and returns one sentence: what was written and what the format cannot
hold.
UserError for an option value that makes no sense or a record that cannot be exported this way. Its docstring says what
it is for. One for a certain kind of record only says in ``NEEDS: str`` which, and may refuse all others. ``FREE:
tuple[str, ...]`` names options, if there are any, that take every text. ``BINARY = True`` marks what no terminal shows.
"""
