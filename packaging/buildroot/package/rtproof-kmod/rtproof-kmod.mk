################################################################################
#
# rtproof-kmod
#
################################################################################

RTPROOF_KMOD_VERSION = 0.1.0
RTPROOF_KMOD_SITE = $(call qstrip,$(BR2_RTPROOF_SOURCE))/kmod
RTPROOF_KMOD_SITE_METHOD = local
RTPROOF_KMOD_LICENSE = GPL-2.0
RTPROOF_KMOD_LICENSE_FILES = LICENSE

# Debian's and other kernels ask for pahole otherwise.
RTPROOF_KMOD_MODULE_MAKE_OPTS = CONFIG_DEBUG_INFO_BTF_MODULES=

$(eval $(kernel-module))
$(eval $(generic-package))
