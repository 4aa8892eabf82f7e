# SPDX-License-Identifier: Apache-2.0
"""How late does a Linux system react, why, and is that good enough."""

__version__ = "0.1.0"
