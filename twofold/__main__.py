"""`python -m twofold`: the command line (`twofold/cli/`)."""

import sys

from twofold.cli import main

if __name__ == "__main__":
    sys.exit(main())
