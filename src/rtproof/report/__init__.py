# SPDX-License-Identifier: Apache-2.0
"""Compute, then draw: ``sections/`` turn an Analysis into blocks, ``formats/`` turn blocks into bytes."""
