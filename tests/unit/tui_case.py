"""A made-up incident of two nodes, triaged with four rules of its own, for the tests of the browser: the same lines, findings and words
whatever the shipped packs say."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.case import Case, open_case
from forensics.options import Options
from rules import pack
from rules.model import RuleSet

EVIL = (
    "\x1b[31mred\x1b[2J \u202eright to left\u202c [red]markup[/red] [link=file:///etc/passwd]x[/link] [@click=app.leave]y[/]\ttab "
    "\x1b]52;c;aG9zdGlsZQ==\x07 宽字符 \x9b31m \x00 end"
)
LONG = 1_000_000
"""Characters of the longest line."""
RULES = """\
- id: demo.hbm.uncorrectable
  root_cause: ecc-hardware-fault
  title: {en: 'HBM reports an uncorrectable error (event {event.code})', zh: 'HBM 上报不可纠正错误（事件 {event.code}）'}
  layer: hardware
  severity: error
  strength: decisive
  match: {id: event, regex: 'event_id: \\[(?P<code>0x80E01801)\\]'}
  explains:
    - {rule: 'demo.kernel.*'}
    - {rule: 'demo.notify.*'}
  remedy: {en: ['Take this card out of the job.'], zh: ['将该卡移出业务。']}
- id: demo.kernel.failed
  root_cause: aicore-oob-access
  title: {en: 'Kernel {kernel.name} failed', zh: '算子 {kernel.name} 执行失败'}
  layer: operator
  severity: error
  match: {id: kernel, regex: 'fault kernel_name=(?P<name>\\w+)'}
  explains:
    - {rule: 'demo.notify.*'}
  remedy: {en: ['Look at the record of the core.'], zh: ['查看核异常记录。']}
- id: demo.notify.timeout
  root_cause: hccl-notify-wait-timeout
  title: {en: 'A rank waited in vain', zh: 'rank 等待超时'}
  layer: collective
  severity: error
  role: symptom
  match: {id: wait, contains: Notify wait timeout}
  remedy: {en: ['Look for the rank that stopped first.'], zh: ['查找最先停止的 rank。']}
- id: demo.rope.positions
  root_cause: op-shape-constraint
  title: {en: 'Positions beyond {start.len}', zh: '位置超过 {start.len}'}
  layer: operator
  severity: error
  match: {id: start, regex: 'max_model_len=(?P<len>\\d+)'}
  replay: {kernel: rope, params: {seq_len: '{start.len}', dtype: bfloat16}}
  remedy: {en: ['Run the kernel again.'], zh: ['重跑该算子。']}
- id: demo.quiet
  root_cause: driver-load-failed
  title: {en: 'Nothing of the kind', zh: '没有此类现象'}
  layer: driver
  severity: warning
  match: {id: none, contains: this stands nowhere}
  remedy: {en: ['Nothing.'], zh: ['无。']}
"""


def plog(level: str, module: str, pid: int, clock: str, text: str) -> str:
    return f"[{level}] {module}({pid},python3):2026-03-12-{clock} [file.cc:{len(text)}]{pid} {text}\n"


def rank_log(rank: int) -> str:
    pid = 2100 + rank
    out = plog("INFO", "ASCENDCL", pid, "14:20:03.440.117", "aclInit: start to execute aclInit")
    for step in range(60):
        clock = f"14:{21 + step // 6:02d}:{step % 6 * 10:02d}.{step * 16 + rank:03d}.000"
        out += plog("INFO", "GE", pid, clock, f"graph {step} finished, cost 1800 us")
    if rank == 3:
        out += plog("ERROR", "RUNTIME", pid, "14:31:07.904.338", "The error from device(chipId:2), error code = 0x800000, an aivec error exception")
        text = "Aicore kernel execute failed, device_id=2, stream_id=41, fault kernel_name=RmsNorm_8e1f"
        out += plog("ERROR", "RUNTIME", pid, "14:31:07.905.151", text)
    else:
        out += plog("ERROR", "RUNTIME", pid, f"14:36:09.21{rank}.034", f"Notify wait timeout, device_id={rank}, stream_id=23, retCode=0x95.")
    return out


def console() -> str:
    out = "INFO 03-12 14:20:01 [serve.py:41] starting with max_model_len=70001\n"
    out += "WARNING 03-12 14:20:02 [config.py:7] something to think of\n"
    out += f"INFO 03-12 14:22:00 [input.py:1] {EVIL}\n"
    out += f"INFO 03-12 14:22:01 [input.py:2] {'x' * LONG}\n"
    out += "ERROR 03-12 14:31:08 [worker.py:671] Traceback (most recent call last):\n"
    return out + "RuntimeError: ACL stream synchronize failed, error code:507035\n"


def files() -> dict[str, str]:
    event = "[ERROR] SYSMONITOR(1180,fault_manager):2026-03-12-06:31:07.803.514 [fault_manager.c:418][Fault] event_id: [0x80E01801], assertion=1\n"
    made = {f"node-{'a' if rank < 2 else 'b'}/plog/plog-{2100 + rank}_20260312062003.log": rank_log(rank) for rank in range(4)}
    made["node-b/slog/dev-os-2/run/event/event_20260312062001.log"] = event
    made["node-a/console.log"] = console()
    recording = "time,dev_id,power,temp,freq\n"
    for k in range(40):
        for device in range(2):
            recording += f"{1773296400 + 30 * k},{device},{90 + k % 11 * 10},{45 + device * 5 + k % 7},1800\n"
    made["node-a/recording.csv"] = recording
    made["node-a/env.txt"] = "HCCL_CONNECT_TIMEOUT=120\nHCCL_EXEC_TIMEOUT=300\nASCEND_HOME_PATH=/usr/local/Ascend\n"
    made["node-b/env.txt"] = "HCCL_CONNECT_TIMEOUT=600\nHCCL_EXEC_TIMEOUT=300\nASCEND_HOME_PATH=/usr/local/Ascend\n"
    return made


def only_demo_rules(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """From now on the rules are those of this file."""
    packed = folder / "demo"
    packed.mkdir(exist_ok=True)
    (packed / "pack.yaml").write_text("name: demo\nversion: 1.0.0\nmaintainers: []\nlicence: Apache-2.0\nrequires: {}\n")
    (packed / "rules.yaml").write_text(RULES, "utf-8")
    load = pack.load

    def loaded(folders: object = (), shipped: bool = True) -> RuleSet:
        return load([packed], shipped=False)

    patch.setattr(pack, "load", loaded)


def bundle(folder: Path) -> Path:
    source = folder / "incident"
    for name, text in files().items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8", newline="\n")
    return source


def made(folder: Path) -> Case:
    """The case of the incident, in `folder`."""
    from forensics.pipeline import run

    work = run([str(bundle(folder))], Options(out=str(folder / "demo.case"), workers=1, tz="+08:00"))
    try:
        assert work.finish() == []
    finally:
        work.close()
    return open_case(folder / "demo.case")
