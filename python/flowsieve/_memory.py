"""How much memory a process may still take."""

from __future__ import annotations

import contextlib
from pathlib import Path

from ._errors import Error

#: Bytes of memory for a byte of parts, while a shard is reduced.
FACTOR = 4
#: Bytes of parts between two looks.
_LOOK_EVERY = 64 << 20


def room() -> int | None:
    """Bytes that this process may still take; None if the system does not say."""
    rooms: list[int] = []
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                rooms.append(int(line.split()[1]) << 10)
    for most, used in (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes")):
        with contextlib.suppress(OSError, ValueError):
            group = Path("/sys/fs/cgroup")
            rooms.append(int((group / most).read_text()) - int((group / used).read_text()))
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY:
            rooms.append(limit - (int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()))
    return min(rooms, default=None)


def check_room(size: int, grown: int, slice_: int, shard: int) -> None:
    """Says that a shard will not fit before it is reduced, when its parts have this many bytes and had `grown` fewer before.

    Raises:
        Error: it needs more memory than there is.
    """
    if size // _LOOK_EVERY == (size - grown) // _LOOK_EVERY:
        return
    left = room()
    if left is not None and size * (FACTOR - 1) > left:
        raise Error(
            f"shard {shard} of slice {slice_} has more than {size >> 20:,} MB of elements, and reducing them takes "
            f"{FACTOR - 1} times as much memory again, but this worker has {left >> 20:,} MB left; choose shorter slices, "
            "give workers more memory, or count with --no-exact"
        )
