# SPDX-License-Identifier: Apache-2.0
"""Objections to published and measured result rows."""
