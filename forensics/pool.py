"""Work on blocks, spread over forked processes: results come back in the order of the blocks, whatever finishes first.

Nothing is forked before a second block is full, so a small bundle pays nothing. A process that dies is replaced and its blocks are
done again; where that fails too they are given up by name, and the run goes on.
"""

from __future__ import annotations

import gc
import os
import pickle
import selectors
import signal
import socket
import struct
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Generic, NoReturn, Protocol, TypeVar

import msgspec

from forensics.feed import BLOCK, Block, Divert, Feed, Known, Source, Task, new_block

Result = TypeVar("Result", covariant=True)
_LENGTH = struct.Struct("<Q")
_TASK = struct.Struct("<II")


class Work(Protocol[Result]):
    """What is done with a block. In a forked process `work` runs on every task given to it, then `finish` once."""

    def work(self, task: Task, block: Block) -> Result: ...

    def finish(self) -> object:
        """What the process still holds; pickled."""


class Failed:
    """Stands for the result of a task that could not be done; `fatal`: nor could any other (the disk is full)."""

    def __init__(self, task: Task, reason: str, fatal: bool = False):
        self.task, self.reason, self.fatal = task, reason, fatal


def cores() -> int:
    """Processors this process may run on, at most 8."""
    try:
        usable = len(os.sched_getaffinity(0))
    except AttributeError:  # pragma: no cover - not on Linux
        usable = os.cpu_count() or 1
    return max(1, min(usable, 8))


class Pool(Generic[Result]):
    """Runs one kind of work over all members; `results` yields in order, then `finished` holds what each process left."""

    def __init__(
        self,
        members: Iterator[Source],
        make: Callable[[int], Work[Result]],
        workers: int | None = None,
        prepare: Callable[[], object] | None = None,
        count: Callable[[memoryview], int] | None = None,
        known: Known | None = None,
        divert: Divert | None = None,
    ):
        """`make(n)` builds the work of process n, in that process; 0 is this process itself. `prepare` runs once before any other
        process is made: what it imports is shared by all. `count`, `known`, `divert`: see `Feed`."""
        self.count = cores() if workers is None else max(1, workers)
        self.make, self.prepare = make, prepare
        self.blocks: list[Block] = [new_block()]
        self.free = deque([0])
        self.feed = Feed(members, self.blocks, self._acquire, count, known, divert)
        self.finished: list[object] = []
        self._workers: list[_Worker] = []
        self._selector: selectors.DefaultSelector | None = None
        self._done: dict[int, Result | Failed] = {}
        self._inline: Work[Result] | None = None
        self._deaths: dict[int, int] = {}
        self._made = 0

    @property
    def forked(self) -> bool:
        return bool(self._workers)

    def results(self) -> Iterator[tuple[Task, Result | Failed]]:
        """(task, result) in the order of the tasks. A result may be used until the next is asked for."""
        tasks = self.feed.tasks()
        order: deque[Task] = deque()
        waiting: Task | None = None  # the first block, kept until it is known that there is a second
        try:
            for task in tasks:
                order.append(task)
                if self.count == 1:
                    self._here(task)
                elif waiting is None and not self._workers:
                    waiting = task
                    self._grow(2)
                else:
                    if waiting is not None:
                        self._grow(self.count + 2)
                        if self.prepare is not None:
                            self.prepare()
                        gc.collect()
                        gc.freeze()  # what exists now stays shared: no collection writes to it
                        self._workers = [self._fork() for _ in range(self.count)]
                        self._send(waiting)
                        waiting = None
                    self._send(task)
                    self._receive(0.0)
                while order and order[0].number in self._done:
                    yield order[0], self._done.pop(order.popleft().number)
            if waiting is not None:
                self._here(waiting)
            while order:
                while order[0].number not in self._done:
                    self._receive(None)
                yield order[0], self._done.pop(order.popleft().number)
            self._finish()
        finally:
            self.close()

    def close(self) -> None:
        """End all processes; safe to call twice."""
        for worker in self._workers:
            worker.end(kill=True)
        self._workers = []

    # ------------------------------------------------------------ blocks and processes

    def _grow(self, total: int) -> None:
        while len(self.blocks) < total:
            self.free.append(len(self.blocks))
            self.blocks.append(new_block())

    def _acquire(self) -> int:
        while not self.free:
            self._receive(None)
        return self.free.popleft()

    def _here(self, task: Task) -> None:
        if self._inline is None:
            self._inline = self.make(0)
        self._done[task.number] = _attempt(self._inline, task, self.blocks[task.block])
        self.free.append(task.block)

    def _fork(self) -> _Worker:
        ours, theirs = socket.socketpair()
        self._made += 1
        others = [worker.channel for worker in self._workers] + [ours]
        pid = os.fork()
        if not pid:
            _serve(theirs, others, self.make, self._made, self.blocks)
        theirs.close()
        worker = _Worker(pid, ours)
        if self._selector is None:
            self._selector = selectors.DefaultSelector()
        self._selector.register(ours, selectors.EVENT_READ, worker)
        return worker

    def _send(self, task: Task) -> None:
        worker = min(self._workers, key=lambda one: len(one.tasks))
        worker.tasks.append(task)
        try:
            # through the block's own room: a full channel in both directions would block both ends
            described = msgspec.msgpack.encode(task)
            self.blocks[task.block][BLOCK : BLOCK + len(described)] = described
            _write(worker.channel, _TASK.pack(task.block, len(described)))
        except OSError:
            pass  # it died: `_receive` will see the end of its channel

    def _receive(self, timeout: float | None) -> None:
        """Take in what has come back, waiting for at least one result unless `timeout` is 0."""
        assert self._selector is not None
        for key, _ in self._selector.select(timeout):
            worker: _Worker = key.data
            data = _read(worker.channel)
            if data is None:
                self._buried(worker)
                continue
            number, result = pickle.loads(data)  # noqa: S301  (written by our own process)
            task = next(one for one in worker.tasks if one.number == number)
            worker.tasks.remove(task)
            worker.done += 1
            self._done[number] = result
            self.free.append(task.block)

    def _buried(self, worker: _Worker) -> None:
        """Replace a dead process and hand its tasks on; a task that saw two processes die is given up."""
        assert self._selector is not None
        self._selector.unregister(worker.channel)
        status = worker.end(kill=True)
        self._workers.remove(worker)
        if worker.done:  # what it held of those is gone with it
            self.finished.append(Failed(Task(-1, -1, []), f"a worker process died ({_cause(status)})", True))
        self._workers.append(self._fork())
        for position, task in enumerate(worker.tasks):
            deaths = self._deaths[task.number] = self._deaths.get(task.number, 0) + (position == 0)
            if deaths < 2:
                self._send(task)
            else:
                self._done[task.number] = Failed(task, f"a worker process died on it twice ({_cause(status)})")
                self.free.append(task.block)

    def _finish(self) -> None:
        if self._inline is not None:
            self.finished.append(_finished(self._inline))
        for worker in self._workers:
            try:
                _write(worker.channel, b"")
                data = _read(worker.channel)
            except OSError:
                data = None
            left = pickle.loads(data) if data else None  # noqa: S301
            if data is None:
                left = Failed(Task(-1, -1, []), f"a worker process died ({_cause(worker.end(kill=True))})", True)
            self.finished.append(left)
            worker.end(kill=False)
        self._workers = []


class _Worker:
    def __init__(self, pid: int, channel: socket.socket):
        self.pid, self.channel = pid, channel
        self.tasks: list[Task] = []
        self.done = 0
        self._status: int | None = None

    def end(self, kill: bool) -> int:
        if self._status is None:
            self.channel.close()
            if kill:
                try:
                    os.kill(self.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            try:
                self._status = os.waitpid(self.pid, 0)[1]
            except ChildProcessError:
                self._status = 0
        return self._status


def _cause(status: int) -> str:
    return f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"status {os.WEXITSTATUS(status)}"


def _attempt(work: Work[Result], task: Task, block: Block) -> Result | Failed:
    try:
        return work.work(task, block)
    except OSError as error:
        return Failed(task, os.strerror(error.errno) if error.errno else str(error), True)
    except MemoryError:
        return Failed(task, "out of memory")


def _finished(work: Work[Any]) -> object:
    try:
        return work.finish()
    except OSError as error:
        return Failed(Task(-1, -1, []), os.strerror(error.errno) if error.errno else str(error), True)


def _serve(channel: socket.socket, others: list[socket.socket], make: Callable[[int], Work[Any]], number: int, blocks: list[Block]) -> NoReturn:
    """Life of a forked process: tasks in, results out, until an empty message or the end of the channel."""
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        gc.disable()  # nothing that circles is made here, and looking for it is dear
        for other in others:
            other.close()  # or the parent's end of a dead neighbour's channel would stay open here
        work = make(number)
        while (data := _read(channel)) is not None:
            if not data:
                _write(channel, pickle.dumps(_finished(work), 5))
                break
            block, size = _TASK.unpack(data)
            task = msgspec.msgpack.decode(blocks[block][BLOCK : BLOCK + size], type=Task)
            _write(channel, pickle.dumps((task.number, _attempt(work, task, blocks[block])), 5))
        status = 0
    except (BrokenPipeError, ConnectionResetError):
        status = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(status)


def _write(channel: socket.socket, data: bytes) -> None:
    channel.sendall(_LENGTH.pack(len(data)) + data)


def _read(channel: socket.socket) -> bytes | None:
    head = _exactly(channel, _LENGTH.size)
    return None if head is None else _exactly(channel, _LENGTH.unpack(head)[0])


def _exactly(channel: socket.socket, size: int) -> bytes | None:
    parts, missing = [], size
    while missing:
        try:
            part = channel.recv(min(missing, 1 << 20))
        except ConnectionResetError:
            return None
        if not part:
            return None
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)
