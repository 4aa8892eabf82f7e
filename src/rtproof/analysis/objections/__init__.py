# SPDX-License-Identifier: Apache-2.0
"""Objections to result rows, published or measured: what in their own numbers speaks against them.

A row is a ``Claim``; ``claim_of`` makes one of a run. ``rules`` has one file per rule; each looks at all claims, so
that it can compare. What a doubt about a run already tells is not worked out again: the doubt is cited.
"""

from rtproof.analysis.objections.claim import Claim, Figures, Kind, Objection, Span, Thread
from rtproof.analysis.objections.engine import objections
from rtproof.analysis.objections.measured import claim_of

__all__ = ["Claim", "Figures", "Kind", "Objection", "Span", "Thread", "claim_of", "objections"]
