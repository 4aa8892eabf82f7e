# SPDX-License-Identifier: Apache-2.0
"""Export formats, one file each.

An exporter module must have:

* a docstring that says what the format is for;
* ``SUFFIX: str``, the file name's ending with its dot;
* ``OPTIONS: dict[str, str]``, the name and the help of each option. The values of options arrive as text;
* ``export(analysis: Analysis, path: Path, options: dict[str, str]) -> str``. It writes a new file and never overwrites
  one. It returns one sentence: what it wrote and what the format cannot hold. It raises a UserError for an option value
  that makes no sense, or for a record that cannot be exported this way.

An exporter module may have:

* ``NEEDS: str``, the kind of record that it needs. It may refuse all other records;
* ``FREE: tuple[str, ...]``, the names of the options that accept any text;
* ``EXTRA: str``, the extra of rtproof that brings a package which the format needs, and ``require()``, which raises a
  UserError where that package cannot be loaded;
* ``BINARY = True`` if a terminal cannot show the file;
* ``HOLDS_COUNTS = True`` if it needs no more than the counts of each thread, as another tool's histogram has them.
"""
