"""Replay: a suspected kernel is run again, or its captured output judged, to confirm or refute a diagnosis. Usable without a case.

Nothing here is imported by triage but `replay.result`, which needs msgspec only; torch is loaded when a kernel is really run.
"""

from __future__ import annotations

import os

# A stray torch_npu makes a plain `import torch` fail where CANN is not set up; it is only ever loaded in the worker.
os.environ.setdefault("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
# Threads that wait for each other by spinning starve on a busy machine; they are to sleep.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
