"""What to collect next, and how: the sources a bundle lacks, each with the exact command, most telling first."""

from __future__ import annotations

from collections.abc import Collection

from forensics.result import Note

_SOURCES: tuple[tuple[frozenset[str], str, str], ...] = (
    (
        frozenset({"plog"}),
        "No CANN application log (plog) is in the bundle. On each node, as the user of the job: tar czf plog.tar.gz ~/ascend/log"
        " (inside a container: /root/ascend/log; elsewhere if ASCEND_PROCESS_LOG_PATH is set)",
        "日志包中没有 CANN 应用日志（plog）。请在每个节点上以任务用户执行：tar czf plog.tar.gz ~/ascend/log"
        "（容器内为 /root/ascend/log；若设置了 ASCEND_PROCESS_LOG_PATH，则以该路径为准）",
    ),
    (
        frozenset({"console", "mindie", "cluster"}),
        "No console log of the job is in the bundle. Add the standard output and error of every rank or of the service.",
        "日志包中没有任务的控制台日志。请补充每个 rank 或服务进程的标准输出与标准错误。",
    ),
    (
        frozenset({"device-os", "firmware", "bbox", "device"}),
        "No device log is in the bundle. On each host, as root: msnpureport -f (the result lies in a folder named after the time)",
        "日志包中没有 Device 侧日志。请在每台主机上以 root 执行：msnpureport -f（结果位于以时间命名的目录）",
    ),
    (
        frozenset({"kernel"}),
        "No kernel log is in the bundle. On each host: dmesg -T > dmesg.txt; cp /var/log/messages* .",
        "日志包中没有内核日志。请在每台主机上执行：dmesg -T > dmesg.txt; cp /var/log/messages* .",
    ),
    (
        frozenset({"npu-smi"}),
        "No card state is in the bundle. On each host: npu-smi info > npu-smi.txt;"
        " for each card: npu-smi info -t health -i ID; npu-smi info -t ecc -i ID",
        "日志包中没有 NPU 状态。请在每台主机上执行：npu-smi info > npu-smi.txt；"
        "并对每张卡执行：npu-smi info -t health -i ID；npu-smi info -t ecc -i ID",
    ),
    (
        frozenset({"environment"}),
        "No versions and environment are in the bundle. In the environment of the job: pip list > pip.txt; env > env.txt;"
        " cat /usr/local/Ascend/ascend-toolkit/latest/*/ascend_toolkit_install.info /usr/local/Ascend/driver/version.info > versions.txt",
        "日志包中没有版本与环境信息。请在任务环境中执行：pip list > pip.txt; env > env.txt;"
        " cat /usr/local/Ascend/ascend-toolkit/latest/*/ascend_toolkit_install.info /usr/local/Ascend/driver/version.info > versions.txt",
    ),
)
_NETWORK = Note(
    "Several ranks wait for each other, but no state of the network ports is in the bundle. On each host, for each card:"
    " hccn_tool -i ID -link -g; hccn_tool -i ID -stat -g; hccn_tool -i ID -tls -g",
    "多个 rank 相互等待，但日志包中没有网口状态。请在每台主机上对每张卡执行："
    "hccn_tool -i ID -link -g; hccn_tool -i ID -stat -g; hccn_tool -i ID -tls -g",
)
_COLLECT = Note(
    "The simple way to all that is named below: on each node, as root: dsforensics collect -o logs.tar.gz --log CONSOLE.log (where it is not"
    " installed: dsforensics collect --emit-script > collect.py here, copy that file to the node, python3 collect.py -o logs.tar.gz)",
    "最简便的方式：在每个节点上以 root 执行 dsforensics collect -o logs.tar.gz --log CONSOLE.log，即可收集下列内容"
    "（未安装时：先在本机执行 dsforensics collect --emit-script > collect.py，拷贝到该节点后执行 python3 collect.py -o logs.tar.gz）",
)
"""Stands first: one command instead of many."""
LIMIT = 4


def collect_next(kinds: Collection[str], collective: bool) -> list[Note]:
    """The command that gathers all, then at most LIMIT sources that are missing, each with its own; nothing where none is missing.

    `kinds`: source kinds the bundle has; `collective`: whether a collective is involved."""
    present = set(kinds)
    missing = [Note(en, zh) for wanted, en, zh in _SOURCES if not wanted & present]
    if collective and "hccn-tool" not in present:
        missing.insert(0, _NETWORK)
    return [_COLLECT, *missing[:LIMIT]] if missing else []
