# SPDX-License-Identifier: Apache-2.0
"""``python -m rtproof``, and the command ``rtproof``: 2 and a sentence also where nothing of it can be imported."""

import sys

INTERRUPTED_CODE = 130


def run() -> int:
    """The exit code of the command line."""
    try:
        from rtproof.cli.main import main

        return main()
    except KeyboardInterrupt:
        return INTERRUPTED_CODE
    except SystemExit:
        raise
    except BaseException as error:
        from rtproof import defects

        return defects.exit_code_of(error)


if __name__ == "__main__":
    sys.exit(run())
