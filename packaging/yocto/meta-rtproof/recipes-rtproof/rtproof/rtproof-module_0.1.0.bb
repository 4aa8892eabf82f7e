# SPDX-License-Identifier: Apache-2.0
SUMMARY = "Kernel module that measures for rtproof"
DESCRIPTION = "Measures what only the kernel can: from a timer's due time to its interrupt, to a kernel task, and to a program."
SECTION = "kernel/modules"
LICENSE = "GPL-2.0-only"
LIC_FILES_CHKSUM = "file://LICENSE;md5=b234ee4d69f5fce4486a80fdaf4a4263"

require rtproof-source.inc

inherit module

SRC_URI = "file://kmod"

S = "${RTPROOF_UNPACKED}/kmod"

EXTRA_OEMAKE += "KDIR=${STAGING_KERNEL_DIR}"
MODULES_INSTALL_TARGET = "install"

RPROVIDES:${PN} += "kernel-module-rtproof"
