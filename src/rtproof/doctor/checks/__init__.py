# SPDX-License-Identifier: Apache-2.0
"""Checks of the doctor, one file each.

A check module must have:

* a docstring that says what is looked at, and for whom;
* ``FEATURES: tuple[str, ...]``, names of ``findings.FEATURES``: the features that need what it looks at;
* ``check(host: Host) -> Iterator[Finding]``. Each finding names features of the module only.

A check really tries: it opens the file, asks the kernel, runs the program. It changes nothing outside of its own
process, and downloads and builds nothing. It may take 1 s. Where the program itself refuses something, a check calls
what refuses, so that the two cannot disagree. Where it needs numpy or another package that may be missing, it imports
that in the body of ``check``.
"""
