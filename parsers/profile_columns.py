"""Columns of profiler CSV files, by what their headers mean: names differ between torch_npu, msprof, products and versions.

>>> found = match(["Step Id", "Name", "Type", "Accelerator Core", "Start Time(us)", "Duration(us)", "Block Num"])
>>> found.layout.name, [(column.name, column.header, column.factor) for column in found.columns if column.name in ("dur_ns", "block_num")]
('kernels', [('dur_ns', 'Duration(us)', 1000.0), ('block_num', 'Block Num', 1.0)])
>>> match(["Op Name", "OP Type", "Task Type", "Task Start Time(us)", "Task Duration(ms)", "Task Wait Time(us)"]).column("dur_ns").factor
1000000.0
>>> match(["time", "message"]) is None
True

A header is compared without case, blanks and punctuation, its unit apart. What a layout calls a column is the column of the case table.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

UNITS: dict[str, tuple[str, float]] = {
    "ns": ("time", 1.0), "us": ("time", 1e3), "μs": ("time", 1e3), "µs": ("time", 1e3), "ms": ("time", 1e6), "s": ("time", 1e9),
    "b": ("size", 1 / (1 << 20)), "byte": ("size", 1 / (1 << 20)), "bytes": ("size", 1 / (1 << 20)),
    "kb": ("size", 1 / 1024), "mb": ("size", 1.0), "gb": ("size", 1024.0),
    "%": ("share", 1.0), "mhz": ("rate", 1.0),
}  # fmt: skip
"""Unit of a header -> what it measures, and its factor to nanoseconds, or to MB."""
_HEADER = re.compile(r"(?P<base>.*?)\s*\((?P<unit>ns|us|[μµ]s|ms|s|bytes?|b|kb|mb|gb|%|mhz)\)\s*\Z", re.IGNORECASE)
_NO_LETTER = re.compile(r"[^a-z0-9]+")

NONE = frozenset({"", "n/a", "na", "nan", "null", "none", "-", "--"})
"""Cells that hold nothing."""


class Field(msgspec.Struct, frozen=True):
    """One column of a case table, and the headers it is printed under."""

    name: str
    kind: str
    """text; shape (quotes around it are taken off); int; float; ratio (0 to 1, printed as such or in percent); moment and span
    (nanoseconds); mb (MB of 1024 * 1024)."""
    headers: tuple[str, ...]
    unit: str = "us"
    """Of a moment, span or mb whose header names none."""
    digits: int | None = None
    """Decimals that the profiler prints, where it prints them always."""


class Layout(msgspec.Struct, frozen=True):
    """One kind of table: what it is known by, and its columns."""

    name: str
    """The case table its rows go to."""
    needs: tuple[tuple[str, ...], ...]
    """Of each group at least one field has to be there."""
    fields: tuple[Field, ...]
    multiline: bool = False
    """Whether cells hold line ends."""


class Column(msgspec.Struct, frozen=True):
    """A field as one file has it."""

    index: int
    """Place in the file, from 0."""
    header: str
    name: str
    kind: str
    factor: float
    """What the printed number is multiplied by."""
    digits: int | None


class Match(msgspec.Struct, frozen=True):
    layout: Layout
    columns: tuple[Column, ...]

    def column(self, name: str) -> Column:
        """KeyError where the file lacks it."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)


def normal(header: str) -> tuple[str, str]:
    """(name, unit) of a header: lower case, letters and digits only; the unit is empty where none is given."""
    header = header.strip().strip('"').strip()[:200]
    found = _HEADER.match(header)
    base, unit = (found["base"], found["unit"].lower()) if found else (header, "")
    return _NO_LETTER.sub("", base.lower()), unit


def match(headers: Sequence[str]) -> Match | None:
    """The layout these headers belong to; None where none fits."""
    names = [normal(header) for header in headers]
    for layout in LAYOUTS:
        columns = _columns(layout, headers, names)
        have = {column.name for column in columns}
        if all(have.intersection(group) for group in layout.needs):
            return Match(layout, columns)
    return None


def _columns(layout: Layout, headers: Sequence[str], names: Sequence[tuple[str, str]]) -> tuple[Column, ...]:
    out = []
    for field in layout.fields:
        at = next((n for wanted in field.headers for n, (name, _) in enumerate(names) if name == wanted), None)
        if at is None:
            continue
        unit = names[at][1] or (field.unit if field.kind in ("moment", "span", "mb") else "")
        factor = UNITS[unit][1] if unit in UNITS and field.kind in ("moment", "span", "mb") else 1.0
        if field.kind == "ratio" and unit == "%":
            factor = 0.01
        out.append(Column(at, headers[at].strip().strip('"').strip(), field.name, field.kind, factor, field.digits))
    return tuple(out)


def _f(name: str, kind: str, *headers: str, unit: str = "us", digits: int | None = None) -> Field:
    return Field(name, kind, headers, unit, digits)


_DEVICE = _f("device", "int", "deviceid", "device")
_TASK = (_f("stream_id", "int", "streamid", "stream"), _f("task_id", "int", "taskid"))

ALLOCATIONS = Layout(
    "allocations",
    (("alloc_ns",), ("size_mb",)),
    (
        _DEVICE, _f("name", "text", "name", "operator", "opname"), _f("size_mb", "mb", "size", unit="kb"),
        _f("alloc_ns", "moment", "allocationtime", "alloctime"), _f("release_ns", "moment", "releasetime", "freetime"),
        _f("dur_ns", "span", "duration"), _f("allocated_mb", "mb", "allocationtotalallocated", unit="mb"),
        _f("reserved_mb", "mb", "allocationtotalreserved", unit="mb"),
    ),
)  # fmt: skip
OPERATORS = Layout(
    "operators",
    (("name",), ("host_total_ns", "host_self_ns")),
    (
        _f("name", "text", "name", "operatorname"), _f("shapes", "shape", "inputshapes", "inputshape"), _f("stack", "text", "callstack"),
        _f("host_self_ns", "span", "hostselfduration", digits=3), _f("host_total_ns", "span", "hosttotalduration", digits=3),
        _f("device_self_ns", "span", "deviceselfduration", digits=3), _f("device_total_ns", "span", "devicetotalduration", digits=3),
    ),
    multiline=True,
)  # fmt: skip
L2 = Layout(
    "l2_cache",
    (("hit_rate",),),
    (
        _DEVICE, *_TASK, _f("hit_rate", "ratio", "hitrate", "l2hitrate", digits=6), _f("victim_rate", "ratio", "victimrate", digits=6),
        _f("name", "text", "opname", "name"),
    ),
)  # fmt: skip
AICPU = Layout(
    "aicpu",
    (("name",), ("compute_ns", "dispatch_ns")),
    (
        _DEVICE, _f("start_ns", "moment", "timestamp"), _f("name", "text", "node", "opname", "name"),
        _f("compute_ns", "span", "computetime", digits=3), _f("memcpy_ns", "span", "memcpytime", digits=3),
        _f("dispatch_ns", "span", "dispatchtime", digits=3), _f("total_ns", "span", "totaltime", "tasktime", digits=3), *_TASK,
    ),
)  # fmt: skip
MEMORY = Layout(
    "memory",
    (("component",), ("t_ns",), ("reserved_mb", "allocated_mb")),
    (
        _DEVICE, _f("component", "text", "component", "event"), _f("t_ns", "moment", "timestamp", "time"),
        _f("allocated_mb", "mb", "totalallocated", unit="mb"), _f("reserved_mb", "mb", "totalreserved", "memory", "hbm", unit="mb"),
        _f("active_mb", "mb", "totalactive", unit="mb"),
    ),
)  # fmt: skip
STEPS = Layout(
    "steps",
    (("computing_ns",), ("free_ns", "exposed_ns")),
    (
        _DEVICE, _f("step", "text", "step", "stepid"), _f("kind", "text", "type"), _f("index", "int", "index"),
        _f("computing_ns", "span", "computing", "computingtime"),
        _f("exposed_ns", "span", "communicationnotoverlapped", "communicationnotoverlappedtime", "notoverlappedcommunication"),
        _f("overlapped_ns", "span", "overlapped", "overlappedcommunication", "overlappedtime"),
        _f("communication_ns", "span", "communication", "communicationtime"), _f("free_ns", "span", "free", "freetime"),
        _f("stage_ns", "span", "stage", "stagetime"), _f("bubble_ns", "span", "bubble", "bubbletime"),
        _f("exposed_no_receive_ns", "span", "communicationnotoverlappedandexcludereceive"),
        _f("preparing_ns", "span", "preparing", "preparingtime"),
    ),
)  # fmt: skip
API = Layout(
    "api",
    (("name",), ("total_ns",), ("count",)),
    (
        _f("level", "text", "level"), _f("name", "text", "apiname", "api"), _f("total_ns", "span", "time", "totaltime"),
        _f("count", "int", "count"), _f("avg_ns", "span", "avg", "avgtime"), _f("min_ns", "span", "min", "mintime"),
        _f("max_ns", "span", "max", "maxtime"),
    ),
)  # fmt: skip
OP_STATS = Layout(
    "op_stats",
    (("op_type",), ("total_ns",), ("count",)),
    (
        _DEVICE, _f("op_type", "text", "optype", "type"), _f("core", "text", "coretype", "acceleratorcore", "tasktype"),
        _f("count", "int", "count"), _f("total_ns", "span", "totaltime", "time"), _f("min_ns", "span", "mintime", "min"),
        _f("avg_ns", "span", "avgtime", "avg"), _f("max_ns", "span", "maxtime", "max"), _f("percent", "float", "ratio"),
    ),
)  # fmt: skip
KERNELS = Layout(
    "kernels",
    (("name", "op_type"), ("dur_ns",), ("start_ns", "core", "task_id")),
    (
        _f("step", "text", "stepid", "step", "iterationid"), _DEVICE, _f("model_id", "int", "modelid"), *_TASK,
        _f("name", "text", "name", "opname", "kernelname"), _f("op_type", "text", "type", "optype"), _f("op_state", "text", "opstate"),
        _f("core", "text", "acceleratorcore", "tasktype", "coretype"),
        _f("start_ns", "moment", "starttime", "taskstarttime", "start", "starttimestamp", digits=3),
        _f("dur_ns", "span", "duration", "taskduration", "kernelduration", digits=3),
        _f("wait_ns", "span", "waittime", "taskwaittime", digits=3),
        _f("block_num", "int", "blockdim", "blocknum", "numblocks"), _f("mix_block_num", "int", "mixblockdim", "mixblocknum"),
        _f("hf32", "text", "hf32eligible"), _f("in_shapes", "shape", "inputshapes"), _f("in_dtypes", "text", "inputdatatypes"),
        _f("in_formats", "text", "inputformats"), _f("out_shapes", "shape", "outputshapes"), _f("out_dtypes", "text", "outputdatatypes"),
        _f("out_formats", "text", "outputformats"),
        _f("aic_ns", "span", "aicoretime", "aictime", "aictotaltime"), _f("aiv_ns", "span", "aivtime", "aivtotaltime"),
        _f("mac_ratio", "ratio", "aicmacratio", "macratio", "aiccuberatio", "cuberatio"), _f("mac_ns", "span", "aicmactime", "mactime"),
        _f("aic_scalar_ratio", "ratio", "aicscalarratio", "scalarratio"), _f("aic_mte1_ratio", "ratio", "aicmte1ratio", "mte1ratio"),
        _f("aic_mte2_ratio", "ratio", "aicmte2ratio", "mte2ratio"), _f("aic_mte2_ns", "span", "aicmte2time", "mte2time"),
        _f("aic_mte3_ratio", "ratio", "aicmte3ratio", "mte3ratio"), _f("aic_fixpipe_ratio", "ratio", "aicfixpiperatio", "fixpiperatio"),
        _f("vec_ratio", "ratio", "aivvecratio", "vecratio", "aicvecratio"), _f("vec_ns", "span", "aivvectime", "vectime", "aicvectime"),
        _f("aiv_scalar_ratio", "ratio", "aivscalarratio"), _f("aiv_mte2_ratio", "ratio", "aivmte2ratio"),
        _f("aiv_mte2_ns", "span", "aivmte2time"), _f("aiv_mte3_ratio", "ratio", "aivmte3ratio"),
        _f("cube_percent", "float", "cubeutilization"),
    ),
)  # fmt: skip
LAYOUTS: tuple[Layout, ...] = (ALLOCATIONS, OPERATORS, L2, AICPU, STEPS, MEMORY, API, OP_STATS, KERNELS)
"""In the order they are tried: what is told apart by fewer words stands later."""
