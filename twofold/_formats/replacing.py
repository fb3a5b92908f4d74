"""Replacing files as a whole, for the modules of the public floor: see `twofold.runtime.replacing`."""

from __future__ import annotations

from twofold.runtime.replacing import Contents, Replacement, alone, folder_beside, replace, replace_all, replaced

__all__ = ["Contents", "Replacement", "alone", "folder_beside", "replace", "replace_all", "replaced"]
