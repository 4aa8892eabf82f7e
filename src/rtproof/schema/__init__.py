# SPDX-License-Identifier: Apache-2.0
"""Turn results into plain data for JSON. docs/json-schema.md describes every key."""
