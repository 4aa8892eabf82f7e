# SPDX-License-Identifier: Apache-2.0
"""Virtual machines: all that QEMU needs to know to boot a real kernel, run a job in it and bring the results out.

``kernel`` knows images, ``machine`` describes what is booted, ``guest`` runs a job in it.
"""
