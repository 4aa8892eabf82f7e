# SPDX-License-Identifier: Apache-2.0
"""The record of a run: what it contains, and how its file is read and written.

``contents`` is the model. ``reading`` opens a file, ``writing`` makes one; docs/record-format.md describes the bytes.
All times are signed nanoseconds from the origin of the record.
"""
