# SPDX-License-Identifier: Apache-2.0
"""Try settings of a target as a controlled experiment, and say which of them make it react earlier.

``knobs`` says what can be set. ``design`` says which knobs are on in which run. ``effects`` estimates what each one
does. ``tuning`` puts the three together, one run after another. Nothing here reaches a target.
"""
