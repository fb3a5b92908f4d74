"""`twofold cache info|clear`: the folder of compiled code (`runtime/cache.py`)."""

from __future__ import annotations

import argparse

from twofold.runtime import cache

from .common import amount, say, say_json, table

__all__ = ["add", "run"]


def add(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("action", choices=("info", "clear"), help="tell what is there, or delete it; what is deleted "
                        "is compiled again when it is needed")
    parser.epilog = "TWOFOLD_CACHE_DIR puts the folder elsewhere; TWOFOLD_CACHE=0 turns it off."


def run(args: argparse.Namespace) -> None:
    """Tells about the folder, or empties it."""
    clearing = args.action == "clear"
    kinds = cache.clear() if clearing else cache.usage()
    entries, size = sum(n for n, _ in kinds.values()), sum(s for _, s in kinds.values())
    if args.json:
        say_json({"folder": str(cache.folder()), "enabled": cache.enabled(), "limit": cache.LIMIT,
                  "deleted" if clearing else "kinds": {k: {"entries": n, "bytes": s} for k, (n, s) in kinds.items()},
                  "entries": entries, "bytes": size})
        return
    if clearing:
        say(f"deleted {entries} entries, {amount(size)}, from {cache.folder()}")
        return
    say(f"{cache.folder()}{'' if cache.enabled() else '  (turned off by TWOFOLD_CACHE=0)'}",
        *table([(kind, f"{n} entries", amount(s)) for kind, (n, s) in kinds.items()], right=(1, 2)),
        f"  {entries} entries, {amount(size)} of at most {amount(cache.LIMIT)}")
