# SPDX-License-Identifier: Apache-2.0
"""Functions that judge what a few declarative lines cannot.

``function`` of a check names the module and the function, which takes the facts and the check, and returns a Judgement.
It is pure, and never says GOOD of what was not read: ``rtproof.audit.readings`` has the answers for what is missing.
"""
