"""`python -m twofold`: the command line (`twofold/cli/`)."""

import sys

from twofold.cli import main

sys.exit(main())
