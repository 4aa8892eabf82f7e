# SPDX-License-Identifier: Apache-2.0
"""Measure cells, store them, read them back: on a target, several times, by turns, or in guests.

A request says what the user wants. A runner measures its cells. The folder of the experiment stores them.
"""
