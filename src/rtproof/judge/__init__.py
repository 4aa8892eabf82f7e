# SPDX-License-Identifier: Apache-2.0
"""Judge a run: what may be wrong with it, whether it meets a limit, and the verdict in sentences.

Start reading with ``analyse``, which returns an ``Analysis``. ``claim`` has the test of a limit with --at-most.
"""
