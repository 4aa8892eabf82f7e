# SPDX-License-Identifier: Apache-2.0
"""Several tests at once: S. Holm's step-down procedure (1979), which holds for tests that depend on each other too."""

from collections.abc import Sequence


def adjusted(p_values: Sequence[float]) -> list[float]:
    """Each p so that rejecting what is below alpha is wrong about any of them with a probability of at most alpha."""
    order = sorted(range(len(p_values)), key=lambda at: p_values[at])
    found, largest = [0.0] * len(p_values), 0.0
    for done, at in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - done) * p_values[at]))
        found[at] = largest
    return found
