# SPDX-License-Identifier: Apache-2.0
"""The agent's program file: for which processors it is built, how it is built, and where it is found."""
