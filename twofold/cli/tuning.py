"""`twofold tune`: measures by which costs matrix products are planned on this processor (`runtime/tuning.py`)."""

from __future__ import annotations

import argparse

from twofold.runtime import cache, costs

from .common import Failure, say, say_json, table

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("--reset", action="store_true", help="go back to the usual costs")
    parser.epilog = "It takes about a second, best on an idle machine, and changes how quick products are, never " \
        "what they give. Processes started later plan by what was measured; with TWOFOLD_TUNING=0 by the usual costs."


def run(args: argparse.Namespace) -> None:
    """Measures the costs and keeps them, or forgets them."""
    if not cache.enabled():
        raise Failure("there is nowhere to keep what is measured: TWOFOLD_CACHE=0 turns the cache off")
    cache.clear(costs.KIND, "programs")  # compiled programs hold plans of their products
    chosen = costs.USUAL
    if not args.reset:
        from twofold.runtime import tuning

        chosen = tuning.measured()
        costs.keep(chosen)
        if costs.kept() != chosen:
            raise Failure(f"{cache.folder()} cannot be written")
    if args.json:
        say_json({"costs": chosen._asdict(), "usual": costs.USUAL._asdict(), "measured": not args.reset})
        return
    say("costs of parts of a matrix product, in steps of one row of a tile:",
        *table([("", "here", "usual"), *((name.replace("_", " "), f"{value:.1f}", f"{usual:.1f}") for name, value, usual
                                        in zip(costs.Costs._fields, chosen, costs.USUAL, strict=True))], right=(1, 2)))
