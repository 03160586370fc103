"""Words that are too common in logs to be taken for a name wherever they stand: an account called `hccl` must not rename the library."""

from __future__ import annotations

import re

from rules.model import RuleSet
from rules.scan import leaves_of

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]{2,}(?:[_.-][A-Za-z0-9]+)*")
_COMMON = frozenset(
    {
        "error", "warning", "info", "debug", "event", "critical", "fatal", "trace", "hccl", "runtime", "driver", "ascendcl", "kernel",
        "device", "aicpu", "ascend", "npu", "node", "host", "rank", "user", "time", "date", "data", "model", "train", "test", "worker",
        "engine", "server", "client", "python", "python3", "torch", "vllm", "mindspore", "mindie", "cann", "toolkit", "firmware", "memory",
        "stream", "task", "thread", "process", "module", "function", "file", "line", "value", "name", "type", "status", "state", "level",
        "message", "version", "config", "path", "home", "root", "tmp", "usr", "var", "log", "logs", "local", "share", "systemd", "dockerd",
        "containerd", "kubelet", "sshd", "cron", "crond", "rsyslogd", "klogd", "slogd", "kworker", "worker_tp0", "enginecore", "apiserver",
        "api_server", "main", "init", "start", "stop", "open", "close", "read", "write", "send", "recv", "connect", "timeout", "failed",
        "success", "input", "output", "tensor", "shape", "dtype", "float", "int", "string", "null", "true", "false", "none", "cluster",
        "master", "slave", "default", "linux", "ubuntu", "centos", "euler", "docker", "bash", "nohup", "release", "production", "staging",
        "develop", "master_addr", "build",
    }
)  # fmt: skip


def words(rules: RuleSet) -> frozenset[str]:
    """All words that rules look for, in lower case, and those that every log holds."""
    found = set(_COMMON)
    for rule in rules.rules:
        for leaf in leaves_of(rule.match):
            for text in (*leaf.contains, leaf.regex, *leaf.codes, *leaf.module, *leaf.source):
                for match in _WORD.finditer(text):
                    word = match[0].lower()
                    found.add(word)
                    found.update(re.split(r"[_.-]", word))
    return frozenset(found)
