"""`dsforensics redact`: what it says, and how it ends."""

from __future__ import annotations

import sys

from forensics.bundle import Limits
from forensics.options import Progress
from forensics.progress import ProgressLine
from forensics.redact.copy import Copied, copy, target_of
from forensics.redact.names import load_key
from forensics.redact.protected import words
from forensics.safe_text import safe
from forensics.terminal import Output, complain, is_terminal
from rules import pack

_FORMS = {
    "address": ("addresses", "地址"), "address6": ("IPv6 addresses", "IPv6 地址"), "mac": ("MAC addresses", "MAC 地址"), "host": ("hosts", "主机"),
    "user": ("users", "用户"), "email": ("e-mail addresses", "邮箱"), "secret": ("keys, tokens and passwords", "密钥、令牌和密码"),
    "hex": ("container and machine ids", "容器和机器标识"), "uuid": ("UUIDs", "UUID"), "serial": ("serial numbers", "序列号"),
    "prompt": ("prompts and answers", "提示词和回答"), "ids": ("token lists of prompts", "提示词的 token 列表"),
}  # fmt: skip
SHOWN = 400
"""Of one kind, values that --check lists without --verbose."""


def run(source: str, out: str | None, key_file: str | None, check: bool, force: bool, quiet: bool, verbose: bool, lang: str, progress: bool) -> int:
    """Redact `source`, or list what would be replaced; the exit status. Raises ForensicsError."""
    target = None if check else target_of(source, out)
    key = load_key(key_file)
    line = ProgressLine(lang) if progress and is_terminal(sys.stderr) else None

    def report(stage: str, done: int, total: int, what: str) -> None:
        if line is not None:
            line(Progress("read" if stage == "learn" else "copy", done, total, 0, what))

    try:
        done = copy(
            source, target, key, limits=Limits(), protected=words(pack.load()), force=force, listing=check, on_progress=report if line else None
        )  # fmt: skip
    finally:
        if line is not None:
            line.clear()
    Output().text(_listed(done, lang, verbose) if check else _told(done, lang))
    if not quiet:
        for left in done.left_out[:50]:
            complain(f"dsforensics: {left.path}: {left.reason_zh if lang == 'zh' else left.reason}")
        if len(done.left_out) > 50:
            complain(f"dsforensics: {len(done.left_out) - 50} further members are named in the copy's redaction.json")
    return 4 if any(left.lost for left in done.left_out) else 0


def _told(done: Copied, lang: str) -> str:
    total = sum(done.counts.values())
    if lang == "zh":
        return f"{safe(done.target)}   {done.members} 个文件，替换 {total:,} 处。发送前请自行查看一遍：规则之外的内容不会被替换。\n"
    return (
        f"{safe(done.target)}   {done.members} files, {total:,} places replaced. "
        "Look it over before you send it: what fits no form is not replaced.\n"
    )  # fmt: skip


def _listed(done: Copied, lang: str, verbose: bool) -> str:
    """What would be replaced, by kind: original, pseudonym, how often, where first."""
    out = []
    by_kind: dict[str, list[str]] = {}
    for one in done.seen:
        value = safe(one.value if len(one.value) <= 100 or verbose else one.value[:100] + "…")
        where = f"{safe(one.file)}:{one.line}" if one.file else ("文件名" if lang == "zh" else "in the name of a file")
        by_kind.setdefault(one.kind, []).append(f"  {one.count:>6} ×  {value}  ->  {safe(one.pseudonym[:100])}   {where}")
    for kind, rows in by_kind.items():
        english, chinese = _FORMS.get(kind, (kind, kind))
        out.append(f"{chinese if lang == 'zh' else english}: {len(rows)}")
        shown = rows if verbose else rows[:SHOWN]
        out += shown
        if len(rows) > len(shown):
            more = len(rows) - len(shown)
            out.append(f"  … 另有 {more} 个，用 --verbose 查看" if lang == "zh" else f"  … {more} more: --verbose shows them")
    if not out:
        out.append("没有需要替换的内容。" if lang == "zh" else "Nothing would be replaced.")
    return "\n".join(out) + "\n"
