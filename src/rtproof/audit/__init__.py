# SPDX-License-Identifier: Apache-2.0
"""The audit: what is wrong with a system for real time, with sources.

``facts`` shows what a record holds of the system. ``check_file`` reads the checks of ``checks/SUBJECT.toml``, and
``judgement`` judges them. Nothing here can reach a target: the record may be years old and of another machine.
"""
