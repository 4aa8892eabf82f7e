# SPDX-License-Identifier: Apache-2.0
"""Report formats, one file each.

A format module has ``SUFFIX: str``, the file name's ending with its dot, and
``draw(title: str, sections: list[Section]) -> bytes``, a pure function that draws every kind of block. A format that
draws nothing but the title and the plots has ``ONLY_PLOTS = True``, and refuses sections without a plot. The module's
docstring says what the format is for. A format that picks some of the blocks has ``ONLY_PART = True``.
"""
