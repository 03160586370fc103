"""Results come in order; a process that dies costs nothing but time, or is named."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from forensics.feed import Block, Task
from forensics.pool import Failed, Pool
from tests.unit.members import Texts

SIZE = 6 << 20


class Counting:
    def __init__(self, number: int):
        self.number, self.tasks = number, 0

    def work(self, task: Task, block: Block) -> tuple[int, int]:
        self.tasks += 1
        return task.number, sum(bytes(block[s.start : s.end]).count(b"\n") for s in task.segments)

    def finish(self) -> tuple[int, int]:
        return self.number, self.tasks


class Dying(Counting):
    """Dies on the third task: once, or each time."""

    def __init__(self, number: int, mark: Path, always: bool):
        super().__init__(number)
        self.mark, self.always = mark, always

    def work(self, task: Task, block: Block) -> tuple[int, int]:
        if task.number == 2 and (self.always or not self.mark.exists()):
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().work(task, block)


class Full(Counting):
    def work(self, task: Task, block: Block) -> tuple[int, int]:
        raise OSError(28, "No space left on device")


def texts(count: int) -> Texts:
    return Texts({f"{k}.txt": b"some line\n" * (SIZE // 10) for k in range(count)})


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_results_come_in_order(workers: int) -> None:
    pool = Pool(texts(7).members(), Counting, workers)
    seen = [result for _, result in pool.results()]
    assert seen == [(k, SIZE // 10) for k in range(7)]
    assert sum(left[1] for left in pool.finished if isinstance(left, tuple)) == 7
    assert pool.forked is False


def test_one_block_is_done_without_forking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("forked"))
    pool = Pool(Texts({"a.txt": b"x\n" * 1000}).members(), Counting, 4)
    assert [result for _, result in pool.results()] == [(0, 1000)]


def test_a_process_that_dies_is_replaced(tmp_path: Path) -> None:
    pool = Pool(texts(6).members(), lambda n: Dying(n, tmp_path / "mark", False), 2)
    assert [result for _, result in pool.results()] == [(k, SIZE // 10) for k in range(6)]


def test_a_task_that_kills_twice_is_given_up_by_name(tmp_path: Path) -> None:
    pool = Pool(texts(6).members(), lambda n: Dying(n, tmp_path / "mark", True), 2)
    results = [result for _, result in pool.results()]
    assert isinstance(results[2], Failed) and "signal 9" in results[2].reason and results[2].task.number == 2
    assert [result for k, result in enumerate(results) if k != 2] == [(k, SIZE // 10) for k in range(6) if k != 2]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_full_disk_is_told(workers: int) -> None:
    pool = Pool(texts(2).members(), Full, workers)
    results = [result for _, result in pool.results()]
    assert all(isinstance(result, Failed) and result.fatal and "space" in result.reason for result in results)


def test_leaving_early_leaves_no_processes() -> None:
    pool = Pool(texts(6).members(), Counting, 2)
    for _ in pool.results():
        break
    pool.close()
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
