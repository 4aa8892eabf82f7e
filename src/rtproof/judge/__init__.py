# SPDX-License-Identifier: Apache-2.0
"""What a run shows: what may be wrong with it, whether it meets a limit, and the verdict in sentences.

``analyse`` starts here and returns an ``Analysis``. ``claim`` has the rule by which a limit is judged.
"""
