# SPDX-License-Identifier: Apache-2.0
"""Seeded processes whose truth is known, so that what is said about them can be checked.

``processes`` says when something happens, ``latencies`` how late it makes an activation, ``agent`` plays both as if an
agent had measured them. Nothing here is of any machine, and no measurement may be made from it.
"""
