# SPDX-License-Identifier: Apache-2.0
"""Commands, one file each.

A command module has ``command``, a ``click.Command`` whose name is the file's; the first line of its help is what
``rtproof --help`` shows. It raises RtproofError for what it refuses and calls ``click.Context.exit`` only with the exit
codes of the verdict: 0 HELD, PROVEN or no limit asked, 1 EXCEEDED or REFUTED, 2 usage or tool error, 3 INVALID, 4
UNDECIDED. ``doctor`` judges no run, and has 5 for "not ready". A command's body imports the modules that do its work,
once: they need numpy, and a shell's completion must not wait for it. The module itself imports at its top only what its
options need. A command holds options and printing, no more.
"""
