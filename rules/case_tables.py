"""The case tables that profiles fill: their columns, in one place. Part of the public interface (README).

Every row says where it was read: file_id, row_no (data row of a CSV, row of a database table, number of an event; from 1, events from 0)
and line_no. Times and spans are nanoseconds, moments since 1970 (UTC); sizes are MB of 1024 * 1024; ratios lie between 0 and 1. `rank` is that of
the profile, `step` null where the capture had no steps.
"""

from __future__ import annotations

Columns = tuple[tuple[str, str], ...]

_AT: Columns = (
    ("file_id", "INTEGER"), ("row_no", "BIGINT"), ("line_no", "BIGINT"), ("profile_id", "INTEGER"), ("rank", "INTEGER"), ("device", "INTEGER"),
)  # fmt: skip


def _columns(text: str) -> Columns:
    """`name:kind` pairs; kinds: i INTEGER, b BIGINT, d DOUBLE, t VARCHAR."""
    kinds = {"i": "INTEGER", "b": "BIGINT", "d": "DOUBLE", "t": "VARCHAR"}
    return tuple((name, kinds[kind]) for name, _, kind in (word.partition(":") for word in text.split()))


TABLES: dict[str, Columns] = {
    "profiles": _columns(
        "profile_id:i path:t node:t rank:i device:i tool:t level:t aic_metrics:t cann:t torch_npu:t peers:t aic_num:i aiv_num:i rated_mhz:d "
        "has_steps:i analysed:i"
    ),
    "profile_files": _columns("file_id:i profile_id:i path:t layout:t rows:b bad_rows:b state:t"),
    "profile_headers": _columns("file_id:i table_name:t column_name:t header:t factor:d digits:i"),
    "profile_notes": _columns("file_id:i profile_id:i kind:t note:t note_zh:t"),
    "kernels": _AT + _columns(
        "step:b model_id:b task_id:b stream_id:b name:t op_type:t op_state:t core:t start_ns:b dur_ns:b wait_ns:b block_num:i mix_block_num:i "
        "hf32:t in_shapes:t in_dtypes:t in_formats:t out_shapes:t out_dtypes:t out_formats:t mac_ratio:d aic_scalar_ratio:d aic_mte1_ratio:d "
        "aic_mte2_ratio:d aic_mte3_ratio:d aic_fixpipe_ratio:d vec_ratio:d aiv_scalar_ratio:d aiv_mte2_ratio:d aiv_mte3_ratio:d cube_percent:d"
    ),
    "steps": _AT + _columns(
        "step:b computing_ns:b exposed_ns:b overlapped_ns:b communication_ns:b free_ns:b stage_ns:b bubble_ns:b exposed_no_receive_ns:b "
        "preparing_ns:b source:t"
    ),
    "op_stats": _AT + _columns("op_type:t core:t count:b total_ns:b min_ns:b avg_ns:b max_ns:b percent:d"),
    "api": _AT + _columns("level:t name:t total_ns:b count:b avg_ns:b min_ns:b max_ns:b"),
    "operators": _AT + _columns("name:t shapes:t stack:t host_self_ns:b host_total_ns:b device_self_ns:b device_total_ns:b"),
    "memory": _AT + _columns("component:t t_ns:b allocated_mb:d reserved_mb:d active_mb:d"),
    "allocations": _AT + _columns("name:t size_mb:d alloc_ns:b release_ns:b dur_ns:b allocated_mb:d reserved_mb:d"),
    "l2_cache": _AT + _columns("stream_id:b task_id:b hit_rate:d victim_rate:d name:t"),
    "aicpu": _AT + _columns("name:t start_ns:b compute_ns:b memcpy_ns:b dispatch_ns:b total_ns:b stream_id:b task_id:b"),
    "comms": _AT + _columns(
        "step:b kind:t op:t grp:t start_ns:b elapse_ns:b transit_ns:b wait_ns:b sync_ns:b idle_ns:b wait_ratio:d sync_ratio:d"
    ),
    "comm_links": _AT + _columns("step:b kind:t op:t grp:t link:t size_mb:d transit_ns:b bandwidth_gbs:d large_ratio:d"),
    "comm_packets": _AT + _columns("step:b kind:t op:t grp:t link:t packet_mb:d count:d total_ns:d"),
    "links": _AT + _columns("step:b kind:t op:t grp:t src_rank:i dst_rank:i transport:t size_mb:d transit_ns:b bandwidth_gbs:d"),
    "trace": _AT + _columns(
        "lane:t thread:t name:t category:t start_ns:b dur_ns:b size_bytes:b transport:t link:t src_rank:i dst_rank:i"
    ),
    "clocks": _AT + _columns("t_ns:b mhz:d"),
}  # fmt: skip

COMMUNICATION = ("COMMUNICATION", "HCCL", "HCCS", "CCU")
"""What stands as the core of a row that is communication. Text exports have such rows among the kernels, databases do not."""

VIEWS = {
    "compute": "SELECT * FROM kernels WHERE (core IS NULL OR core NOT IN ("
    + ", ".join(f"'{core}'" for core in COMMUNICATION)
    + ")) AND (name IS NULL OR NOT starts_with(name, 'hcom_'))",
}
"""`compute`: kernels without communication, as every share of device time is taken over them."""

RANKED = tuple(name for name in TABLES if not name.startswith("profile"))
"""Tables whose rows belong to a rank."""

EXTRA: dict[str, Columns] = {
    "metrics": (("ts", "TIMESTAMP"), *_columns("node:t device:i name:t value:d unit:t label:t file_id:i line_no:b")),
    "facts": _columns("node:t device:i name:t value:t file_id:i line_no:b"),
}
"""Tables of every case that queries may read as well."""
