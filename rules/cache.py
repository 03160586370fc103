"""Files kept beside this package's byte code: compiled patterns, packs that were read."""

from __future__ import annotations

import hashlib
import os
import pathlib
import platform

CACHE = pathlib.Path(__file__).parent / "__pycache__"
"""Where compiled patterns and read packs are kept: beside this package's byte code."""
CACHE_FILES = 16


def cpu() -> str:
    """What a compiled database depends on."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as stream:
            for line in stream:
                if line.startswith(("flags", "Features")):
                    return platform.machine() + hashlib.sha256(line.encode()).hexdigest()[:12]
    except OSError:
        pass
    return platform.machine() + platform.processor()


def read_cache(name: str) -> bytes | None:
    """A cached file from beside this package's byte code."""
    try:
        return (CACHE / name).read_bytes()
    except OSError:
        return None


def write_cache(name: str, data: bytes) -> None:
    """Keep `data` beside this package's byte code, as Python keeps its own; silently not, where that is not allowed."""
    part = CACHE / f"{name}.{os.getpid()}"
    try:
        CACHE.mkdir(exist_ok=True)
        part.write_bytes(data)
        os.replace(part, CACHE / name)
        kept = sorted(CACHE.glob(name.split("-")[0] + "-*"), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in kept[CACHE_FILES:]:
            old.unlink(missing_ok=True)
    except OSError:
        part.unlink(missing_ok=True)
