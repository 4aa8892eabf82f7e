# SPDX-License-Identifier: Apache-2.0
"""The tail of a distribution beyond what was measured, and the forecast that it allows, or the reasons against one.

The model is peaks over threshold: ``thresholds`` takes Counts, fits the highest 200 to 6,400 of them (``pareto_fit``),
keeps the fits that hold and takes the largest of their upper limits. ``forecast`` is the entry for a run. A forecast is
a model and no proof: it decides no verdict, and it is never printed without the line that needs no model.
"""
