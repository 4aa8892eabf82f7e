# SPDX-License-Identifier: Apache-2.0
"""Boards: machines that are reached through a shell, however that is reached.

A ``Shell`` runs command lines there. All else builds on that: the upload of the agent, and runs in the background that
outlive the connection. The targets ``ssh``, ``command``, ``serial`` and ``labgrid`` are shells with options.
"""
