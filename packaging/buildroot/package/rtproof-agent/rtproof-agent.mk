################################################################################
#
# rtproof-agent
#
################################################################################

RTPROOF_AGENT_VERSION = 0.1.0
RTPROOF_AGENT_SITE = $(call qstrip,$(BR2_RTPROOF_SOURCE))/agent
RTPROOF_AGENT_SITE_METHOD = local
RTPROOF_AGENT_LICENSE = Apache-2.0
RTPROOF_AGENT_LICENSE_FILES = LICENSE

# The licence and the header of the kernel module stand outside of the agent's
# folder, which has a link to the header.
define RTPROOF_AGENT_COPY_OUTSIDE
	cp $(RTPROOF_AGENT_SITE)/../LICENSE $(@D)/LICENSE
	cp --remove-destination $(RTPROOF_AGENT_SITE)/../kmod/rtproof.h \
		$(@D)/probes/kernel/kmod.h
endef
RTPROOF_AGENT_POST_RSYNC_HOOKS += RTPROOF_AGENT_COPY_OUTSIDE

# The agent's own flags are in its files cflags and ldflags. It is linked
# statically, so that it needs no page of a library while it measures.
define RTPROOF_AGENT_BUILD_CMDS
	$(TARGET_MAKE_ENV) $(MAKE) -C $(@D) CC="$(TARGET_CC)" O=$(@D)/built
endef

define RTPROOF_AGENT_INSTALL_TARGET_CMDS
	$(INSTALL) -D -m 0755 $(@D)/built/rtproof-agent \
		$(TARGET_DIR)/usr/bin/rtproof-agent
endef

$(eval $(generic-package))
