"""Several bundles as one: what was collected on several nodes of one incident, each under its own name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from forensics.archive.ledger import Lost
from forensics.bundle import Bundle, Member


class Several:
    """Looks like one Bundle; members' paths begin with the name of the bundle they are from."""

    def __init__(self, bundles: Sequence[Bundle]) -> None:
        self.bundles = list(bundles)
        names = [bundle.name for bundle in bundles]
        self.name = " + ".join(names) if len(names) < 4 else f"{names[0]} … {names[-1]} ({len(names)})"
        taken: dict[str, int] = {}
        self._names = []
        for bundle in bundles:
            number = taken[bundle.name] = taken.get(bundle.name, 0) + 1
            self._names.append(bundle.name if number == 1 else f"{bundle.name} ({number})")

    @property
    def roots(self) -> list[str]:
        """The names that members' paths begin with, one for each bundle."""
        return list(self._names)

    @property
    def size(self) -> int:
        return sum(bundle.size for bundle in self.bundles)

    @property
    def sha256(self) -> str:
        """Over the digests of all, in the order given."""
        return hashlib.sha256("".join(bundle.sha256 for bundle in self.bundles).encode()).hexdigest()

    @property
    def compressed_read(self) -> int:
        return sum(bundle.compressed_read for bundle in self.bundles)

    @property
    def lost(self) -> list[Lost]:
        out = []
        for bundle, name in zip(self.bundles, self._names, strict=True):
            out += [Lost(f"{name}/{one.path}", one.status, one.note, one.note_zh, one.bytes, one.partial) for one in bundle.lost]
        return out

    def members(self) -> Iterator[Member]:
        for bundle, name in zip(self.bundles, self._names, strict=True):
            for member in bundle.members():
                member.path = f"{name}/{member.path}"
                yield member

    def reopen(self) -> Several:
        return Several([bundle.reopen() for bundle in self.bundles])

    def close(self) -> None:
        for bundle in self.bundles:
            bundle.close()
