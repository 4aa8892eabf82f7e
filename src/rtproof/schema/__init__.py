# SPDX-License-Identifier: Apache-2.0
"""The JSON of all results: one encoder, and the tables of the published keys. docs/json-schema.md is made of them."""
