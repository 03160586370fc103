"""What `collect` brings home from a server, real tools replaced by made ones: sound, failing and hanging."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest

from forensics import collect, pipeline
from forensics.options import Options
from tests.unit.shell import ROOT, environment

SCRIPT = ROOT / "forensics" / "collect.py"
TABLE = """\
+------------------------------------------------------------------------------------------------+
| npu-smi 25.2.0                   Version: 25.2.0                                               |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     910B3               | OK            | 93.4        36                0    / 0             |
| 0                         | 0000:C1:00.0  | 0           0    / 0          3414 / 65536         |
+===========================+===============+====================================================+
| 1     910B3               | Alarm         | 91.9        38                0    / 0             |
| 0                         | 0000:01:00.0  | 0           0    / 0          3395 / 65536         |
+===========================+===============+====================================================+
"""
NPU_SMI = f"""#!/bin/sh
case "$*" in
  "info") cat <<'X'
{TABLE}X
  ;;
  "info -l") printf '\\tTotal Count                    : 2\\n\\n\\tNPU ID : 0\\n\\tChip Count : 1\\n\\n\\tNPU ID : 1\\n\\tChip Count : 1\\n' ;;
  *health*"-i 1"*) printf '\\tHealth                         : Alarm\\n\\tError Code                     : 0x80E01801\\n' ;;
  *health*) printf '\\tHealth                         : OK\\n' ;;
  *) echo "This device does not support querying $4."; exit 1 ;;
esac
"""
PLOG = "[ERROR] RUNTIME(2106,python3):2026-03-12-14:31:07.803.514 [engine.cc:12]2106 Run:Task run failed, device_id=1, retCode=0x7bc83\n"


class Server:
    """A made server: its files below `root`, its tools in `tools`."""

    def __init__(self, folder: Path):
        self.folder, self.root, self.tools = folder, folder / "root", folder / "tools"
        self.tools.mkdir()
        self.put("usr/local/Ascend/driver/version.info", "Version=25.2.0\nascendhal_version=7.35.23\npackage_version=25.2.0\n")
        info = "package_name=Ascend-cann-toolkit\nversion=8.3.RC1\n"
        self.put("usr/local/Ascend/ascend-toolkit/latest/aarch64-linux/ascend_toolkit_install.info", info)
        self.put("home/alice/ascend/log/debug/plog/plog-2106_20260312143107803.log", PLOG * 3)
        self.put("var/log/messages", "Mar 12 14:31:07 atlas-k71 kernel: [90311.804417] hello\n")
        for name in ("dmesg", "journalctl", "ps", "lscpu", "date", "uname", "df", "free", "docker", "ss", "ip", "mount", "systemctl"):
            self.tool(name, "#!/bin/sh\necho made by " + name + "\n")
        self.tool("dmesg", "#!/bin/sh\necho '[90311.804417] [ascend] [ERROR] [devdrv] [f 88] <kworker/1:1> Event report. (dev_id=1; ret=-110)'\n")
        self.tool("npu-smi", NPU_SMI)
        self.tool("hccn_tool", "#!/bin/sh\necho 'link status: UP'\n")

    def put(self, path: str, text: str | bytes, age: float = 0) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode() if isinstance(text, str) else text)
        os.utime(target, (time.time() - age, time.time() - age))
        return target

    def tool(self, name: str, text: str) -> None:
        (self.tools / name).write_text(text)
        (self.tools / name).chmod(0o755)

    def process(self, pid: int, env: dict[str, str], command: list[str]) -> None:
        self.put(f"proc/{pid}/cmdline", "\0".join(command))
        self.put(f"proc/{pid}/environ", "\0".join(f"{name}={value}" for name, value in env.items()))
        self.put(f"proc/{pid}/status", "Name:\tpython3\nVmRSS:\t  1000 kB\n")
        fd = self.root / f"proc/{pid}/fd"
        fd.mkdir()
        (fd / "7").symlink_to("/dev/davinci1")

    def run(self, *words: str, out: str = "logs.tar.gz", status: int = 0) -> tuple[dict[str, bytes], dict[str, Any], str]:
        program = f"import sys; sys.path.insert(0, {str(SCRIPT.parent)!r}); import collect; collect.ROOT = {str(self.root)!r}\n"
        program += "sys.exit(collect.main())"
        target = self.folder / out
        done = subprocess.run(
            [sys.executable, "-c", program, "-o", str(target), "--name", "atlas-k71", *words],
            capture_output=True, text=True, timeout=120, check=False, cwd=self.folder,
            env={**environment(), "PATH": f"{self.tools}:/usr/bin:/bin", "HCCL_BUFFSIZE": "512", "MY_TOKEN": "geheim"},
        )  # fmt: skip
        assert done.returncode == status, done.stderr
        if not target.exists() or out.endswith(".zst"):
            return {}, {}, done.stderr
        with tarfile.open(target) as archive:
            files = {info.name: archive.extractfile(info).read() for info in archive}  # type: ignore[union-attr]
        return files, json.loads(files["node-atlas-k71/manifest.json"]), done.stderr


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return Server(tmp_path)


def items(manifest: dict[str, Any], status: str) -> list[str]:
    return [f"{item['what']}: {item['source']}" for item in manifest["items"] if item["status"] == status]


def test_the_bundle_triages_well(server: Server, tmp_path: Path) -> None:
    (tmp_path / "serve.log").write_text("vLLM API server version 0.11.0\nRuntimeError: ACL stream synchronize failed, error code:507035\n")
    files, manifest, _ = server.run("--log", str(tmp_path / "serve.log"))
    assert manifest["npu"] and manifest["schema"] == collect.SCHEMA
    assert files["node-atlas-k71/process_log/debug/plog/plog-2106_20260312143107803.log"] == (PLOG * 3).encode()
    work = pipeline.run([str(tmp_path / "logs.tar.gz")], Options(out=str(tmp_path / "x.case"), index=False), None)
    work.close()
    triage = work.triage
    kinds = {member.path.split("/", 1)[1]: member.kind for member in triage.coverage.members}
    assert triage.bundle.nodes == ["atlas-k71"] and triage.bundle.devices == 2
    assert kinds["npu-smi.txt"] == kinds["npu-smi-queries.txt"] == "npu-smi" and kinds["hccn_tool.txt"] == "hccn-tool"
    assert kinds["dmesg.txt"] == "kernel" and kinds["env.txt"] == kinds["versions.txt"] == "environment"
    facts = {(fact.name, fact.value) for fact in triage.facts}
    assert {("cann.version", "8.3.RC1"), ("driver.version", "25.2.0"), ("env.HCCL_BUFFSIZE", "512"), ("vllm.version", "0.11.0")} <= facts
    assert not any(member.status == "damaged" for member in triage.coverage.members)
    assert not any(line.file.endswith("manifest.json") for diagnosis in triage.diagnoses for line in diagnosis.evidence)


def test_queries_ask_each_card_and_stand_under_their_commands(server: Server) -> None:
    files, manifest, _ = server.run()
    text = files["node-atlas-k71/npu-smi-queries.txt"].decode()
    assert "====> npu-smi info -t health -i 1 -c 0\n\tHealth                         : Alarm" in text
    assert "card queries: npu-smi info -t board -i 0" in items(manifest, "failed")
    assert "does not support querying" in text


def test_what_other_tools_say_when_they_fail_is_no_evidence(server: Server, tmp_path: Path) -> None:
    complaint = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"
    server.tool("docker", f"#!/bin/sh\necho '{complaint}'; exit 1\n")
    (server.root / "home/alice/ascend/log/debug/plog/plog-2106_20260312143107803.log").unlink()
    files, manifest, _ = server.run()
    reasons = [item["reason"] for item in manifest["items"] if item["source"] == "docker ps -a --no-trunc"]
    assert reasons[0].startswith("exit status 1: Cannot connect to the Docker daemon")
    assert not any(b"Docker daemon" in data for name, data in files.items() if not name.endswith("manifest.json"))
    work = pipeline.run([str(tmp_path / "logs.tar.gz")], Options(out=str(tmp_path / "x.case"), index=False), None)
    work.close()
    assert not [d.finding.rule.id for d in work.triage.diagnoses if d.finding.rule.layer == "application"]
    assert next(m.kind for m in work.triage.coverage.members if m.path.endswith("manifest.json")) == "binary"


def test_a_tool_that_hangs_costs_its_time_limit_twice_and_is_named(server: Server) -> None:
    server.tool("npu-smi", "#!/bin/sh\ntrap '' TERM\nsleep 100 & wait; sleep 100\n")
    server.tool("dmesg", "#!/bin/sh\nyes line | head -c 60000000\n")
    begin = time.monotonic()
    _, manifest, _ = server.run("--timeout", "1s")
    assert time.monotonic() - begin < 30
    assert items(manifest, "timeout")[:2] == ["card state: npu-smi info", "card state: npu-smi info -l"]
    assert "card state: npu-smi info -m" in items(manifest, "skipped")
    assert "kernel log: dmesg" in items(manifest, "cut")
    assert subprocess.run(["pgrep", "-f", str(server.tools / "npu-smi")], capture_output=True, check=False).stdout == b""


def test_the_whole_is_bounded_in_time_and_says_what_was_left_out(server: Server) -> None:
    server.tool("hccn_tool", "#!/bin/sh\nsleep 0.4\n")
    _, manifest, error = server.run("--max-time", "2s", status=4)
    left = [item for item in manifest["items"] if item["status"] == "skipped" and "time for the whole" in item.get("reason", "")]
    assert {item["what"] for item in left} >= {"application logs", "device logs", "containers"}
    assert "left out" in error


def test_large_files_keep_both_ends_and_the_whole_its_limit(server: Server) -> None:
    lines = b"".join(b"[INFO] line %07d\n" % k for k in range(200_000))
    server.put("home/alice/ascend/log/debug/plog/plog-9_20260312143107803.log", lines)
    files, manifest, _ = server.run("--max-file", "1M")
    data = files["node-atlas-k71/process_log/debug/plog/plog-9_20260312143107803.log"]
    assert len(data) <= 1 << 20 and data.startswith(b"[INFO] line 0000000\n") and data.endswith(b"[INFO] line 0199999\n")
    assert b"bytes were left out here" in data and all(line.startswith((b"[INFO] line", b"...")) for line in data.splitlines())
    assert any("plog-9_" in source for source in items(manifest, "cut"))
    files, manifest, _ = server.run("--max-size", "1M", "--force", status=4)
    assert sum(map(len, files.values())) < 1.3 * (1 << 20)


def test_old_files_links_and_what_is_no_log_stay_behind(server: Server) -> None:
    server.put("home/alice/ascend/log/run/plog/plog-1_20250101000000000.log", PLOG, age=9 * 86400)
    server.put("home/alice/ascend/log/run/plog/kernel.o", b"\x7fELF")
    (server.root / "home/alice/ascend/log/run/plog/link.log").symlink_to("/etc/shadow")
    os.mkfifo(server.root / "home/alice/ascend/log/run/plog/fifo.log")
    files, _, _ = server.run()
    assert [name.rpartition("/")[2] for name in files if "process_log" in name] == ["plog-2106_20260312143107803.log"]


def test_the_jobs_environment_is_taken_and_secrets_are_not(server: Server) -> None:
    server.put("srv/log/debug/plog/plog-5_20260312143107803.log", PLOG)
    table = server.put("srv/hccl.json", '{"status": "completed"}')
    server.process(
        2106,
        {"ASCEND_PROCESS_LOG_PATH": str(server.root / "srv/log"), "RANK_TABLE_FILE": str(table),
        "HF_TOKEN": "hf_geheim", "VLLM_USE_V1": "1", "OTHER": "x"},
        ["vllm", "serve", "--api-key", "geheim2", "--max-num-batched-tokens", "4096", "--hf-token=geheim3"],
    )  # fmt: skip
    server.tool("ps", "#!/bin/sh\necho 'python x.py --password geheim4 --port 80'\n")
    inspected = json.dumps([{"Config": {"Env": ["ASCEND_VISIBLE_DEVICES=0", "DB_PASSWORD=geheim5"], "Cmd": ["run", "--token", "geheim6"]}}])
    listing = "ID\\n0123456789abcdef x\\n"
    server.tool("docker", f"#!/bin/sh\ncase $1 in ps) printf '{listing}';; inspect) cat <<'X'\n{inspected}\nX\n;; *) echo log line;; esac\n")
    files, _, _ = server.run()
    text = files["node-atlas-k71/env/env-2106.txt"].decode()
    assert "VLLM_USE_V1=1" in text and "HF_TOKEN=***" in text and "OTHER" not in text and "--max-num-batched-tokens 4096" in text
    assert any(name.endswith("process_log/debug/plog/plog-5_20260312143107803.log") for name in files)
    assert files["node-atlas-k71/env/hccl.json"] == b'{"status": "completed"}'
    assert files["node-atlas-k71/containers/container-0123456789ab.log"] == b"log line\n"
    everything = b"\n".join(data for name, data in files.items())
    assert b"geheim" not in everything and b"--port 80" in everything and b"ASCEND_VISIBLE_DEVICES=0" in everything


def test_what_msnpureport_exports_comes_along(server: Server) -> None:
    folder = "2026-03-12-14-40-00/slog/host"
    server.tool("msnpureport", f"#!/bin/sh\nmkdir -p {folder} && echo '[ascend] x' > {folder}/host_kernel.log\n")
    files, manifest, _ = server.run()
    if os.geteuid() == 0:
        assert files["node-atlas-k71/device_log/2026-03-12-14-40-00/slog/host/host_kernel.log"] == b"[ascend] x\n"
    else:
        assert "device logs: msnpureport -f" in items(manifest, "skipped")
    _, manifest, _ = server.run("--no-export", "--force")
    assert "device logs: msnpureport -f" in items(manifest, "skipped")


def test_a_machine_without_a_card_says_so_and_still_brings_what_it_has(server: Server) -> None:
    for name in ("npu-smi", "hccn_tool"):
        (server.tools / name).unlink()
    files, manifest, error = server.run()
    assert not manifest["npu"] and "no NPU answered" in error
    assert "card state: npu-smi info" in items(manifest, "missing") and "node-atlas-k71/dmesg.txt" in files
    assert [item["reason"] for item in manifest["items"] if item["what"] == "console logs"] == ["none was named with --log"]


@pytest.mark.parametrize("name", ["logs.tar", "logs.tar.zst", "logs.tgz"])
def test_the_archive_is_packed_as_its_name_says_and_stands_alone(server: Server, name: str) -> None:
    program = "#!" + sys.executable + "\nimport sys, zstandard\nzstandard.ZstdCompressor().copy_stream(sys.stdin.buffer, sys.stdout.buffer)\n"
    server.tool("zstd", program)
    if name.endswith("zst"):
        server.run(out="x.tar.zst")
        head = (server.folder / "x.tar.zst").read_bytes()[:4]
    else:
        server.run(out=name)
        head = (server.folder / name).read_bytes()[:4]
    assert {"logs.tar": b"node", "logs.tar.zst": b"\x28\xb5\x2f\xfd"}.get(name, b"\x1f\x8b\x08\x00") == head
    assert not list(server.folder.glob("*.part-*"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_leaves_nothing_behind(server: Server, number: signal.Signals) -> None:
    server.tool("npu-smi", "#!/bin/sh\necho x > started\nexec sleep 77\n")
    run = subprocess.Popen(
        [sys.executable, str(SCRIPT), "-o", "x.tar.gz"], cwd=server.folder, stderr=subprocess.PIPE, text=True,
        env={**environment(), "PATH": f"{server.tools}:/usr/bin:/bin"}, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    while not (server.folder / "started").exists():
        time.sleep(0.02)
    run.send_signal(number)
    _, error = run.communicate(timeout=20)
    assert run.returncode == 130 and "nothing is left behind" in error and "Traceback" not in error
    assert not list(server.folder.glob("x.tar.gz*"))


def test_an_archive_that_is_there_is_not_overwritten(server: Server) -> None:
    (server.folder / "logs.tar.gz").write_bytes(b"precious")
    program = [sys.executable, str(SCRIPT), "-o", str(server.folder / "logs.tar.gz")]
    done = subprocess.run(program, capture_output=True, text=True, check=False, env=environment())
    assert done.returncode == 2 and "--force" in done.stderr and (server.folder / "logs.tar.gz").read_bytes() == b"precious"
    done = subprocess.run([sys.executable, str(SCRIPT), "-o", "/nonexistent/x.tar"], capture_output=True, text=True, check=False, env=environment())
    assert done.returncode == 3 and "could not be written" in done.stderr


def test_the_script_is_one_file_of_standard_library_for_old_pythons(server: Server) -> None:
    source = SCRIPT.read_text()
    tree = ast.parse(source, feature_version=(3, 7))
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in modules} <= set(sys.stdlib_module_names)
    assert not any(isinstance(node, ast.NamedExpr) for node in ast.walk(tree))
    done = subprocess.run([sys.executable, "-m", "forensics", "collect", "--emit-script"], capture_output=True, check=True, env=environment())
    assert done.stdout.decode() == source
    done = subprocess.run([sys.executable, "-m", "forensics", "collect", "--help"], capture_output=True, check=True, env=environment())
    assert b"--max-time" in done.stdout


@pytest.mark.parametrize(
    ("listing", "table", "found"),
    [
        ("\tNPU ID : 0\n\tChip Count : 1\n\tNPU ID : 4\n", "", {0: [0], 4: [0]}),
        (
            "NPU ID  Chip ID  Chip Logic ID  Chip Phy-ID  Chip Name\n2   0   4   4   Ascend910\n2   1   5   5   Ascend910\n2   2   -   -   Mcu\n",
            "",
            {2: [0, 1]},
        ),
        ("NPU ID   Chip ID   Chip Logic ID   Chip Name\n0   0   0   910B3\n0   1   -   Mcu\n1   0   1   910B3\n", "", {0: [0], 1: [0]}),
        ("", TABLE, {0: [0], 1: [0]}),
        ("garbage", "more of it", {}),
    ],
)  # fmt: skip
def test_cards_are_found_in_every_listing(listing: str, table: str, found: dict[int, list[int]]) -> None:
    assert collect.cards(listing, table) == found


@pytest.mark.parametrize(
    ("name", "folder"),
    [("node3", "node3"), ("gpu-a17", "node-gpu-a17"), ("worker", "node-worker-0"), ("a b/../c", "node-a-b---c-0"), ("", "node-unknown-0")],
)
def test_the_top_folder_is_known_as_a_node(name: str, folder: str) -> None:
    from forensics.origin import of_path

    assert collect.top_folder(name) == folder and of_path(f"{folder}/dmesg.txt").node == folder
