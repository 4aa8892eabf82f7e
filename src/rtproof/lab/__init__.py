# SPDX-License-Identifier: Apache-2.0
"""The virtual lab: kernels that distributions ship, and what they do under load in QEMU's virtual time.

Figures of virtual time are instructions counted, not a board's microseconds: they rank kernels and find regressions,
they do not sign off hardware.
"""
