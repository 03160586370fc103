"""Makes samples/two-nodes.tar.gz: a small, invented incident of two nodes with four cards each. The same call makes the same bytes.

The story: a tensor-parallel service runs on both nodes. At 14:31:07 card 2 of node-b reports an uncorrectable memory error; the kernel that
reads the page fails; the seven other ranks wait for it in a collective until their time limit ends, and the service goes down.
Consoles print local time of +08:00, containers write plog in UTC, the kernel of node-b prints seconds since boot.
"""

from __future__ import annotations

import gzip
import io
import pathlib
import sys
import tarfile

HERE = pathlib.Path(__file__).parent
FAULT_RANK, FAULT_DEVICE = 6, 2


def plog(level: str, module: str, pid: int, clock: str, place: str, text: str) -> str:
    return f"[{level}] {module}({pid},VLLM::Worker_TP):2026-03-12-{clock} [{place}]{text}\n"


def rank_plog(rank: int) -> str:
    pid, device = 2100 + rank, rank % 4
    out = plog("EVENT", "TDT", pid, "06:20:03.118.402", "process_mode_manager.cpp:130", f"[OpenProcess][tid:{pid}] enter into open process deviceId[{device}] rankSize[0]")
    out += plog("INFO", "ASCENDCL", pid, "06:20:03.440.117", "acl.cpp:147", f"{pid} aclInit: start to execute aclInit")
    out += plog(
        "INFO", "HCCL", pid, f"06:20:19.0{rank}1.220", "topoinfo_exchange_agent.cc:92",
        f" [{pid}]SetupAgent rankNum[8], rank[{rank}], rootInfo identifier[10.10.0.11%eth0_60000_0_1773296419], server[10.10.0.{11 + rank // 4}], "
        f"logicDevId[{device}], phydevId[{device}], deviceIp[192.168.{100 + rank // 4}.{10 + device}]",
    )  # fmt: skip
    for step in range(40):
        out += plog("INFO", "GE", pid, f"06:{21 + step // 4:02d}:{step % 4 * 15:02d}.{(step * 37 + rank) % 1000:03d}.000", "model_manager.cc:402", f"{pid} ExecuteGraph: graph 3 finished, cost {1800 + step * 7 % 90} us.")
    if rank == FAULT_RANK:
        tid = pid + 55
        out += plog("ERROR", "RUNTIME", pid, "06:31:07.904.338", "device_error_core_proc.cc:355", f"{tid} ProcessStarsCoreErrorInfo:[INIT][DEFAULT]The error from device(chipId:{FAULT_DEVICE}, dieId:0), serial number is 1, there is an aivec error exception, core id is 11, error code = 0x800000, dump info: pc start: 0x1240c0041000, current: 0x1240c0041a68, vec error info: 0x1d000000b4, mte error info: 0x3000000f2, ifu error info: 0x2000000000000, ccu error info: 0x0, cube error info: 0, biu error info: 0, aic error mask: 0x6500020bd00028c, para base: 0x1241401fe000.")
        out += plog("ERROR", "RUNTIME", pid, "06:31:07.904.377", "device_error_core_proc.cc:372", f"{tid} ProcessStarsCoreErrorInfo:[INIT][DEFAULT]The extend info: errcode:(0x800000, 0, 0) errorStr: The DDR address of the MTE instruction is out of range. fixp_error0 info: 0x2, fixp_error1 info: 0x0, fsmId:1, tslot:2, thread:0, ctxid:0, blk:11, sublk:0, subErrType:4.")
        out += plog("ERROR", "RUNTIME", pid, "06:31:07.905.020", "davinci_kernel_task.cc:1268", f"{tid} PreCheckTaskErr:[INIT][DEFAULT]Kernel task happen error, retCode=0x31, [vector core exception].")
        out += plog("ERROR", "RUNTIME", pid, "06:31:07.905.151", "davinci_kernel_task.cc:1191", f"{tid} PrintErrorInfoForDavinciTask:[INIT][DEFAULT]Aicore kernel execute failed, device_id={FAULT_DEVICE}, stream_id=41, report_stream_id=41, task_id=28811, flip_num=6, fault kernel_name=RmsNorm_8e1f0c33_high_performance_7, fault kernel info ext=none, program id=112, hash=1167243817204.")
        out += plog("ERROR", "RUNTIME", pid, "06:31:07.906.402", "logger.cc:331", f"{tid} StreamSynchronize:[INIT][DEFAULT]Stream synchronize failed, stream_id=41, ErrCode=507035, desc=[vector core exception], InnerCode=0x7150031")
    else:
        clock = f"06:36:{9 + rank:02d}.21{rank}.034"
        out += plog("ERROR", "HCCL", pid, clock, "task_exception_handler.cc:802", f" [{pid + 60}][TaskExecStage][Timeout][Host]Task from HCCL run failed. base information is streamID:[23], taskID[{4100 + rank}], taskType[Notify Wait], tag[AllReduce_10.10.0.11%eth0_60000_0_1773296419], AlgType(level 0-1-2):[fullmesh-NHR-null].")
        out += plog("ERROR", "HCCL", pid, clock, "task_exception_handler.cc:815", f" [{pid + 60}][TaskExecStage][Timeout][Host]Task run failed, para information is notify id:[0x00000000000000{rank:02x}], stage:[ffffffff], remote rank:[{FAULT_RANK}].")
        out += plog("ERROR", "RUNTIME", pid, clock, "notify_task.cc:112", f"{pid + 60} PrintErrorInfo:[INIT][DEFAULT]Notify wait timeout, device_id={device}, stream_id=23, notify_id={rank}, timeout=300s, retCode=0x95.")
    return out


def console(node: str) -> str:
    ranks = range(4) if node == "node-a" else range(4, 8)
    out = "vllm serve /models/DeepSeek-V3-W8A8 --tensor-parallel-size 8 --block-size 128 --max-model-len 32768 --gpu-memory-utilization 0.9\n"
    out += "INFO 03-12 14:20:01 [__init__.py:207] Platform plugin ascend is activated\n"
    out += "(APIServer pid=1980) INFO 03-12 14:20:02 [api_server.py:1839] vLLM API server version 0.11.0\n"
    for minute in range(21, 31):
        out += f"(EngineCore_DP0 pid=2050) INFO 03-12 14:{minute}:10 [loggers.py:127] Engine 000: Avg prompt throughput: {1200 + minute * 13}.4 tokens/s, Avg generation throughput: {310 + minute}.2 tokens/s, Running: 12 reqs, Waiting: 0 reqs, GPU KV cache usage: 41.{minute}%\n"
    for rank in ranks:
        if rank == FAULT_RANK:
            head, clock, code = f"(Worker_TP{rank} pid={2100 + rank})", "14:31:07", 507035
            api = "ACL stream synchronize failed"
        else:
            head, clock, code = f"(Worker_TP{rank} pid={2100 + rank})", f"14:36:{9 + rank:02d}", 507048
            api = "ACL stream synchronize failed"
        out += f"{head} ERROR 03-12 {clock} [multiproc_executor.py:671] WorkerProc hit an exception.\n"
        out += f"{head} ERROR 03-12 {clock} [multiproc_executor.py:671] Traceback (most recent call last):\n"
        out += f'{head} ERROR 03-12 {clock} [multiproc_executor.py:671]   File "/vllm-workspace/vllm-ascend/vllm_ascend/worker/worker_v1.py", line 312, in execute_model\n'
        out += f"{head} ERROR 03-12 {clock} [multiproc_executor.py:671] RuntimeError: {api}, error code:{code}\n"
        if rank == FAULT_RANK:
            out += f"EZ9999[PID: {2100 + rank}] 2026-03-12-{clock}.904.338 (EZ9999):  The error from device(chipId:{FAULT_DEVICE}, dieId:0), serial number is 1, there is an aivec error exception, core id is 11, error code = 0x800000, dump info: pc start: 0x1240c0041000, current: 0x1240c0041a68, vec error info: 0x1d000000b4, mte error info: 0x3000000f2, ifu error info: 0x2000000000000, ccu error info: 0x0, cube error info: 0, biu error info: 0, aic error mask: 0x6500020bd00028c, para base: 0x1241401fe000.[FUNC:ProcessStarsCoreErrorInfo][FILE:device_error_core_proc.cc][LINE:355]\n"
        out += f"[ERROR] 2026-03-12-{clock} (PID:{2100 + rank}, Device:{rank % 4}, RankID:{rank}) ERR00100 PTA call acl api failed\n"
    out += "(EngineCore_DP0 pid=2050) ERROR 03-12 14:36:20 [core.py:710] EngineCore encountered a fatal error.\n"
    out += "(APIServer pid=1980) INFO 03-12 14:36:21 [launcher.py:99] Shutting down FastAPI HTTP server.\n"
    return out


def npu_smi(node: str) -> str:
    rule = "+---------------------------+---------------+----------------------------------------------------+\n"
    out = "+" + "-" * 96 + "+\n"
    out += "| npu-smi 25.2.0                   Version: 25.2.0                                               |\n" + rule
    out += "| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|\n"
    out += "| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |\n" + rule.replace("-", "=")
    for device in range(4):
        health = "Alarm" if node == "node-b" and device == FAULT_DEVICE else "OK"
        out += f"| {device}     910B3               | {health:<14}| {96.1 + device:<12}{44 + device:<18}0    / 0             |\n"
        out += f"| 0                         | 0000:{0xC1 + device:02X}:00.0  | 0           0    / 0          {58214 + device * 11:<6}/ 65536         |\n" + rule
    return out


def environment() -> str:
    return (
        "ASCEND_HOME_PATH=/usr/local/Ascend/ascend-toolkit/latest\nHCCL_EXEC_TIMEOUT=300\nHCCL_CONNECT_TIMEOUT=120\n"
        "ASCEND_RT_VISIBLE_DEVICES=0,1,2,3\nPYTORCH_NPU_ALLOC_CONF=expandable_segments:True\n"
        "torch==2.7.1\ntorch_npu==2.7.1\nvllm==0.11.0\nvllm_ascend==0.11.0rc1\n"
    )


def install_info() -> str:
    return "package_name=Ascend-cann-toolkit\nversion=8.3.RC1\ninnerversion=V100R001C23SPC001B235\ncompatible_version=[V100R001C15],[V100R001C23]\narch=aarch64\nos=linux\npath=/usr/local/Ascend/ascend-toolkit/8.3.RC1/aarch64-linux\n"


def dmesg(node: str) -> str:
    out = "[    0.000000] Linux version 5.10.0-216.0.0.115.oe2203sp4.aarch64 (builder@host) #1 SMP\n"
    out += "[   14.302118] [ascend] [drv_pcie] [INFO] [devdrv_init_dev_num 2248] <systemd-udevd:1853:1853> Findout device. (index=0; device=d802; dev_num=1)\n"
    out += "[ 8712.664190] perf: interrupt took too long (2521 > 2500), lowering kernel.perf_event_max_sample_rate to 79250\n"
    if node == "node-b":
        out += f"[90311.804417] [ascend] [ERROR] [dms_module] [dms_event_distribute_handle 219] <kworker/u384:3:71125:71125> Event report. (dev_id={FAULT_DEVICE}; Event id=0x80e01801; severity=3; assertion=1)\n"
        out += f"[90311.804460] [ascend] [ERROR] [devdrv] [dbl_ecc_notify 88] <kworker/u384:3:71125:71125> HBM multi bit ecc error detected. (dev_id={FAULT_DEVICE}; page_address=0x4c1f2000)\n"
    return out


def device_event() -> str:
    return (
        "[EVENT] KERNEL(1102,sklogd):2026-03-12-06:31:07.512.880 [klogd.c:253][90230.118220] [ascend] [INFO] [devmng] [hbm_monitor 77] hbm temperature 58\n"
        "[ERROR] SYSMONITOR(1180,fault_manager):2026-03-12-06:31:07.803.514 [fault_manager.c:418][Fault] event_id: [0x80E01801], Node Type=0x70; Node ID=0; Sensor Type=0xc0; event_state=1; assertion=1\n"
    )


def members() -> dict[str, str]:
    out: dict[str, str] = {}
    for node in ("node-a", "node-b"):
        first = 0 if node == "node-a" else 4
        for rank in range(first, first + 4):
            out[f"{node}/ascend/log/debug/plog/plog-{2100 + rank}_20260312062003118.log"] = rank_plog(rank)
        out[f"{node}/console.log"] = console(node)
        out[f"{node}/npu-smi-info.txt"] = npu_smi(node)
        out[f"{node}/env.txt"] = environment()
        out[f"{node}/ascend_toolkit_install.info"] = install_info()
        out[f"{node}/dmesg.txt"] = dmesg(node)
    out["node-b/slog/dev-os-2/run/event/event_20260312062001.log"] = device_event()
    return out


def main() -> None:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, text in members().items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(text.encode()), 1773297600
            archive.addfile(info, io.BytesIO(text.encode()))
    target = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "two-nodes.tar.gz"
    with open(target, "wb") as stream, gzip.GzipFile("", "wb", mtime=0, fileobj=stream) as packed:
        packed.write(raw.getvalue())


if __name__ == "__main__":
    main()
