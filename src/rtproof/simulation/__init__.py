# SPDX-License-Identifier: Apache-2.0
"""Simulated runs: seeded processes whose true rates are known, so that tests can check the program's conclusions.

``events`` draws when an event happens and how late it makes an activation. ``simulated_thread`` turns the events into
the chunks of one thread. ``simulated_agent`` prints and writes what an agent would. No number here describes a machine.
"""
