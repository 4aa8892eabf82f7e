include $(sort $(wildcard $(BR2_EXTERNAL_RTPROOF_PATH)/package/*/*.mk))
