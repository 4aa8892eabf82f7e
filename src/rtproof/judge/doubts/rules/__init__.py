# SPDX-License-Identifier: Apache-2.0
"""Rules that doubt rows of figures, one file each.

A rule module has four names:

* ``ORDER: int`` is its place among the rules. No two rules have the same.
* ``CODE: str`` is the code of its doubts.
* ``DOUBTS: tuple[str, ...]`` has the codes of the checks that say the same of a run. The rule leaves a row with such a
  doubt alone.
* ``judge(claims: Sequence[ResultClaim]) -> Iterable[Doubt]`` is a pure function. It never doubts because a figure is
  missing.
"""
