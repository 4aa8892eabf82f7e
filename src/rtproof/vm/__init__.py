# SPDX-License-Identifier: Apache-2.0
"""Virtual machines: boot a real kernel in QEMU, run a job in the guest, and bring the results to the host."""
