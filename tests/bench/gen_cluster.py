"""Writes the logs of one made-up incident of a training job on many nodes, the same for the same seed, one bundle for each node and one
with all: `python -m tests.bench.gen_cluster FOLDER [--nodes 16] [--mb 4] [--fault ecc|hang|killed] [--quiet] [--no-culprit-logs]`.

One rank fails, all others wait for it until HCCL_EXEC_TIMEOUT. Every node's clock is off by up to five minutes; some nodes' logs are
missing; containers print UTC, hosts local time. `answer.json` beside the bundles says where it began and how far each clock is off.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import random
import tarfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import msgspec

START = 1_767_225_600.0
"""2026-01-01 00:00:00 UTC."""
WIDTH = 8
"""Ranks of one node."""
FAILS_AT = 1500.0
"""Seconds after the start at which the rank fails."""
EXEC, CONNECT = 600, 120
ZONE = 8 * 3600


class Plan(msgspec.Struct):
    """What is made."""

    nodes: int = 16
    seed: int = 1
    megabytes: float = 4.0
    """Of each node, about."""
    fault: str = "ecc"
    quiet: bool = False
    """Without the heartbeats of HCCL, as where they are switched off or cannot get through."""
    missing: int = 3
    culprit_logs: bool = True
    attempts: int = 1
    """The last of them is the one that fails as above; those before were stopped by hand."""


class Answer(msgspec.Struct):
    """Where it began, and what was left out."""

    node: str
    server: str
    device: int
    rank: int
    pid: int
    slugs: list[str]
    """Of the root cause; where nobody logged it, also those of what the others felt."""
    skews: dict[str, float]
    missing: list[str]


class Cluster:
    """The nodes, their clocks and their processes."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.rng = random.Random(plan.seed)
        count = plan.nodes
        names = self.rng.sample(range(100, 999), count)
        self.hosts = [f"bms-{number}" for number in names]
        self.servers = [f"10.20.4.{20 + k}" for k in range(count)]
        self.skews = [self.rng.uniform(-300, 300) for _ in range(count)]
        self.culprit = self.rng.randrange(count * WIDTH)
        others = [k for k in range(count) if k != self.culprit // WIDTH]
        self.missing = set(self.rng.sample(others, min(plan.missing, len(others))))
        if not plan.culprit_logs:
            self.missing = {self.culprit // WIDTH, *sorted(self.missing)[1:]}
        self.pids = [[self.rng.randint(2000, 60000) for _ in range(count * WIDTH)] for _ in range(plan.attempts)]

    def answer(self) -> Answer:
        node = self.culprit // WIDTH
        slugs = {"ecc": ["ecc-hardware-fault"], "hang": ["hccl-peer-exit", "hccl-notify-wait-timeout"], "killed": ["host-oom"]}[self.plan.fault]
        skews = {host: round(skew, 3) for host, skew in zip(self.hosts, self.skews, strict=True)}
        missing = [self.hosts[k] for k in sorted(self.missing)]
        return Answer(self.hosts[node], self.servers[node], self.culprit % WIDTH, self.culprit, self.pids[-1][self.culprit], slugs, skews, missing)

    # ------------------------------------------------------------ stamps

    def plog(self, rank: int, at: float) -> str:
        at += START + self.skews[rank // WIDTH]
        return time.strftime("%Y-%m-%d-%H:%M:%S", time.gmtime(at)) + f".{int(at * 1e3) % 1000:03d}.{int(at * 1e6) % 1000:03d}"

    def named(self, rank: int, at: float) -> str:
        at += START + self.skews[rank // WIDTH]
        return time.strftime("%Y%m%d%H%M%S", time.gmtime(at)) + f"{int(at * 1e3) % 1000:03d}"

    def syslog(self, node: int, at: float) -> str:
        return time.strftime("%b %e %H:%M:%S", time.gmtime(START + at + self.skews[node] + ZONE))

    def identifier(self, root: int, at: float, number: int) -> str:
        node = root // WIDTH
        return f"{self.servers[node]}%eth0_{60000 + number}_0_{int((START + at + self.skews[node]) * 1e6)}"

    def ip(self, rank: int) -> str:
        return f"192.168.{rank // WIDTH + 1}.{rank % WIDTH + 10}"

    # ------------------------------------------------------------ one attempt of the job

    def groups(self, base: float, number: int) -> list[tuple[str, list[int], float]]:
        """(identifier, ranks, time at which it stands): the world, and what tensor and data parallelism want."""
        ranks = self.plan.nodes * WIDTH
        made = [(self.identifier(0, base + 5, number), list(range(ranks)), base + 9)]
        for node in range(self.plan.nodes):
            root = node * WIDTH
            made.append((self.identifier(root, base + 12, 10 + number), list(range(root, root + WIDTH)), base + 13))
        for column in range(WIDTH):
            made.append((self.identifier(column, base + 15 + column / 10, 20 + column + 10 * number), list(range(column, ranks, WIDTH)), base + 18))
        return made

    def attempt(self, number: int, base: float, fails: bool, fill: int) -> dict[int, dict[str, list[str]]]:
        """Node -> path -> lines. `fill`: ordinary lines of each process."""
        out: dict[int, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        groups = self.groups(base, number)
        end = base + (FAILS_AT if fails else 200.0)
        for rank in range(self.plan.nodes * WIDTH):
            if rank // WIDTH in self.missing:
                continue
            pid, stamp = self.pids[number][rank], self.named(rank, base)
            folder = "root/ascend/log"
            run, debug = f"{folder}/run/plog/plog-{pid}_{stamp}.log", f"{folder}/debug/plog/plog-{pid}_{stamp}.log"
            files = out[rank // WIDTH]
            files[run] += list(self._start(rank, pid, base, groups))
            files[run] += list(self._steps(rank, pid, base + 20, end, fill))
            if fails:
                self._fail(rank, pid, end, groups, files[run], files[debug])
        return out

    def _start(self, rank: int, pid: int, base: float, groups: list[tuple[str, list[int], float]]) -> Iterator[str]:
        def head(at: float, level: str = "INFO", where: str = "externalinput.cc:407") -> str:
            return f"[{level}] HCCL({pid},python3):{self.plog(rank, at)} [{where}] [{pid}]"

        late = self.rng.random()
        yield f"{head(base + 2 + late)}HCCL_CONNECT_TIMEOUT set by environment to [{CONNECT}]s"
        yield f"{head(base + 2 + late)}HCCL_EXEC_TIMEOUT set by environment to [{EXEC}]s"
        for group, members, at in groups:
            if rank not in members:
                continue
            own, server = members.index(rank), self.servers[rank // WIDTH]
            device = rank % WIDTH
            entry = at - 2 + self.rng.random() * 1.5
            yield (
                f"{head(entry, where='topoinfo_detect.cc:506')}[HCCL_TRACE][Flat]SetupAgent rankNum[{len(members)}], rank[{own}], rootInfo "
                f"identifier[{group}], server[{server}%eth0], serverPort[60000]deviceType[2], logicDevId[{device}], phydevId[{device}], "
                f"deviceIp[{self.ip(rank)}]"
            )
            yield (
                f"{head(at + self.rng.random() * 0.05, where='op_base.cc:481')}HcclCommInitRootInfo success,take time [{int(9e5)}]us, "
                f"rankNum[{len(members)}], rank[{own}], rootInfo identifier[{group}], server[{server}%eth0], logicDevId[{device}]"
            )

    def _steps(self, rank: int, pid: int, begin: float, end: float, count: int) -> Iterator[str]:
        for k in range(count):
            at = begin + (end - begin) * k / count
            yield (
                f"[INFO] RUNTIME({pid},python3):{self.plog(rank, at)} [stream.cc:{100 + k % 37}]{pid + 3} SynchronizeStream: "
                f"stream_id={k % 41}, task_id={k * 3 % 65536}, flip_num={k * 3 // 65536}, cost {1800 + k % 97} us, device_id={rank % WIDTH}."
            )

    def _fail(self, rank: int, pid: int, at: float, groups: list[tuple[str, list[int], float]], run: list[str], debug: list[str]) -> None:
        if rank == self.culprit:
            debug += list(self._own(rank, pid, at))
            return
        device, culprit = rank % WIDTH, self.culprit
        where = f"{self.servers[culprit // WIDTH]}/{culprit % WIDTH}"
        me, informer = f"{self.servers[rank // WIDTH]}/{device}", f"{self.servers[culprit // WIDTH]}/{(culprit + 1) % WIDTH}"

        def head(level: str, module: str, when: float, source: str) -> str:
            return f"[{level}] {module}({pid},python3):{self.plog(rank, when)} [{source}] [{pid}]"

        if not self.plan.quiet:
            run.append(
                f"{head('INFO', 'HCCL', at + 31 + self.rng.random() * 3, 'heartbeat.cc:951')}[TaskExecStage][HeartbeatAbnormal]local rank [{me}]: "
                f"crimer rank [{where}] status[LOST] by informer rank [{informer}]"
            )
        group, members, _ = groups[0]
        column = next(one for one in groups[1 + self.plan.nodes :] if rank in one[1])
        if culprit in column[1]:
            group, members, _ = column
        gave_up = at + EXEC + self.rng.random() * 6
        task = head("ERROR", "HCCL", gave_up, "task_exception_handler.cc:908") + "[TaskExecStage][Timeout][Host]"
        debug.append(
            f"{task}Task run failed, base information is streamID:[2], taskID[21], taskType[Notify Wait], tag[AllReduce_{group}], "
            "AlgType(level 0-1-2):[fullmesh-ring-NHR]."
        )
        debug.append(
            f"{task}Task run failed, groupRank information is group:[{group}], user define information[], rankSize[{len(members)}], "
            f"rankId[{members.index(rank)}]."
        )
        debug.append(
            f"{task}Task run failed, opData information is timeStamp:[{self.plog(rank, at)}], deviceId[{device}], index[2117], count[22348800], "
            "reduceType[sum], src[0x12c0c0013000], dst[0x12c0c0014000], dataType[float32]."
        )
        peer = members[(members.index(rank) + 1) % len(members)]
        debug.append(
            f"{task}Task run failed, para information is notify id:[0x0000000000000012], stage:[ffffffff], remote rank:[{members.index(peer)}]."
        )
        if not self.plan.quiet:
            arrived = time.strftime("%a %b %e %H:%M:%S %Y", time.gmtime(START + at + 31 + self.skews[rank // WIDTH]))
            debug.append(
                f"{head('ERROR', 'HCCL', gave_up, 'task_exception_handler.cc:610')}[TaskExecStage][HeartbeatAbnormal]Cluster Exception "
                f"Location[IP/ID]:[{where}], Arrival Time:[{arrived}], Discoverer:[{informer}], ExceptionType:[Heartbeat Lost Occurred], "
                "Possible Reason:1. Process has exited, 2. Network Disconnected"
            )
        debug.append(
            f"[ERROR] RUNTIME({pid},python3):{self.plog(rank, gave_up + 0.1)} [notify_task.cc:112]{pid} PrintErrorInfo:Notify wait timeout, "
            f"device_id={device}, stream_id=2, notify_id=18, timeout={EXEC}s, retCode=0x95."
        )

    def _own(self, rank: int, pid: int, at: float) -> Iterator[str]:
        """What the rank that fails logs itself: nothing where it hangs or is killed."""
        if self.plan.fault != "ecc":
            return
        device = rank % WIDTH
        head = f"[ERROR] RUNTIME({pid},python3):{self.plog(rank, at + 0.4)} [device_error_core_proc.cc:355]{pid + 9} "
        yield (
            f"{head}ProcessStarsCoreErrorInfo:The error from device(chipId:{device}, dieId:0), serial number is 1, there is an aicore error "
            "exception, core id is 11, error code = 0x800000, dump info: pc start: 0x1240c0041000, current: 0x1240c0041a68."
        )
        yield f"{head}Stream synchronize failed, stream_id=41, ErrCode=507015, desc=[aicore exception], InnerCode=0x7150031"

    def host(self, node: int, end: float) -> dict[str, list[str]]:
        """What the machine itself logs; the card's or the kernel's word on the fault among it."""
        host = self.hosts[node]
        lines = [
            f"{self.syslog(node, at)} {host} systemd[1]: Started Session {int(at) // 60 + 100} of user root." for at in range(0, int(end + EXEC), 60)
        ]
        if node == self.culprit // WIDTH:
            device, pid = self.culprit % WIDTH, self.pids[-1][self.culprit]
            if self.plan.fault == "ecc":
                lines.append(
                    f"{self.syslog(node, end)} {host} kernel: [90311.804417] [ascend] [ERROR] [dms_module] [dms_event_distribute_handle 219] "
                    f"<kworker/u384:3:71125:71125> Event report. (dev_id={device}; Event id=0x80e01801; severity=3; assertion=1)"
                )
            elif self.plan.fault == "killed":
                lines.append(
                    f"{self.syslog(node, end)} {host} kernel: [90311.804417] Out of memory: Killed process {pid} (python3) "
                    "total-vm:904857600kB, anon-rss:503316480kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:98304kB oom_score_adj:0"
                )
        out = {"var/log/messages": sorted(lines, key=lambda line: line[4:15])}
        out["env.txt"] = [f"HOSTNAME={host}", "ASCEND_HOME_PATH=/usr/local/Ascend/ascend-toolkit/latest", "torch_npu==2.7.1"]
        return out


def make(plan: Plan) -> tuple[dict[str, dict[str, bytes]], Answer]:
    """Host -> path -> bytes, of the nodes that are not missing, and the answer."""
    cluster = Cluster(plan)
    fill = max(4, int(plan.megabytes * 1e6 / WIDTH / 165))
    files: dict[int, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    base = 0.0
    for number in range(plan.attempts):
        last = number == plan.attempts - 1
        for node, paths in cluster.attempt(number, base, last, fill if last else 50).items():
            for path, lines in paths.items():
                files[node][path] += lines
        base += 0.0 if last else 1000.0
    for node in files:
        files[node].update(cluster.host(node, base + FAILS_AT))
    out = {
        cluster.hosts[node]: {path: ("\n".join(lines) + "\n").encode() for path, lines in sorted(paths.items()) if lines}
        for node, paths in sorted(files.items())
    }
    return out, cluster.answer()


def packed(files: dict[str, bytes]) -> bytes:
    """A tar.gz without times or owners."""
    raw = io.BytesIO()
    with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=1, mtime=0) as zipped, tarfile.open(fileobj=zipped, mode="w") as tar:
        for path, data in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return raw.getvalue()


def write(plan: Plan, folder: Path) -> tuple[list[Path], Path, Answer]:
    """(one bundle for each node, under names that say nothing of the node; one bundle of all; the answer)."""
    nodes, answer = make(plan)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, files in enumerate(nodes.values()):
        paths.append(folder / f"upload{number + 1:02d}.tar.gz")
        paths[-1].write_bytes(packed(files))
    whole = folder / "all.tar.gz"
    together = {f"{path.name[:8]}/{name}": data for path, files in zip(paths, nodes.values(), strict=True) for name, data in files.items()}
    whole.write_bytes(packed(together))
    folder.joinpath("answer.json").write_text(json.dumps(msgspec.to_builtins(answer), indent=1) + "\n")
    return paths, whole, answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nodes", type=int, default=16)
    parser.add_argument("--mb", type=float, default=4.0, help="MB of each node, unpacked")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fault", choices=("ecc", "hang", "killed"), default="ecc")
    parser.add_argument("--quiet", action="store_true", help="HCCL spreads no heartbeats")
    parser.add_argument("--missing", type=int, default=3)
    parser.add_argument("--attempts", type=int, default=1)
    parser.add_argument("--no-culprit-logs", action="store_true", help="the logs of the node where it began are among the missing")
    given = parser.parse_args()
    plan = Plan(given.nodes, given.seed, given.mb, given.fault, given.quiet, given.missing, not given.no_culprit_logs, given.attempts)
    paths, whole, answer = write(plan, given.folder)
    print(f"{len(paths)} bundles and {whole.name} in {given.folder}: {answer}")


if __name__ == "__main__":
    main()
