# SPDX-License-Identifier: Apache-2.0
"""Verdicts on several runs for continuous integration: rows, and what they look like as text, Markdown and JUnit."""
