"""How a job was started: environment variables and arguments, as scripts, commands, containers, pods and servers print them.

>>> gather = Gather()
>>> read('''export ASCEND_RT_VISIBLE_DEVICES=0,1
... HCCL_BUFFSIZE=512 vllm serve /models/q --block-size 16 --enforce-eager
... docker run -e HCCL_CONNECT_TIMEOUT=1800 quay.io/ascend/vllm-ascend:v0.9.1
... INFO 09-01 10:00:00 [utils.py:326] non-default args: {'max_model_len': 131072, 'quantization': None}
... # export ASCEND_LAUNCH_BLOCKING=1''', gather)
>>> [(f.name, f.value, f.line_no) for f in gather.document.facts]
[('env.ASCEND_RT_VISIBLE_DEVICES', '0,1', 1), ('env.HCCL_BUFFSIZE', '512', 2), ('arg.block_size', '16', 2), ('arg.enforce_eager', 'True', 2), \
('env.HCCL_CONNECT_TIMEOUT', '1800', 3), ('arg.max_model_len', '131072', 4)]

Comments and advice ("please set X=1") are no settings, and what looks like a secret is never kept.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice

from parsers.gather import Gather

_SECRET = re.compile(r"TOKEN|SECRET|PASSW|API_?KEY|ACCESS_?KEY|CREDENTIAL|PRIVATE|_AK$|_SK$", re.IGNORECASE)
_NOT_SECRET = frozenset({"TOKENIZERS_PARALLELISM"})
_SHORT = frozenset({"PATH", "TZ", "LANG", "HOME", "HOSTNAME", "RANK", "SHELL", "USER", "PYTHONPATH", "NNODES", "LANGUAGE"})
"""Variables without an underscore that count in a bare `NAME=value` line."""
_OURS = (
    "ASCEND_", "HCCL_", "HCCP_", "ACL_", "ACLNN_", "TASK_QUEUE", "NPU_", "PYTORCH_", "TORCH_", "VLLM_", "ATB_", "LCCL_", "LCAL_", "MINDIE_", "MIES_",
    "MS_", "GLOG_", "GE_", "TE_", "OMP_", "RANK_", "RAY_", "INF_NAN_", "COMBINED_", "CPU_AFFINITY", "LD_", "PYTHON", "SGLANG_", "TRANSFORMERS_",
    "HF_", "MASTER_", "WORLD_SIZE", "LOCAL_", "GLOO_", "TP_SOCKET", "NCCL_", "MALLOC_", "DISABLE_", "MOONCAKE_", "DEEPEP_",
    "STREAMS_", "TTP_", "TRITON_", "CLOSE_MATMUL", "BIND_CPU", "OPP_", "TOOLCHAIN_", "PROFILING_", "DUMP_", "MOE_", "ENABLE_", "TOKENIZERS_",
    "P2P_", "HCOMM_", "ASDOPS_", "INDUCTOR_", "TORCHINDUCTOR", "OOM_", "MAX_", "TUNE_", "CUDA_", "MINDX_", "MINDIO_", "ELASTIC_", "SOC_",
    "GGML_", "MULTI_STREAM", "LLAMA_",
)  # fmt: skip
_ERROR = ("ACL_ERROR", "HCCL_E_", "GE_ERR")

_VALUE = r"(\"[^\"\n]{0,2000}\"|'[^'\n]{0,2000}'|[^\s\"'`]{0,2000})"
_LEAD = re.compile(
    r"\s{0,24}(?:(?:\d{1,5}\s{1,4})?(export|declare -x|typeset -x|ENV|env|setenv|\$ ?export|sudo|nohup|\$|>|\+|time|exec|&&)[ \t]{1,8}|-\s{1,3}\"?)?"
    r"(?=[A-Z][A-Z0-9_]{1,63}=)", re.ASCII
)  # fmt: skip
_ASSIGN = re.compile(r"([A-Z][A-Z0-9_]{1,63})=" + _VALUE + r"(?:[\s;]{1,8}(?:export[ \t]{1,4})?|\\?\s{0,4}$|$)", re.ASCII)
_DOCKER = re.compile(r"\s(?:-e|--env)[ =]{1,4}[\"']?([A-Z][A-Z0-9_]{1,63})=" + _VALUE, re.ASCII)
_QUOTED = re.compile(r"\"([A-Z][A-Z0-9_]{1,63})=([^\"\n]{0,2000})\"", re.ASCII)
_ITEM = re.compile(r"[\"']([A-Z][A-Z0-9_]{1,63})[\"']\]?\s?[:=]\s?(?:[\"']([^\"'\n]{0,400})[\"']|(-?\d[\w.]{0,20}))", re.ASCII)
_MAPPED = re.compile(r"\s{0,40}([A-Z][A-Z0-9]{1,20}_[A-Z0-9_]{1,60}):\s{1,8}[\"']?([^\"'#\n]{1,400}?)[\"']?\s{0,8}$", re.ASCII)
_POD_NAME = re.compile(r"\s{0,60}-?\s{0,4}name:\s{0,8}[\"']?([A-Z][A-Z0-9_]{1,63})[\"']?\s{0,8}$", re.ASCII)
_POD_VALUE = re.compile(r"\s{0,60}value:\s{0,8}[\"']?([^\"'\n]{0,400}?)[\"']?\s{0,8}$", re.ASCII)
_SET_TO = re.compile(r"\b([A-Z][A-Z0-9]{1,20}_[A-Z0-9_]{1,60}) (?:is )?set by environment(?: variable)? to \[([^\]\n]{0,200})\]", re.ASCII)

_COMMAND = re.compile(
    r"\s{0,24}(?:(?:[$#>+] ?|[\w@.-]{1,80}:[^#$\n]{0,120}[#$] |\[[^\]\n]{1,120}\][#$] |CMD |RUN |command: ?|cmd: ?|exec |nohup |sudo |time "
    r"|numactl (?:-\S{1,60} ){0,6}"
    r"|taskset (?:-\S{1,8} )?\S{1,40} |[A-Z][A-Z0-9_]{1,63}=\S{0,400} {1,4}){0,12})[\"']?(?:[\w./-]{0,200}/)?"
    r"(vllm|python[\d.]{0,6}|torchrun|msrun|deepspeed|accelerate|sglang|atc|mpirun|llama-\w{1,20}|llama_\w{1,20}|lmdeploy|swift|llamafactory-cli|bash|sh|"
    r"docker|nerdctl|ascend-docker|main|benchmark|msprof)(?=[\s\"'])", re.ASCII
)  # fmt: skip
_FLAG = re.compile(
    r"(?:^|(?<=\s)|(?<=[\"']))--([A-Za-z][\w-]{1,60})"
    r"(?:(?:=|[ \t]{1,8})(\"[^\"\n]{0,400}\"|'[^'\n]{0,400}'|[^\s\\\"'-][^\s\\\"']{0,400}|-\d[\w.]{0,20}))?", re.ASCII
)  # fmt: skip
_SHORT_FLAGS = re.compile(r"\s-(tp|pp|dp)[ =](\d{1,5})(?=\s|$)", re.ASCII)
_SHORT_NAMES = {"tp": "tensor_parallel_size", "pp": "pipeline_parallel_size", "dp": "data_parallel_size"}
_JSON_FLAG = re.compile(r"\s{0,40}-?\s{0,4}[\"']?--([A-Za-z][\w-]{1,60})(?:=([^\"',\n]{0,400}))?[\"']?,?\s{0,8}$", re.ASCII)
_JSON_VALUE = re.compile(r"\s{0,40}-?\s{0,4}[\"']?([^\"'\s,-][^\"',\n]{0,400})[\"']?,?\s{0,8}$", re.ASCII)
DUMPS = ("non-default args", "Namespace(", "ServerArgs(", "server_args=", "with config:", "with config (", "EngineArgs(", "engine_args")
"""Words behind which a server prints all its arguments on one line."""
_PAIR = re.compile(r"(?<![\w.])[\"']?([A-Za-z_]\w{1,60})[\"']?\s?[=:]\s?('[^'\n]{0,400}'|\"[^\"\n]{0,400}\"|[\w.+/-]{1,200})", re.ASCII)
KNOWN = (
    "block_size", "max_model_len", "max_num_seqs", "max_num_batched_tokens", "max_seq_len", "gpu_memory_utilization", "tensor_parallel_size",
    "pipeline_parallel_size", "data_parallel_size", "kv_cache_dtype", "enforce_eager", "num_gpu_blocks", "mem_fraction_static", "tp_size", "dp_size",
    "ep_size", "hidden_size", "num_attention_heads", "num_key_value_heads", "num_hidden_layers", "intermediate_size", "max_position_embeddings",
    "head_dim", "num_experts", "n_routed_experts", "rms_norm_eps", "layernorm_epsilon", "use_cache", "soc_version", "opset_version", "opset",
    "precision_mode", "torch_dtype", "dtype", "compile_mode", "global_batch_size", "micro_batch_size", "tensor_model_parallel_size",
    "pipeline_model_parallel_size", "expert_parallel_size", "num_speculative_tokens", "quantization", "max_new_tokens", "page_size",
)  # fmt: skip
"""Arguments that count wherever they are given as name=value or "name": value."""
_GIVEN = re.compile(
    r"[\"']?\s?[=:]\s?(\"[\w./+-]{1,120}\"|'[\w./+-]{1,120}'|-?\d[\w.]{0,24}(?:(?<=[eE])-\d{1,3})?|[Tt]rue|[Ff]alse|(?:torch\.)?b?float\d{1,2}|fp16|bf16|int8|auto|"
    r"Ascend\w{1,20})(?![\w.(])",
    re.ASCII,
)
_EACH = 300
"""Places of one known argument that are looked at in one text."""


def read(text: str, gather: Gather) -> None:
    """Facts env.* and arg.* of a text."""
    lines = text.split("\n")
    reader = _Settings(gather)
    for at, line in enumerate(lines, 1):
        if line and len(line) <= 65_536:
            reader.line(line, at)
    _known(text, gather)


class _Settings:
    def __init__(self, gather: Gather) -> None:
        self.gather = gather
        self.pod = ""
        self.flag = ""
        self.continued = False

    def line(self, line: str, at: int) -> None:
        comment = line.lstrip()[:1] == "#"
        if "=" in line:
            if not comment:
                self._assignments(line, at)
            if "set by environment" in line:
                for name, value in _SET_TO.findall(line[:4000]):
                    self.env(name, value, at)
        elif "set by environment" in line:
            for name, value in _SET_TO.findall(line[:4000]):
                self.env(name, value, at)
        if ":" in line and not comment:
            self._mapping(line, at)
        if not comment or line[:2] in ("# ", "#!"):
            self._command(line, at)

    def env(self, name: str, value: str, at: int) -> None:
        if (_SECRET.search(name) and name not in _NOT_SECRET) or name.startswith(_ERROR):
            return
        self.gather.fact(f"env.{name}", value.strip().rstrip(";").strip("\"'"), at)

    def arg(self, name: str, value: str, at: int) -> None:
        name = name.replace("-", "_").lower()
        if _SECRET.search(name) and "max" not in name and "num" not in name:
            return
        value = value.strip("\"'").removeprefix("torch.")
        if value and value != "None":
            self.gather.fact(f"arg.{name}", value, at)

    # ------------------------------------------------------------ environment variables

    def _assignments(self, line: str, at: int) -> None:
        lead = _LEAD.match(line)
        if lead is not None:
            exported = lead[1] is not None
            place, count = lead.end(), 0
            while count < 64 and (seen := _ASSIGN.match(line, place)) is not None:
                name, value = seen[1], seen[2]
                if exported or count or "_" in name or name in _SHORT:
                    self.env(name, value, at)
                place, count = seen.end(), count + 1
        if " -e" in line or "--env" in line:
            for name, value in _DOCKER.findall(line[:16_000]):
                self.env(name, value, at)
        if '="' not in line[:40] and '"' in line and line.lstrip()[:1] in '"{[':
            for name, value in _QUOTED.findall(line[:32_000]):
                self.env(name, value, at)
        elif "environ" in line:
            for name, quoted, bare in _ITEM.findall(line[:4000]):
                self.env(name, quoted or bare, at)

    def _mapping(self, line: str, at: int) -> None:
        if "name:" in line and (seen := _POD_NAME.match(line)):
            self.pod = seen[1]
            return
        if self.pod:
            if value := _POD_VALUE.match(line):
                self.env(self.pod, value[1], at)
            self.pod = ""
        if mapped := _MAPPED.match(line):
            if mapped[1].startswith(_OURS):
                self.env(mapped[1], mapped[2], at)
        elif ("'" in line or '"' in line) and len(line) < 16_000 and "_" in line:
            for name, quoted, bare in _ITEM.findall(line):
                if name.startswith(_OURS):
                    self.env(name, quoted or bare, at)

    # ------------------------------------------------------------ arguments

    def _command(self, line: str, at: int) -> None:
        dumped = next((word for word in DUMPS if word in line), "") if "=" in line or ":" in line else ""
        if dumped:
            for pair in islice(_PAIR.finditer(line, line.find(dumped) + len(dumped)), 600):
                self.arg(pair[1], pair[2], at)
            return
        if "--" not in line and not self.flag:
            self.continued = self.continued and line.rstrip().endswith("\\")
            return
        text = line.lstrip()
        if self.flag:
            flag, self.flag = self.flag, ""
            value = _JSON_VALUE.match(line)
            if value is not None and not text.startswith(("--", '"--', "- --", '- "--', "]")):
                self.arg(flag, value[1], at)
                return
            self.arg(flag, "True", at)
        if text.startswith(('"--', "- --", '- "--', "'--", "- '--")) and (item := _JSON_FLAG.match(line)):
            if item[2]:
                self.arg(item[1], item[2], at)
            else:
                self.flag = item[1]
            return
        if not (self.continued or text.startswith("--") or _COMMAND.match(line[:4000])):
            return
        self.continued = line.rstrip().endswith("\\")
        for seen in islice(_FLAG.finditer(line[:16_000]), 300):
            if seen[1] not in ("env", "device", "volume", "name", "mount"):
                self.arg(seen[1], seen[2] or "True", at)
        for short, number in _SHORT_FLAGS.findall(line[:16_000]):
            self.arg(_SHORT_NAMES[short], number, at)


def _known(text: str, gather: Gather) -> None:
    starts: list[int] | None = None
    reader = _Settings(gather)
    for name in KNOWN:
        for place in _places(text, name):
            seen = _GIVEN.match(text, place + len(name))
            if seen is None:
                continue
            if starts is None:
                starts = [0, *(found.end() for found in re.finditer("\n", text))]
            reader.arg(name, seen[1], bisect_right(starts, place))


def _places(text: str, name: str) -> Iterator[int]:
    """Where a name stands as a whole word, the first `_EACH` times."""
    place = -1
    for _ in range(_EACH):
        place = text.find(name, place + 1)
        if place < 0:
            return
        before = text[place - 1] if place else " "
        if not (before.isalnum() or before in "_.-"):
            yield place
