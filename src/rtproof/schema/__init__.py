# SPDX-License-Identifier: Apache-2.0
"""Results as plain data for JSON. docs/json-schema.md describes every key."""
