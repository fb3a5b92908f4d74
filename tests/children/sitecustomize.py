"""What Python imports first in the processes that tests start: most end before there is garbage worth a search."""

import gc

gc.set_threshold(300_000, 10, 10)
