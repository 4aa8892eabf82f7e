# SPDX-License-Identifier: Apache-2.0
"""The tail of the latencies beyond what was measured: a forecast, or the reasons against one.

The model is peaks over threshold. ``thresholds`` takes Counts and fits the highest 200 to 6,400 values with
``pareto_fit``. It keeps the fits that hold and takes the largest of their upper limits. ``forecast`` makes the forecast
of a run. A forecast is a model and not a proof: no verdict rests on it. It is never printed without the line that needs
no model.
"""
