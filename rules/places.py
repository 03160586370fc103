"""The card that a line of a driver, a firmware or a device speaks of, where its head does not say."""

from __future__ import annotations

import re

from rules.model import Hit

_DEVICE = re.compile(r"(?i)\b(?:dev_?id|device_?id|phy_?id|udevid|dev_?phy_?id|chip_?id)(?: ?[=:] ?|\[|\()(\d{1,3})\b")
MOST = 64
"""Cards of one machine."""


def device_of(hit: Hit) -> int | None:
    """The device of the line's head, or the one number its text calls that."""
    if hit.device is not None:
        return hit.device
    found = {int(number) for number in _DEVICE.findall(hit.text[:1000])}
    return found.pop() if len(found) == 1 and max(found) < MOST else None
