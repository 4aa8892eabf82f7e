# SPDX-License-Identifier: Apache-2.0
"""Virtual machines: boot a real kernel in QEMU, run a job in the guest, and bring the results to the host.

``kernel_files`` reads images and modules, and ``initramfs`` packs the guest's first files. ``machine`` describes what
is booted. ``guest`` runs a job, ``qemu_process`` controls QEMU, and ``mailbox`` is the memory shared with the guest.
``cache_folders`` has the folders on this host.
"""
