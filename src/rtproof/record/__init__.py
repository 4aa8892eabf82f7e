# SPDX-License-Identifier: Apache-2.0
"""The record of a run: what it contains, and how its file is read and written.

``contents`` is the model. ``reading`` reads a file, and ``writing`` makes one. ``chunks``, ``decoding``, ``encoding``
and ``histogram_bins`` know the bytes, which docs/record-format.md describes. ``activations`` computes what an agent
writes about its activations. ``run_folder`` keeps a record and what the host knew of its run. ``file_kinds`` names a
file that is no record. All times are signed nanoseconds from the origin of the record.
"""
