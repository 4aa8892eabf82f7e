# SPDX-License-Identifier: Apache-2.0
"""Rules that object to claims, one file each.

A rule module has ``ORDER: int`` (place among the objections, in steps of ten), ``CODE: str`` (what its objections are
called), ``DOUBTS: tuple[str, ...]`` (codes of the doubts about a measured run that say the same) and
``judge(claims: Sequence[Claim]) -> Iterable[Objection]``, a pure function. What is not told is no reason to object.
"""
