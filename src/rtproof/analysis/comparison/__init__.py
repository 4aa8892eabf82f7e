# SPDX-License-Identifier: Apache-2.0
"""Is one system better than another? Runs of the one held against runs of the other.

The unit is the run: what two runs of one system differ by is the measure of what two systems differ by. ``figures``
and ``facts`` are what is looked at of a run, ``alike`` says whether two may be compared, ``compare`` does it.
docs/comparison.md has the method.
"""

from rtproof.analysis.comparison.compare import compare
from rtproof.analysis.comparison.figures import RunFigures, figures_of, figures_of_histogram
from rtproof.analysis.comparison.model import Comparison

__all__ = ["Comparison", "RunFigures", "compare", "figures_of", "figures_of_histogram"]
