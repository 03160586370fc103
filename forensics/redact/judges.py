"""Whether what looks like a secret is one: the judges of the forms. Each gets a match, and says no to versions, numbers, words and defaults."""

from __future__ import annotations

import ipaddress
import re

from forensics.redact.names import GENERIC_HOSTS, GENERIC_USERS

_VERSIONED = tuple(
    sign + word.encode()
    for word in ("v", "ver", "release", "firmware", "driver", "software", "npu-smi", "hccn_tool", "bios", "cpld")
    for sign in (b" ", b"\t", b"|", b"=", b":", b"(", b"[", b'"', b"'", b"_", b"-", b",", b"\n")
)
"""What stands right before a version of four numbers."""
NO_SECRET = re.compile(
    rb"(?:none|null|nil|true|false|yes|no|on|off|auto|\*+|x{3,}|\.{3}|<[^>]*>|\$\{?\w+\}?|\{+[\w. ]*\}+|%\w|redacted|hidden|masked|required|enabled"
    rb"|disabled|file|env|str|string|int|bool|optional\S*|is|was|not|expired|invalid|error|failed|missing|for|the|and|to)[,.;:)\]}]*", re.IGNORECASE
)  # fmt: skip
_NUMBER = re.compile(rb"[-+]?[\d.,]+[a-z%]{0,3}", re.IGNORECASE)
_TOKEN_COUNTS = re.compile(
    rb"(?:eos|bos|pad|unk|mask|image|video|audio|special|stop|max|min|num|per|sep|cls|new|next|last|first|decode|prefill|draft|padding)[_ -]?$",
    re.IGNORECASE,
)
"""Tokens of a language model, which are no secret."""


def address(match: re.Match[bytes]) -> bool:
    if any(len(part) == 3 and part > b"255" for part in match["v"].split(b".")):
        return False
    start = match.start("v")
    lead = b"\n" + match.string[max(0, start - 48) : start].rpartition(b"\n")[2].rstrip(b" \t=:([\"'_-").lower()
    return not lead.removesuffix(b" number").endswith((b"version", *_VERSIONED))


def address6(match: re.Match[bytes]) -> bool:
    try:
        ipaddress.IPv6Address(match["v"].decode())
    except ValueError:
        return False
    return match["v"].count(b":") == 7 or match["v"][:1].lower() in (b"2", b"3", b"f") or match["v"].lower().startswith(b"::ffff:")


def mac(match: re.Match[bytes]) -> bool:
    return b":" in match["v"] or re.search(rb"[a-fA-F]", match["v"]) is not None


def value(match: re.Match[bytes]) -> bool:
    """Whether what stands behind a secret's name is one."""
    name, value = _name(match).lower(), match["v"] if match["v"] is not None else match["w"]
    if NO_SECRET.fullmatch(value) or not value.strip(b"'\"\\,;") or value.startswith((b"<redacted", b"/var/run/secrets", b"[")):
        return False
    if b"token" in name:
        lead = name[: name.rfind(b"token")]
        if _TOKEN_COUNTS.search(lead) or _NUMBER.fullmatch(value) or len(value) < 6 or value.startswith((b"/", b".")) or b"(" in value:
            return False
        return re.search(rb"\d", value) is not None or len(value) >= 12 or bool(lead.strip(b"_- "))
    if name.endswith((b"pwd", b"credential", b"credentials")) and value.startswith((b"/", b"\\")):
        return False
    if name.endswith((b"name", b"path", b"file", b"dir", b"type", b"mode", b"len", b"length", b"size", b"count")):
        return False
    return not (b"key" in name or b"sig" in name or len(name) <= 3) or (len(value) >= 6 and not _NUMBER.fullmatch(value))


_LEAD = re.compile(rb"[\w.-]{0,60}$")


def _name(match: re.Match[bytes]) -> bytes:
    """The whole name that a secret stands behind, of which the form matched the telling word."""
    start = match.start("name")
    lead = _LEAD.search(match.string[max(0, start - 60) : start])
    return (lead[0] if lead else b"") + match["name"]


def secret(match: re.Match[bytes]) -> bool:
    """Where a blank alone parts name and value, it has to be an option of a command."""
    group = "v" if match["v"] is not None else "w"
    between = match.string[match.end("name") : match.start(group)]
    return (b"=" in between or b":" in between or _name(match).startswith(b"-")) and value(match)


def serial(match: re.Match[bytes]) -> bool:
    value = match["v"]
    if re.fullmatch(rb"\d+/\d+", value):  # `Serial: 8250/16550 driver`
        return False
    return re.search(rb"\d", value) is not None and not (value.isdigit() and len(value) < 7) and value.lower() not in (b"0000000000", b"unknown")


def host_like(value: bytes) -> bool:
    """Whether a text can be the name of a host that tells something."""
    text = value.decode("utf-8", "replace").rstrip(".")
    if len(text) < 2 or len(text) > 120 or GENERIC_HOSTS.fullmatch(text) or not re.search(r"[A-Za-z]", text):
        return False
    if re.fullmatch(r"[\d.]+|0x[0-9a-f]+|\w+\.(?:py|log|c|cc|cpp|h|so)", text):
        return False
    return re.fullmatch(r"[A-Za-z0-9][\w-]*(?:\.[A-Za-z0-9][\w-]*)*", text) is not None


def host(match: re.Match[bytes]) -> bool:
    return host_like(match["v"])


def user(match: re.Match[bytes]) -> bool:
    return match["v"].decode("utf-8", "replace").lower() not in GENERIC_USERS and not match["v"].isdigit()


_PUBLIC = re.compile(
    rb"(?:.*\.)?(?:huggingface\.co|hf-mirror\.com|modelscope\.(?:cn|com)|github\.com|githubusercontent\.com|gitee\.com|gitcode\.(?:com|net)"
    rb"|gitlab\.com|pypi\.org|pythonhosted\.org|pytorch\.org|hiascend\.com|huawei\.com|huaweicloud\.com|myhuaweicloud\.com|mindspore\.cn"
    rb"|openeuler\.org|quay\.io|docker\.(?:com|io)|vllm\.ai|readthedocs\.io|python\.org|kernel\.org|debian\.org|ubuntu\.com|aliyun\.com"
    rb"|tsinghua\.edu\.cn|w3\.org|apache\.org|json-schema\.org|example\.(?:com|org|net)|wandb\.ai|openai\.com|anthropic\.com|google\.com"
    rb"|googleapis\.com|stackoverflow\.com|nvidia\.com|ray\.io|kubernetes\.io|k8s\.io|xmlsoap\.org|bit\.ly|aka\.ms|microsoft\.com"
    rb"|x-k8s\.io|hami\.io|volcano\.sh|pydantic\.dev|pypa\.io)",
    re.IGNORECASE,
)
"""Sites that everybody knows."""


def site(match: re.Match[bytes]) -> bool:
    value = match["v"]
    return b"." in value and host_like(value) and not _PUBLIC.fullmatch(value)


def inner_site(match: re.Match[bytes]) -> bool:
    """A name of an inner network; `threading.local` and `torch._inductor.internal` are none."""
    return host_like(match["v"]) and re.search(rb"[0-9-]", match["v"]) is not None and b"_" not in match["v"]


def prompt(match: re.Match[bytes]) -> bool:
    value = match["v"].strip()
    return bool(value) and not NO_SECRET.fullmatch(value) and not _NUMBER.fullmatch(value) and not value.startswith(b"<redacted")


_TALK = re.compile(rb"\bprompt|[\"']role\\?[\"']|Received request|CompletionOutput|\"choices\\?\"|Generated text", re.IGNORECASE)


def talk(match: re.Match[bytes]) -> bool:
    """`content` and `text` are words of every other log: they hold what users said only where a request or an answer is printed."""
    return prompt(match) and _TALK.search(match.string[max(0, match.start() - 4000) : match.end() + 400]) is not None


def not_all(match: re.Match[bytes]) -> bool:
    return len(set(match["v"].lower())) > 3
