# SPDX-License-Identifier: Apache-2.0
"""Simulated runs: seeded processes whose true rates are known, so that tests can check the program's conclusions."""
