"""What the operating system says of this process."""

from __future__ import annotations

import os
from pathlib import Path

_PAGES = Path("/proc/self/statm")


def resident_bytes() -> int | None:
    """Memory in use now; None where the system has no such file."""
    try:
        return int(_PAGES.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None
