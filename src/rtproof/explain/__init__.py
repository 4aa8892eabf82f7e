# SPDX-License-Identifier: Apache-2.0
"""Why an activation was late: its time from the due time to the end, charged to causes that add up to 100 %.

From the kernel's trace: ``trace_events`` decodes, ``cpu_contexts`` says what each CPU did when, ``budget`` charges
every nanosecond of an activation once, ``explanation`` puts the budgets of a run together, ``advice`` says what helps.
"""
