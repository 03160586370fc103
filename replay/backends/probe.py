"""What state PyTorch's support of NPUs is in: told apart without breaking the program that asks, since only a child ever imports torch_npu.

Run as a program (`python probe.py`) it prints one line of JSON. Needs no torch of its own, so that it runs in any Python."""

import importlib.metadata
import importlib.util
import json
import os
import re
import sys

os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")

ABSENT, NO_TORCH, NO_CANN, NO_DRIVER, NO_NNAL, BAD_MATCH, NO_DEVICE, OK = (
    "absent", "no-torch", "no-cann", "no-driver", "no-nnal", "bad-match", "no-device", "ok",
)  # fmt: skip
MISSING = re.compile(r"(lib\w+\.so(?:\.\d+)*): cannot open shared object file")


def state():
    """{"state": ..., "message": ..., versions}: one of the states above, and what to do about it."""
    found = {"state": ABSENT, "message": "torch_npu is not installed: `pip install torch-npu` of the same version as torch, on the NPU host"}
    for name in ("torch", "torch_npu", "triton_ascend"):
        try:
            found[name] = importlib.metadata.version(name.replace("_", "-"))
        except importlib.metadata.PackageNotFoundError:
            pass
    if importlib.util.find_spec("torch") is None:
        return {**found, "state": NO_TORCH, "message": "this Python has no torch"}
    if importlib.util.find_spec("torch_npu") is None:
        return found
    try:
        import torch
    except BaseException as error:
        return {**found, "state": NO_TORCH, "message": f"torch does not load: {_line(error)}"}
    try:
        import torch_npu
    except BaseException as error:
        return {**found, **told(_line(error), str(getattr(torch, "__version__", "?")), found.get("torch_npu", "?"))}
    try:
        count = int(torch_npu.npu.device_count()) if torch_npu.npu.is_available() else 0
    except BaseException as error:
        return {**found, "state": NO_DEVICE, "message": f"torch_npu finds no device: {_line(error)}"}
    if not count:
        return {
            **found,
            "state": NO_DEVICE,
            "message": "torch_npu and CANN load, but no NPU answers: see `npu-smi info` and ASCEND_RT_VISIBLE_DEVICES",
        }
    try:
        name = str(torch_npu.npu.get_device_name())
    except BaseException:
        name = "NPU"
    return {**found, "state": OK, "message": f"{count} x {name}", "count": count, "name": name}


def told(text, torch_version, npu_version):
    """State and message from what the import of torch_npu said."""
    missing = MISSING.search(text)
    library = missing.group(1) if missing else ""
    if library.startswith("libascend_hal"):
        return {"state": NO_DRIVER, "message": f"{library} is missing: CANN without a driver; mount /usr/local/Ascend/driver into the container"}
    if library.startswith("libatb"):
        return {"state": NO_NNAL, "message": f"{library} is missing: source /usr/local/Ascend/nnal/atb/set_env.sh"}
    if library:
        return {"state": NO_CANN, "message": f"{library} is missing: source /usr/local/Ascend/ascend-toolkit/set_env.sh"}
    if "undefined symbol" in text or "version" in text.lower() and "match" in text.lower():
        return {"state": BAD_MATCH, "message": f"torch_npu {npu_version} does not go with torch {torch_version} or this CANN: {text[:300]}"}
    if "ERR00007" in text or "Two accelerators" in text:
        return {"state": BAD_MATCH, "message": f"another accelerator is in use beside the NPU: {text[:300]}"}
    return {"state": BAD_MATCH, "message": f"torch_npu does not load: {text[:300]}"}


def _line(error):
    return " ".join(str(error).split())[:500] or type(error).__name__


if __name__ == "__main__":
    line = json.dumps(state())
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
    os._exit(0)  # a device library may hang in its own way out
