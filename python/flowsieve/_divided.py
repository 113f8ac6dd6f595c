"""A count, a ranking, a list of flows or an export in pieces, without an engine: what the workers of a cluster do, as functions of plain data.

    divide -> pieces -> read (map) -> parts by slice and shard (shuffle) -> tallies (reduce) -> report

Every step gives the same bytes when it is run again, so an engine may repeat it.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from . import _commands, _native
from ._errors import Error, UsageError
from ._results import Counts
from ._run import Command, Report, command_line, named_paths, paths

#: Bytes of elements that a piece keeps before it hands them on.
BUDGET = 16 << 20
#: Bytes of a range of a large plain pcap file, and of the small files that are read by one task.
TASK_BYTES = 256 << 20
#: Bytes that are asked of a remote file at a time.
REQUEST_BYTES = 16 << 20


def is_remote(path: str) -> bool:
    """Whether this names something in a file system that is not the operating system's."""
    return "://" in path


class RemoteFile:
    """A file of fsspec: opened at an offset, and read ahead."""

    def __init__(self, path: str, storage_options: dict[str, Any] | None = None) -> None:
        self.path = path
        self.storage_options = storage_options or {}

    def _file_system(self) -> tuple[Any, str]:
        import fsspec

        system, path = fsspec.core.url_to_fs(self.path, **self.storage_options)
        return system, path

    def size(self) -> int | None:
        """Bytes of the file; None if the file system does not say."""
        with self._named():
            system, path = self._file_system()
            size: int | None = system.info(path).get("size")
            return size

    def __call__(self, offset: int) -> ReadAhead:
        """The file from this offset on."""
        with self._named():
            system, path = self._file_system()
            return ReadAhead(system, path, offset)

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Gives what the file system raises the name of the file."""
        try:
            yield
        except FileNotFoundError as error:
            raise Error(f"{self.path}: no such file; check the address", self.path) from error
        except OSError as error:
            raise Error(f"{self.path}: {error}", self.path) from error


class SkippedFile:
    """A remote file that may be unreadable: the driver looks at it as at an empty one, and a worker says why."""

    def __init__(self, file: RemoteFile) -> None:
        self._file = file

    def size(self) -> int | None:
        """Bytes of the file; None if they are not known."""
        try:
            return self._file.size()
        except Error:
            return None

    def __call__(self, offset: int) -> ReadAhead | io.BytesIO:
        """The file from this offset on."""
        try:
            return self._file(offset)
        except Error:
            return io.BytesIO()


class ReadAhead:
    """Reads a file in large requests, the next one while the last is used."""

    def __init__(self, system: Any, path: str, offset: int) -> None:
        self._system, self._path = system, path
        self._threads: ThreadPoolExecutor | None = None
        self._next: Future[bytes] | None = None
        self._piece, self._at = b"", 0
        self._offset = offset
        self._size: int = system.info(path)["size"]

    def _request(self, offset: int) -> bytes:
        end = min(offset + REQUEST_BYTES, self._size)
        if offset >= end:
            return b""
        piece: bytes = self._system.cat_file(self._path, start=offset, end=end)
        if len(piece) != end - offset:
            raise OSError(f"{self._path}: {len(piece)} of {end - offset} bytes came")
        return piece

    def read(self, length: int) -> bytes:
        """At most so many bytes; none at the end."""
        if self._at == len(self._piece):
            self._piece, self._at = self._take(), 0
        piece = self._piece[self._at : self._at + length]
        self._at += len(piece)
        return piece

    def _take(self) -> bytes:
        piece = self._next.result() if self._next else self._request(self._offset)
        self._offset += len(piece)
        # Few read behind the head of a file only to look at it, so the second request is not made ahead.
        self._next = None
        if piece and self._offset < self._size:
            self._threads = self._threads or ThreadPoolExecutor(1)
            self._next = self._threads.submit(self._request, self._offset)
        return piece

    def __del__(self) -> None:
        if self._threads:
            self._threads.shutdown(wait=False, cancel_futures=True)


def found(
    captures: Any, storage_options: dict[str, Any] | None = None, skip_unreadable: bool = False
) -> tuple[list[str], list[str]]:
    """The files that are named: absolute paths, and addresses of file systems. Patterns and directories are expanded.
    With them what is wrong with directories.

    Raises:
        Error: a file is missing and may not be, or nothing is there.
    """
    files: list[str] = []
    problems: list[str] = []
    for path in named_paths(captures, "captures"):
        if not is_remote(path):
            # Workers may have other working directories.
            named = [os.path.abspath(one) for one in paths(path)]
            missing = [one for one in named if not os.path.exists(one)]
            if missing and not skip_unreadable:
                raise Error(f"{missing[0]}: no such file; check the path", missing[0])
            inside, wrong = _native.captures(named)
            files += [str(os.fspath(one)) for one in inside]
            problems += wrong
            continue
        import fsspec

        system, inner = fsspec.core.url_to_fs(path, **(storage_options or {}))
        scheme = path.split("://")[0]
        if any(mark in inner for mark in "*?["):
            matches = sorted(system.glob(inner))
        elif system.isdir(inner):
            matches = sorted(system.find(inner))
        else:
            files.append(path)
            continue
        if not matches:
            raise Error(f"{path}: no file matches this pattern", path)
        files += [f"{scheme}://{match}" for match in matches]
    if not files:
        raise Error(problems[0]) if problems else UsageError("captures: name at least one capture")
    return files, problems


class Divided:
    """A run in pieces, as the driver sees it."""

    def __init__(
        self,
        words: list[str],
        captures: Any,
        task_bytes: int = TASK_BYTES,
        storage_options: dict[str, Any] | None = None,
        skip_unreadable: bool = False,
    ) -> None:
        self.storage_options = storage_options
        self.skip_unreadable = skip_unreadable
        self.files, self._problems = found(captures, storage_options, skip_unreadable)
        self.remotes: dict[int, RemoteFile | SkippedFile] = {
            number: SkippedFile(file) if skip_unreadable else file
            for number, path in enumerate(self.files)
            if is_remote(path)
            for file in [RemoteFile(path, storage_options)]
        }
        self.job = _native.DividedJob(words, self.files, self.remotes)
        self._task_bytes = task_bytes
        self._sizes = [self._size(number) for number in range(len(self.files))]
        lengths: dict[int, tuple[int | None, Any]] = {
            number: (self._sizes[number], remote) for number, remote in self.remotes.items()
        }
        self.pieces = self.job.pieces(task_bytes, lengths)
        # In each round every file with ranges gets on by one at least.
        self._rounds = len(self.pieces) + 1

    def _size(self, number: int) -> int:
        remote = self.remotes.get(number)
        if remote is not None:
            return remote.size() or 0
        # What cannot be looked at has a worker to say why.
        with contextlib.suppress(OSError):
            return os.path.getsize(self.files[number])
        return 0

    def tasks(self, pieces: list[str] | None = None) -> list[list[str]]:
        """The pieces, small ones together, so that a task has enough to do."""
        tasks: list[list[str]] = []
        room = 0
        for piece in self.pieces if pieces is None else pieces:
            parsed = json.loads(piece)
            length = self._sizes[parsed["input"]]
            span = parsed["bytes"] or {"start": 0, "end": length}
            size = min(span["end"], length) - span["start"]
            if not tasks or size > room:
                tasks.append([])
                room = self._task_bytes
            tasks[-1].append(piece)
            room -= size
        return tasks

    def share(self) -> Share:
        """What the workers need to know."""
        return Share(self.job.text(), self.files, self.storage_options, self.skip_unreadable)

    def join(self, inputs: Iterable[bytes]) -> list[str]:
        """Joins what became of all pieces; those that have to be read again.

        Raises:
            Error: no input could be opened, or a file changed meanwhile.
        """
        self._rounds -= 1
        again = self.job.join(self.pieces, list(inputs), self._problems)
        if again and self._rounds <= 0:
            path = self.files[json.loads(again[0])["input"]]
            raise Error(f"{path}: a range of this file was asked for again and again, and never came", path)
        return again

    def report(self, tallies: Iterable[bytes]) -> Report:
        """The result in the format that the words ask for, once all shards were reduced; of flows and exports without its rows.
        With it what one process says of the inputs, and whether it read all of them to their end."""
        return self.job.report(list(tallies))


class Share:
    """What a worker knows of a run. It can be pickled."""

    def __init__(
        self, text: str, files: list[str], storage_options: dict[str, Any] | None, skip_unreadable: bool = False
    ) -> None:
        self.text = text
        self.files = files
        self.storage_options = storage_options
        self.skip_unreadable = skip_unreadable

    def read(self, piece: str, budget: int = BUDGET) -> Iterator[tuple[int, int, bytes]]:
        """Slice, shard and bytes of each part of a piece; and at the end, with shard -1, what became of the piece.

        Raises:
            Error: the bytes could not be read. Reading the piece again may help.
        """
        path = self.files[json.loads(piece)["input"]]
        remote = RemoteFile(path, self.storage_options) if is_remote(path) else None
        job = _job(self.text)
        if not self.skip_unreadable:
            parts = job.read(piece, budget, remote)
            yield from parts
            yield 0, -1, parts.finish()
            return
        # All or nothing: what was handed on of a piece that could not be read to its end would count.
        try:
            parts = job.read(piece, budget, remote)
            rows = list(parts)
            rows.append((0, -1, parts.finish()))
        except (Error, OSError) as error:
            sentence = str(error)
            rows = [(0, -1, job.unread(piece, sentence if path in sentence else f"{path}: {sentence}"))]
        yield from rows

    def reducer(
        self, table: bytes
    ) -> Callable[[int, int, list[bytes]], tuple[bytes | None, _native.Table | None, bytes | None]]:
        """Reduces the parts of a shard of a slice to its tally, of a list of flows or an export to the rows, and of a count with
        slices to what the shard has of all of them."""
        return _job(self.text).shards(table).reduce

    def whole(self, shard: int, parts: Iterable[bytes]) -> bytes:
        """The tally of all slices of a shard, from what it has of each."""
        whole = _job(self.text).all_slices(shard)
        for part in parts:
            whole.add(part)
        return whole.finish()


@functools.lru_cache(maxsize=4)
def _parsed(text: str, thread: int) -> _native.DividedJob:
    return _native.DividedJob.of_text(text)


def _job(text: str) -> _native.DividedJob:
    return _parsed(text, threading.get_ident())


def words_of(command: str, options: dict[str, Any]) -> list[str]:
    """The words of a command with these options, whose result is for a class of `flowsieve._results`."""
    function = getattr(_commands, command)
    known = inspect.signature(function).parameters
    for name in options:
        if name not in known or name in ("captures", "progress"):
            raise UsageError(f"{command} has no option {name}; there are {', '.join(sorted(known))}")
    # The captures that the words name are replaced by those that were found.
    return command_line([command, "--format=arrows"], function, {"captures": ["-"], **options})


def done_here(
    command: str,
    captures: Any,
    task_bytes: int = TASK_BYTES,
    budget: int = BUDGET,
    skip_unreadable: bool = False,
    **options: Any,
) -> tuple[Command, list[_native.Table]]:
    """A run in pieces, all in this process: the cluster's path without a cluster. The result, and of a list of flows or
    an export the rows of each shard."""
    divided = Divided(words_of(command, options), captures, task_bytes, skip_unreadable=skip_unreadable)
    share = divided.share()
    shuffled: dict[tuple[int, int], list[bytes]] = {}
    inputs: list[bytes] = []
    pieces = divided.pieces
    while pieces:
        for piece in pieces:
            for slice_, shard, data in share.read(piece, budget):
                if shard < 0:
                    inputs.append(data)
                else:
                    shuffled.setdefault((slice_, shard), []).append(data)
        pieces = divided.join(inputs)
    reduce = share.reducer(divided.job.table())
    tallies: list[bytes] = []
    tables: list[_native.Table] = []
    wholes: dict[int, list[bytes]] = {}
    for (slice_, shard), parts in shuffled.items():
        tally, rows, whole = reduce(slice_, shard, parts)
        if tally is not None:
            tallies.append(tally)
        if rows is not None:
            tables.append(rows)
        if whole is not None:
            wholes.setdefault(shard, []).append(whole)
    tallies += [share.whole(shard, parts) for shard, parts in wholes.items()]
    return Command.over(divided.report(tallies)), tables


def counted_here(captures: Any, task_bytes: int = TASK_BYTES, budget: int = BUDGET, **options: Any) -> Counts:
    """A count that way."""
    return Counts(done_here("count", captures, task_bytes, budget, **options)[0])
