# SPDX-License-Identifier: Apache-2.0
"""Virtual machines: boot a real kernel in QEMU, run a job in it and bring the results out.

``kernel_files`` reads images and modules, ``machine`` describes what is booted, ``guest`` runs a job.
"""
