# SPDX-License-Identifier: Apache-2.0
"""The tail of a distribution beyond what was measured: the peaks-over-threshold model, fitted to bins.

``tail_of`` (excesses) takes Counts; ``ladder`` fits the highest 200 to 6,400 of them, tells which fits hold and takes
the largest of their upper limits; ``limit_of`` (limits) says the limit or the codes of the reasons against one.
"""
