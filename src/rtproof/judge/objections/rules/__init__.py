# SPDX-License-Identifier: Apache-2.0
"""Rules that object to result rows, one file each.

A rule module has these names:

* ``ORDER: int`` is its place among the objections. No two rules have the same.
* ``CODE: str`` is the name of its objections.
* ``REMEDY: str`` says what to do about them, as an imperative.
* ``DOUBTS: tuple[str, ...]`` has the codes of the doubts about a measured run that say the same.
* ``SEVERITY: Severity`` is INVALID if the figures cannot all be true; without it, the objections are warnings.
* ``judge(claims: Sequence[ResultClaim]) -> Iterable[Objection]`` is a pure function. It never objects because a figure
  is missing.
"""
