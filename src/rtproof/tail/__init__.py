# SPDX-License-Identifier: Apache-2.0
"""The tail of the latencies beyond what was measured: a forecast, or the reasons against one.

The model is peaks over threshold: the largest of the upper limits of the fits that hold. No verdict rests on it, and it
is never printed without the line that needs no model.
"""
