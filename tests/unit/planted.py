"""Secrets of many forms, planted in logs of many kinds: made up, the same at every run."""

from __future__ import annotations

import random
import string
from collections.abc import Callable

ALNUM = string.ascii_letters + string.digits
Plant = tuple[str, str, list[str]]
"""Form, line, and what of the line has to be gone."""


class Maker:
    def __init__(self, seed: int):
        self.random = random.Random(seed)

    def of(self, alphabet: str, length: int) -> str:
        return "".join(self.random.choice(alphabet) for _ in range(length))

    def hex(self, length: int) -> str:
        return self.of("0123456789abcdef", length - 1) + self.random.choice("abcdef")

    def word(self) -> str:
        return self.random.choice("bdfgjkmprtvz") + self.of("aeiou", 1) + self.of("bdfgkmnprtvz", 1) + self.of("aeiou", 1) + self.of("kmnrtz", 1)

    def password(self) -> str:
        return self.of(ALNUM, 6) + self.of("!@#%^", 1) + self.of(string.digits, 2) + self.of(string.ascii_letters, 3)

    def address(self) -> str:
        return f"10.{self.random.randrange(1, 250)}.{self.random.randrange(1, 250)}.{self.random.randrange(1, 250)}"

    def host(self) -> str:
        return f"{self.word()}-{self.word()}{self.random.randrange(10, 99)}"


def forms() -> dict[str, Callable[[Maker], Plant]]:
    """Thirty forms, and how a line with each is made."""

    def one(name: str, line: Callable[[str], str], value: Callable[[Maker], str]) -> Callable[[Maker], Plant]:
        def make(maker: Maker) -> Plant:
            secret = value(maker)
            return name, line(secret), [secret]

        return make

    table: dict[str, Callable[[Maker], Plant]] = {}

    def add(name: str, line: Callable[[str], str], value: Callable[[Maker], str]) -> None:
        table[name] = one(name, line, value)

    add(
        "ipv4",
        lambda s: f"[ERROR] HCCL(88,python3):2026-03-12-14:31:07.803.514 [rank.cc:12][88]server[{s}] device[3] connect timeout",
        lambda m: m.address(),
    )
    add("ipv6", lambda s: f"listening on [{s}]:8000", lambda m: f"2408:{m.hex(4)}:{m.hex(4)}:1::{m.hex(4)}")
    add("mac", lambda s: f"eth0: link/ether {s} brd ff:ff:ff:ff:ff:ff", lambda m: ":".join(m.hex(2) for _ in range(6)))
    add("mac-dashes", lambda s: f"Physical Address : {s.upper()}", lambda m: "-".join(m.hex(2) for _ in range(6)))
    add("email", lambda s: f"Author: mailed to <{s}> about it", lambda m: f"{m.word()}.{m.word()}@{m.word()}soft.com.cn")
    add("syslog-host", lambda s: f"Mar 12 14:31:07 {s} kernel: [90311.804417] [ascend] [ERROR] [devdrv] [f 88] <k:1:1> msg", lambda m: m.host())
    add("shell-host", lambda s: f"[root@{s} ~]# npu-smi info", lambda m: m.host())
    add("env-host", lambda s: f"HOSTNAME={s}", lambda m: m.host())
    add("inner-domain", lambda s: f"dial tcp: lookup {s}.corp: no such host", lambda m: f"{m.host()}.{m.word()}")
    add("site", lambda s: f"Cloning from https://{s}/team/repo.git", lambda m: f"git.{m.word()}{m.word()}.com.cn")
    add("pod", lambda s: f"Started container in pod {s} on node", lambda m: f"{m.word()}-serve-{m.hex(10)}-{m.of('bcdfghjklmnpqrstvwxz', 5)}")
    add("home", lambda s: f'  File "/home/{s}/work/train.py", line 31, in <module>', lambda m: m.word() + m.word())
    add("env-user", lambda s: f"export SUDO_USER={s}", lambda m: m.word() + m.word())
    add("uid", lambda s: f"uid=1003({s}) gid=1000(users)", lambda m: m.word() + m.word())
    add("sshd-user", lambda s: f"Accepted publickey for {s} from 10.0.0.9 port 50022 ssh2", lambda m: m.word() + m.of(string.digits, 3))
    add("windows-home", lambda s: rf"C:\Users\{s}\AppData\Local\Temp", lambda m: m.word() + m.word())
    add("env-password", lambda s: f"DB_PASSWORD={s}", lambda m: m.password())
    add("json-secret", lambda s: f'{{"client_secret": "{s}", "expires": 3600}}', lambda m: m.of(ALNUM, 24))
    add("option-key", lambda s: f"vllm serve /models/q --api-key {s} --port 8000", lambda m: m.of(ALNUM, 20))
    add("hf-token", lambda s: f"Downloading with token {s} ...", lambda m: "hf_" + m.of(ALNUM, 34))
    add("github-token", lambda s: f"remote: using {s}", lambda m: "ghp_" + m.of(ALNUM, 36))
    add("aws-key", lambda s: f"aws_access_key_id = {s}", lambda m: "AKIA" + m.of(string.ascii_uppercase + string.digits, 16))
    add("bearer", lambda s: f"> Authorization: Bearer {s}", lambda m: m.of(ALNUM, 30))
    add("jwt", lambda s: f"session {s} refreshed", lambda m: f"eyJ{m.of(ALNUM, 20)}.eyJ{m.of(ALNUM, 40)}.{m.of(ALNUM + '-_', 40)}")
    add("url-password", lambda s: f"proxy http://build:{s}@proxy.example.com:3128/", lambda m: m.of(ALNUM, 12))
    add("uuid", lambda s: f"System UUID: {s}", lambda m: f"{m.hex(8)}-{m.hex(4)}-{m.hex(4)}-{m.hex(4)}-{m.hex(12)}")
    add("container-64", lambda s: f"containerd://{s} exited 137", lambda m: m.hex(64))
    add("container-12", lambda s: f"{s}   vllm-ascend:v0.9.1   \"bash\"   2 days ago   Up 2 days   serve", lambda m: m.hex(12))
    add(
        "serial",
        lambda s: f"        Serial Number                  : {s}",
        lambda m: f"0{m.of(string.digits, 5)}{m.of(string.ascii_uppercase, 4)}{m.of(string.digits, 6)}",
    )
    add(
        "prompt",
        lambda s: f"INFO 03-12 14:00:01 [logger.py:41] Received request cmpl-1: prompt: '{s}', params: SamplingParams(n=1), prompt_token_ids: [1, 2]",
        lambda m: f"please tell {m.word()} that the {m.word()} of the {m.word()} isn\\'t due",
    )
    return table


def plant(count: int, seed: int = 1) -> list[Plant]:
    """`count` lines, the forms in turn."""
    maker, makers = Maker(seed), list(forms().values())
    return [makers[k % len(makers)](maker) for k in range(count)]
