# SPDX-License-Identifier: Apache-2.0
"""Targets: where the agent runs, one file each.

A target module has ``OPTIONS: dict[str, str]`` and ``open_target(options: dict[str, str]) -> ContextManager[Target]``.
"""
