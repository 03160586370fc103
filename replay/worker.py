"""The worker: one kernel, one process. Run as a program by any Python that has torch; needs nothing else.

    python worker.py JOB     JOB: folder with job.json and inputs.safetensors; output-N.safetensors and result.json are written into it

torch_npu is loaded here and nowhere else. Whatever happens to this process, the program that started it goes on."""

import json
import os
import sys
import time

os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def main(folder):
    """Runs the job; the result says how it went. Exit status 0 wherever a result could be written."""
    started = time.monotonic()
    result = {"state": "error", "message": "", "runs": 0}
    try:
        with open(os.path.join(folder, "job.json"), encoding="utf-8") as stream:
            job = json.load(stream)
        _limit_memory(job)
        sys.path.insert(0, job["root"])
        import torch

        from replay import safe_file
        from replay.backends import call

        torch.manual_seed(0)
        if job.get("threads"):
            torch.set_num_threads(int(job["threads"]))
        inputs = safe_file.load(os.path.join(folder, "inputs.safetensors"))
        run = call.prepared(job, inputs)
        result["versions"] = call.versions(job)
        for number in range(job["runs"]):
            outputs = run()
            safe_file.save(outputs, os.path.join(folder, f"output-{number}.safetensors"))
            result["runs"] = number + 1
        result["state"] = "done"
    except BaseException as error:
        result["state"], result["message"] = _what(error), _message(error)
    result["seconds"] = round(time.monotonic() - started, 3)
    with open(os.path.join(folder, "result.part"), "w", encoding="utf-8") as stream:
        json.dump(result, stream)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(os.path.join(folder, "result.part"), os.path.join(folder, "result.json"))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # a device library may hang in its own way out


def _limit_memory(job):
    """So that the kernel of the system ends this process first, and nothing else, when memory runs out."""
    try:
        with open("/proc/self/oom_score_adj", "w") as stream:
            stream.write("1000")
    except OSError:
        pass
    if job.get("memory"):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (int(job["memory"]), int(job["memory"])))


def _what(error):
    """Kind of failure, from the type and the text of the error."""
    text = str(error)
    if isinstance(error, MemoryError) or "can't allocate memory" in text or "out of memory" in text.lower():
        return "memory"
    if type(error).__name__ == "Unavailable":
        return "unavailable"
    if any(code in text for code in ("507015", "507035", "507014", "507034", "507046", "507011", "507053", "507054", "507056", "507057")):
        return "device"
    if "CUDA error" in text:
        return "device"
    refused = ("161001", "161002", "561000", "561002", "561103", "setup failed", "ERR01001", "ERR01002", "ERR01003", "ERR01007")
    return "refused" if any(code in text for code in refused) else "error"


def _message(error):
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:2000] if text else type(error).__name__


if __name__ == "__main__":
    main(sys.argv[1])
