# SPDX-License-Identifier: Apache-2.0
"""``python -m rtproof``."""

import sys

from rtproof.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
