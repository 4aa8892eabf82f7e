# SPDX-License-Identifier: Apache-2.0
"""The agent's program file: which architectures there are, how it is built for each, and where it is found.

``architectures`` is the table, ``compilers`` knows what can compile, ``build`` compiles, ``find`` answers with a path.
"""
