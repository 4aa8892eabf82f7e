# SPDX-License-Identifier: Apache-2.0
"""Report formats, one file each.

A format module has ``SUFFIX: str`` (file name ending with its dot) and
``draw(title: str, sections: list[Section]) -> bytes``, a pure function that draws every kind of block. Its docstring
says what it is for.
"""
