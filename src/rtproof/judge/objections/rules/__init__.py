# SPDX-License-Identifier: Apache-2.0
"""Rules that doubt rows of figures, one file each.

A rule module has four names:

* ``ORDER: int`` is its place among the rules. No two rules have the same.
* ``CODE: str`` is the code of its doubts.
* ``DOUBTS: tuple[str, ...]`` has the codes of the doubts that ``judge.checks`` have of a run and that say the same. The
  rule leaves a row with one of them alone.
* ``judge(claims: Sequence[ResultClaim]) -> Iterable[Doubt]`` is a pure function. It never doubts because a figure is
  missing.
"""
