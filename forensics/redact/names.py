"""Pseudonyms: keyed, so that the same name is the same pseudonym wherever it stands and nobody without the key can try names out.

    >>> names = Names(b"0" * 32)
    >>> names.host("gpu-a17") == names.host("GPU-A17"), names.host("node3"), names.host("gpu-a17")[:5]
    (True, 'node3', 'node-')
    >>> names.address("10.1.2.3").rpartition(".")[0] == names.address("10.1.2.250").rpartition(".")[0]
    True

Everything keeps its shape, so that parsers and rules read the copy as they read the original: an address stays an address (of the
ranges that are kept free for documents and tests), two addresses of one /24 network stay in one network.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import re
import secrets
import string
from pathlib import Path

from forensics.errors import UsageError
from forensics.safe_text import safe

KEY_BYTES = 32
LEAST = 16
"""Bytes a key must have."""
MOST = 4096

NETWORKS = (
    *(ipaddress.ip_network(net) for net in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")),
    *ipaddress.ip_network("198.18.0.0/15").subnets(new_prefix=24),
)
"""RFC 5737 keeps the first three free for documents, RFC 2544 the others for tests: nobody's host has an address there."""

GENERIC_HOSTS = re.compile(
    r"(?:localhost|local|host|node|worker|master|server|slave|rank|pod|npu|device|machine|kernel|unknown|none|null|n/?a|default|builder)"
    r"(?:[-_]?\d{1,4})?(?:\.local(?:domain)?)?",
    re.IGNORECASE,
)
"""Names that tell nothing of a site."""
GENERIC_USERS = frozenset(
    {
        "root", "user", "users", "admin", "administrator", "hwhiaiuser", "hwdmuser", "hwbaseuser", "hwmindxuser", "ma-user", "mindie", "mindx",
        "nobody", "daemon", "bin", "sys", "sync", "ubuntu", "centos", "euler", "openeuler", "ec2-user", "docker", "runner", "jenkins", "work",
        "workspace", "conda", "miniconda3", "anaconda3", "test", "guest", "postgres", "mysql", "redis", "nginx", "www-data", "sshd", "systemd",
        "dbus", "messagebus", "syslog", "chrony", "polkitd", "rpc", "tss", "ray", "vllm", "default", "shared", "public", "data", "none",
        "null", "unknown", "anonymous", "abuild", "slave1",
    }
)  # fmt: skip
"""Accounts that every second machine has."""


def load_key(path: str | None) -> bytes:
    """The key in a file, which is made where there is none; without a file, a fresh one that nobody keeps. Raises UsageError."""
    if path is None:
        return secrets.token_bytes(KEY_BYTES)
    file = Path(path)
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        pass
    except (OSError, ValueError) as error:
        raise UsageError(f"--key-file {safe(path)!r} can be neither read nor made: {getattr(error, 'strerror', None) or error}.") from error
    else:
        with open(handle, "w", encoding="ascii") as stream:
            stream.write(secrets.token_hex(KEY_BYTES) + "\n")
    try:
        with open(file, "rb") as source:
            key = source.read(MOST + 1).strip()
    except OSError as error:
        raise UsageError(f"--key-file {safe(path)!r} cannot be read: {error.strerror or error}.") from error
    if not LEAST <= len(key) <= MOST:
        found = "more" if len(key) > MOST else str(len(key))
        raise UsageError(
            f"--key-file wants a file of {LEAST} to {MOST} secret bytes; {safe(path)!r} holds {found}. "
            "Name one that does not exist yet to have it made."
        )
    return hashlib.sha256(key).digest()


class Names:
    """All pseudonyms of one run. `taken` networks are settled once, by `settle`, so that no two share a pseudonym."""

    def __init__(self, key: bytes):
        self._key = key
        self._made: dict[tuple[str, str], str] = {}
        self._networks: dict[str, int] = {}
        self._taken: set[int] = set()
        self._orders: dict[str, bytes] = {}

    def digest(self, kind: str, value: str) -> bytes:
        return hmac.new(self._key, f"{kind}\0{value}".encode("utf-8", "surrogateescape"), hashlib.sha256).digest()

    def settle(self, networks: set[str]) -> None:
        """Give each network ("10.1.2") one of its own, in an order that depends on the key alone."""
        for network in sorted(networks, key=lambda one: self.digest("net", one)):
            self._network(network)

    def _network(self, network: str) -> int:
        known = self._networks.get(network)
        if known is None:
            known = int.from_bytes(self.digest("net", network)[:4], "big") % len(NETWORKS)
            if len(self._taken) < len(NETWORKS):  # where all are taken, one has to serve twice
                while known in self._taken:
                    known = (known + 1) % len(NETWORKS)
            self._taken.add(known)
            self._networks[network] = known
        return known

    # ------------------------------------------------------------ kinds

    def of(self, kind: str, value: str) -> str:
        """The pseudonym of a value of a kind: host, user, address, address6, mac, email, prompt, ids, or any other (its shape is kept)."""
        known = self._made.get((kind, value))
        if known is None:
            make = getattr(self, kind, None) if kind in _KINDS else None
            known = make(value) if make is not None else self.shape(value, kind)
            if len(self._made) < 500_000:
                self._made[kind, value] = known
        return known

    def host(self, value: str) -> str:
        """`node-` and eight signs; a full name keeps as many labels; names that tell nothing stay."""
        short, dot, domain = value.partition(".")
        if GENERIC_HOSTS.fullmatch(value):
            return value
        if re.fullmatch(r"[0-9a-f]{12}", value):  # a container that was given no name
            return self.shape(value, "hex")
        name = short if GENERIC_HOSTS.fullmatch(short) else "node-" + self._word("host", short.lower(), 8)
        return f"{name}.{self._word('domain', domain.lower(), 6)}.example.net" if dot and domain else name

    def user(self, value: str) -> str:
        if value.lower() in GENERIC_USERS:
            return value
        return "user" + self._word("user", value, 6)

    def email(self, value: str) -> str:
        return f"user{self._word('email', value.lower(), 6)}@example.com"

    def address(self, value: str) -> str:
        """An IPv4 address; those that tell nothing of a site (loopback, any, masks, link-local, Docker's own bridge) stay."""
        parts = value.split(".")
        if parts[0] in ("0", "127", "255") or value.startswith(("172.17.", "169.254.")):
            return value
        network, last = ".".join(parts[:3]), int(parts[3])
        if last not in (0, 255):  # in a network each host gets another number; the network's own and the broadcast stay what they are
            order = self._orders.get(network)
            if order is None:
                order = self._orders[network] = bytes(sorted(range(1, 255), key=lambda number: self.digest("last", f"{network}.{number}")))
            last = order[last - 1]
        return f"{str(NETWORKS[self._network(network)].network_address).rpartition('.')[0]}.{last}"

    def address6(self, value: str) -> str:
        try:
            parsed = ipaddress.IPv6Address(value)
        except ValueError:
            return value
        if parsed.is_loopback or parsed.is_unspecified:
            return value
        digits = self.digest("address6", parsed.exploded).hex()
        return ("2001:0db8:" if len(value) >= 39 else "2001:db8:") + ":".join(digits[k : k + 4] for k in range(0, 24, 4))

    def mac(self, value: str) -> str:
        """A locally administered address, in the same spelling."""
        plain = re.sub(r"[^0-9A-Fa-f]", "", value).lower()
        if plain in ("0" * 12, "f" * 12):
            return value
        digits = iter("02" + self.digest("mac", plain).hex()[:10])
        out = "".join(next(digits) if char in string.hexdigits else char for char in value)
        return out.upper() if value.upper() == value and value.lower() != value else out

    def prompt(self, value: str) -> str:
        return f"<redacted {self._word('prompt', value, 8)}, {len(value)} characters>"

    def ids(self, value: str) -> str:
        return f"<redacted, {value.count(',') + 1} ids>"

    def shape(self, value: str, kind: str = "secret") -> str:
        """Letters for letters, digits for digits, hexadecimal for hexadecimal; what stands between stays, and so does a prefix such as `ghp_`."""
        if kind in ("hex", "uuid"):
            stream, low = iter(self._stream("hex", value.lower(), len(value))), "0123456789abcdef"
            big = value.upper() == value != value.lower()
            out = "".join(low[next(stream) % 16] if char in string.hexdigits else char for char in value)
            return out.upper() if big else out
        lead = _PREFIX.match(value)
        start = lead.end() if lead else 0
        stream = iter(self._stream(kind, value, len(value)))
        made = (match[0] if len(match[0]) > 1 else _like(match[0], next(stream)) for match in _SIGN.finditer(value, start))
        return value[:start] + "".join(made)

    # ------------------------------------------------------------ the stream

    def _word(self, kind: str, value: str, length: int) -> str:
        """A letter, then letters and digits."""
        stream = self._stream(kind, value, length)
        return "".join(_SIGNS[byte % (23 if k == 0 else 32)] for k, byte in enumerate(stream))

    def _stream(self, kind: str, value: str, length: int) -> bytes:
        out = self.digest(kind, value)
        while len(out) < length:
            out += self.digest(kind, f"{len(out)}\0{value}")
        return out[:length]


_SIGNS = "abcdefghijkmnpqrtuvwxyzs23456789"
"""Those that are not taken for each other. A word begins with one of the first 23: `node-smi` would be a tool, no node."""
_KINDS = frozenset({"host", "user", "email", "address", "address6", "mac", "prompt", "ids"})
_SIGN = re.compile(r"\\.|.", re.DOTALL)
"""One sign, or an escaped one such as the line end in a key that stands in JSON, which stays."""
_PREFIX = re.compile(r"(?:gh[pousr]_|github_pat_|glpat-|hf_|sk-|xox[a-z]-|AKIA|ASIA|AIza|LTAI|npm_|pypi-|dckr_pat_|ms-|ssh-\w+ |AAAA|SHA256:)")


def _like(char: str, byte: int) -> str:
    if char.isdigit() and char.isascii():
        return str(byte % 10)
    if not char.isalpha():
        return char
    if not char.isascii():
        return "x"
    return (string.ascii_uppercase if char.isupper() else string.ascii_lowercase)[byte % 26]
