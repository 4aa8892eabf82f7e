# SPDX-License-Identifier: Apache-2.0
"""What a run lets expect beyond itself, if its tail goes on as it began; or why it lets expect nothing.

A forecast is a model and no proof: it decides no verdict and is never printed without the line that needs no model.
``predict`` is the entry; ``model`` has what it says as frozen data, ``gates`` and ``shape`` the reasons to refuse,
``stationarity`` the tests of the run's evenness, ``wording`` the sentences, ``curves`` what a report draws.
"""
