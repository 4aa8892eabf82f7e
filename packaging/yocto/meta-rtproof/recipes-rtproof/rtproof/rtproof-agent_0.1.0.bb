# SPDX-License-Identifier: Apache-2.0
SUMMARY = "Measures how late this system reacts"
DESCRIPTION = "The program of rtproof that runs on the measured board. It is static, and rtproof starts it over ssh or a console."
SECTION = "console/utils"
LICENSE = "Apache-2.0"
# nooelint: oelint.var.licenseremotefile - the licence stands beside the folder of the agent
LIC_FILES_CHKSUM = "file://${RTPROOF_UNPACKED}/LICENSE;md5=3b83ef96387f14655fc854ddc3c6bd57"

require rtproof-source.inc

# The agent's folder has a link to the header of the kernel module, which must lie beside it.
SRC_URI = "file://agent \
           file://kmod/rtproof.h \
           file://LICENSE \
           "

S = "${RTPROOF_UNPACKED}/agent"

# The agent's own flags are in its files cflags and ldflags. Yocto strips the program itself, so -s is left out.
EXTRA_OEMAKE = "O=${B}/built LINK='-static -pthread -Wl,--gc-sections'"

do_install() {
    install -D -m 0755 ${B}/built/rtproof-agent ${D}${bindir}/rtproof-agent
}
