# SPDX-License-Identifier: Apache-2.0
"""Report sections, one file each.

A section module has ``ORDER: int`` (place in the report, in steps of ten), ``TITLE: str`` and
``render(analysis: Analysis) -> list[Block]``, a pure function; an empty list leaves the section out. Its docstring says
what the section shows. One that belongs to the short form, which is printed when a run ends, says ``SHORT = True``.
"""
