"""Ten incidents, each with a healthy twin: the same job on the same machine, one run of which went wrong. Made up, the same at every run."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

RANKS = 4


class Fault(NamedTuple):
    name: str
    file: str
    """Where the deciding line stands: plog, console, dmesg, device, hccn, messages."""
    line: str
    """The deciding line, {t} its time in the file's own form."""
    mark: str
    """What of it tells that it is the one."""
    after: tuple[str, ...]
    """Consequences on that rank's console, behind the general ones."""


FAULTS = (
    Fault("hbm", "dmesg", "[ascend] [ERROR] [dms_module] [dms_event_distribute 219] <kworker/1:1:77:77> Event report. (dev_id=1; Event id=0x80e01801)",
          "0x80e01801", ("RuntimeError: The Inner error is reported as above.",)),
    Fault("optical", "hccn", "Rx Los Flag          : 0xff", "0xff", ("torch.distributed.DistBackendError: [1] is setting up HCCL communicator",)),
    Fault("link", "device", "[EVENT] NET(-2,null):{t} [roce_link.c:88][ascend] port 0 link state changed from up to down", "from up to down",
          ("torch.distributed.DistBackendError: notify wait timed out",)),
    Fault("oom", "console", "INFO {t} [model_runner.py:881] Available KV cache memory: -0.87 GiB", "-0.87 GiB",
          ("ValueError: No available memory for the cache blocks.",)),
    Fault("driver", "messages", "{t} atlas-k71 kernel: [90311.1] [ascend] [WARN] [drv_pcie] [pcie_reset 88] <x:1:1> device 1 pcie link retrain to gen1",
          "retrain to gen1", ("RuntimeError: copy between host and device is not finished in time",)),
    Fault("operator", "plog", "[ERROR] GE({p},python3):{t} [op_compiler.cc:412]{p} Compile:the shape of input 0 [1,65536] is not supported by op GroupedMatMul",
          "65536", ("RuntimeError: call aclnnGroupedMatmulV4 failed, detail:EZ1001",)),
    Fault("port", "plog", "[WARNING] HCCL({p},python3):{t} [socket.cc:71] [{p}]bind ip[10.0.0.5] port[16666] is in use, try again", "is in use",
          ("RuntimeError: HCCL function error: HcclGetRootInfo, error code is 7",)),
    Fault("disk", "messages", "{t} atlas-k71 kernel: [90311.2] EXT4-fs (sda1): warning: mounting fs with errors, remounting read-only", "read-only",
          ("OSError: [Errno 30] Read-only file system: 'ckpt/step_600.pt'",)),
    Fault("killed", "dmesg", "Out of memory: Killed process 2301 (dataloader) total-vm:93812kB, anon-rss:77123kB", "Killed process",
          ("RuntimeError: DataLoader worker (pid 2301) is killed by signal: Killed.",)),
    Fault("config", "console", "WARNING {t} [platform.py:212] HCCL_BUFFSIZE=200 is smaller than the window of the fused dispatch needs (600 MB)", "fused dispatch",
          ("RuntimeError: aclnnMoeDistributeDispatchV2 failed, error code 561002",)),
)  # fmt: skip


class Run:
    """One run of the job; `fault` none: it went well."""

    def __init__(self, seed: int, start: datetime, fault: Fault | None = None):
        self.random, self.start, self.fault = random.Random(seed), start, fault
        self.pids = [self.random.randrange(1000, 90000) for _ in range(RANKS)]
        self.files: dict[str, list[str]] = {}
        self.ends = 560 if fault else 600

    def at(self, second: float, form: str) -> str:
        moment = self.start + timedelta(seconds=second, microseconds=self.random.randrange(1000))
        if form == "plog":
            return moment.strftime("%Y-%m-%d-%H:%M:%S.") + f"{moment.microsecond // 1000:03d}.{moment.microsecond % 1000:03d}"
        if form == "syslog":
            return moment.strftime("%b %d %H:%M:%S")
        return moment.strftime("%m-%d %H:%M:%S")

    def put(self, file: str, line: str) -> None:
        self.files.setdefault(file, []).append(line)

    def write(self, folder: Path) -> Path:
        self._machine()
        for rank, pid in enumerate(self.pids):
            self._rank(rank, pid)
        for name, lines in self.files.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("\n".join(lines) + "\n")
        return folder

    def _machine(self) -> None:
        more = self.random.randrange(100)
        self.put("versions.txt", "Version=25.2.0\nascendhal_version=7.35.23\n\npackage_name=Ascend-cann-toolkit\nversion=8.3.RC1")
        buffer = 200 if self.fault and self.fault.name == "config" else 800
        self.put("env.txt", f"HCCL_BUFFSIZE={buffer}\nASCEND_RT_VISIBLE_DEVICES=0,1,2,3\nHOSTNAME=atlas-k71\nMASTER_PORT={20000 + more}")
        for k in range(30):
            up = 88000 + more + k * 9 + self.random.random()
            self.put("dmesg.txt", f"[{up:.6f}] [ascend] [devdrv] [devdrv_heart_beat 77] <kworker/{k % 8}:1:{100 + k}:{100 + k}> heart beat ok. (dev_id={k % 4})")
            self.put("dmesg.txt", f"[{up + 1:.6f}] [ascend] [ERROR] [devdrv] [query_info 12] <npu-smi:{900 + k}:{900 + k}> not support, ret=-95 (dev_id={k % 4})")
            self.put("messages", f"{self.at(k * 18, 'syslog')} atlas-k71 systemd[1]: Started Session {more + k} of user root.")
            self.put("device-os.log", f"[EVENT] KERNEL(301,sklogd):{self.at(k * 18, 'plog')} [klogd.c:253][{up:.6f}] usb 1-{k % 3}: new device number {k}")
        for device in range(RANKS):
            los = "0xff" if self.fault and self.fault.name == "optical" and device == 1 else "0x0"
            self.put("hccn.txt", f"hccn_tool -i {device} -optical -g\npresent              : present\nRx Los Flag          : {los}\nRx Power0            : {0.6 + self.random.random():.4f} mW")
        if self.fault and self.fault.file in ("dmesg", "messages", "device"):
            self._decide(520, 1)

    def _decide(self, second: float, rank: int) -> None:
        fault = self.fault
        assert fault is not None
        file, form = {
            "dmesg": ("dmesg.txt", ""), "messages": ("messages", "syslog"), "device": ("device-os.log", "plog"),
            "plog": (f"plog/plog-{self.pids[rank]}_20260312.log", "plog"), "console": (f"console-{rank}.log", "console"),
        }[fault.file]  # fmt: skip
        line = fault.line.format(t=self.at(second, form) if form else "", p=self.pids[rank])
        self.put(file, f"[{88520 + self.random.random():.6f}] {line}" if fault.file == "dmesg" else line)

    def _rank(self, rank: int, pid: int) -> None:
        plog, console = f"plog/plog-{pid}_20260312.log", f"console-{rank}.log"
        hurt = self.fault is not None and rank == 1
        if not (hurt and self.fault and self.fault.name == "oom"):
            self.put(console, f"INFO {self.at(1, 'console')} [model_runner.py:881] Available KV cache memory: {20 + self.random.random():.2f} GiB")
        for step in range(self.ends // 10):
            second = step * 10.0
            self.put(plog, f"[INFO] RUNTIME({pid},python3):{self.at(second, 'plog')} [stream.cc:31]{pid} Sync:stream {step % 8} done, cost {self.random.randrange(900)} us")
            self.put(plog, f"[INFO] HCCL({pid},python3):{self.at(second + 1, 'plog')} [comm.cc:90] [{pid}]AllReduce tag[ar_{step}] count[{self.random.randrange(9999)}]")
            loss = 4 - step / 100 + self.random.random() / 9
            self.put(console, f"INFO {self.at(second + 2, 'console')} [trainer.py:90] step {step} loss {loss:.4f} tokens/s {self.random.randrange(9000)}")
            if step % 9 == 4:
                self.put(console, f"WARNING {self.at(second + 2, 'console')} [data.py:12] sample {self.random.randrange(99999)} is too long, cut to 4096")
                self.put(plog, f"[ERROR] RUNTIME({pid},python3):{self.at(second + 3, 'plog')} [api.cc:9]{pid} Query:feature {step % 3} not supported, retCode=0x95")
        if self.fault is None:
            self.put(console, f"INFO {self.at(600, 'console')} [trainer.py:120] training finished, saved to ckpt/step_600.pt")
            return
        if hurt and self.fault.file in ("plog", "console"):
            self._decide(520, rank)
        self._suffers(rank, pid, plog, console)

    def _suffers(self, rank: int, pid: int, plog: str, console: str) -> None:
        """What every rank prints once the job is broken, whatever broke it."""
        assert self.fault is not None
        first = 530.0 if rank == 1 else 540.0 + rank
        for k, text in enumerate((
            "[task.cc:88]{p} Report:Task run failed, stream_id=4, task_id=71, sqe_type=0, retCode=0x7bc83",
            "[stream.cc:1079]{p} GetError:Stream Synchronize failed, stream_id=4, retCode=0x26",
            "[api_error.cc:2177]{p} StreamSynchronize:Stream synchronize failed, stream is in failure abort",
            "[notify.cc:66]{p} Wait:wait for compute device to finish failed, runtime result = 507048",
        )):  # fmt: skip
            module = "RUNTIME" if k < 3 else "ASCENDCL"
            self.put(plog, f"[ERROR] {module}({pid},python3):{self.at(first + k, 'plog')} {text.format(p=pid)}")
        for k, text in enumerate(("Receive timeout, local rank[{r}]", "call trace: hcclRet -> 9", "errNo[0x0000000005000009] notify wait failed")):
            self.put(plog, f"[ERROR] HCCL({pid},python3):{self.at(first + 5 + k, 'plog')} [task_exception.cc:{12 + k}] [{pid}]{text.format(r=rank)}")
        self.put(console, "Traceback (most recent call last):")
        for k in range(5):
            self.put(console, f'  File "/opt/job/trainer.py", line {90 + k}, in step_{k}\n    loss = self.model_{k}(batch)')
        self.put(console, "RuntimeError: ACL stream synchronize failed, error code:507048")
        for line in self.fault.after if rank == 1 else ():
            self.put(console, line)
        self.put(console, f"[ERROR] {self.at(first + 9, 'plog')} (PID:{pid}, Device:{rank}, RankID:{rank}) ERR00100 PTA call acl api failed")
        self.put(console, f"ERROR {self.at(first + 12, 'console')} [launcher.py:31] worker {rank} exited with status 1, stopping the others")


def pair(number: int, folder: Path) -> tuple[Path, Path, Fault]:
    """A healthy run and a broken one of the same job, a day apart."""
    fault = FAULTS[number]
    good = Run(100 + number, datetime(2026, 3, 11, 9, 0, 0)).write(folder / "good")
    return good, Run(200 + number, datetime(2026, 3, 12, 14, 20, 0), fault).write(folder / "bad"), fault
