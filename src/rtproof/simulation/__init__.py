# SPDX-License-Identifier: Apache-2.0
"""Simulated runs: seeded processes whose truth is known, so that tests can check what the program concludes.

``events`` says when an event happens and how late it makes an activation. ``simulated_agent`` plays the events as if an
agent had measured them. No number from here describes a machine.
"""
