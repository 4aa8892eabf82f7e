# SPDX-License-Identifier: Apache-2.0
"""The parts of ``make fuzz``: how an input is damaged, what reads it, and the process that tries many of them."""
