"""A count, a ranking, a list of flows or an export in pieces, for any engine that runs functions in other processes.

    plan -> tasks -> map -> parts (shuffle) -> reduce -> report

`run` does all of it with what an engine has for submitting a call; the other functions are its steps. Every step gives the same
bytes when it is run again, so an engine may repeat it.

>>> from concurrent.futures import ThreadPoolExecutor
>>> from flowsieve import pieces
>>> with ThreadPoolExecutor(2) as pool:
...     counted = pieces.run("count", "traces/generated.pcap", submit=pool.submit, slice="1s")
>>> counted.totals.packets
8000
"""

from __future__ import annotations

import functools
import inspect
import itertools
import json
import os
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, NamedTuple, TypeAlias, overload

from . import _commands, _native
from ._errors import Error, UsageError
from ._memory import check_room, room
from ._records import ExportParameters, ExportTotals, FlowsParameters, FlowsTotals
from ._remote import RemoteFile, SkippedFile, found, is_remote
from ._results import _P, _T, Counts, Top, _OfInputs
from ._run import Command, Paths, Report, StrPath, command_line, named_paths, whole_number
from ._table import Table, plain

__all__ = ["Listed", "Plan", "Reducer", "Task", "Worker", "join", "map", "plan", "reduce", "report", "run"]

#: Bytes of elements that a piece keeps before it hands them on.
BUDGET = 16 << 20
#: Most and fewest bytes of a task, unless they are given.
MOST_BYTES, FEWEST_BYTES = 256 << 20, 16 << 20
#: Shards of a list of flows or packets; more if there are more tasks.
LEAST_SHARDS = 64
#: Bytes of a capture for each distinct pair, and for each packet of one that is cut. Floods from invented addresses have more pairs.
ELEMENT_BYTES, PACKET_BYTES = 1000, 80
#: Bytes of memory that a reducer takes, as measured: for each pair with the exact count and without it, for one of a ranked slice and
#: in the one shard of a ranking of everything that has them all, and for each packet of flows and of an export.
EXACT_BYTES, ESTIMATED_BYTES, RANKED_EXACT_BYTES, RANKED_BYTES, FLOW_BYTES, EXPORT_BYTES = 57, 35, 111, 42, 116, 188
#: Bytes that could be read in the time that it takes to open a file, here and in an object store.
OPENING_BYTES, REMOTE_OPENING_BYTES = 256 << 10, 4 << 20

#: Slice, shard and bytes of what a piece has of it.
Part: TypeAlias = tuple[int, int, bytes]
#: A piece as JSON, the path of its file, and size and marks of a remote file as JSON.
Piece: TypeAlias = tuple[str, str, "str | None"]


class Worker(NamedTuple):
    """Parameters of a run, the same for all workers. It can be pickled."""

    text: str
    shards: int | None
    storage_options: dict[str, Any] | None
    skip_unreadable: bool

    def read(self, piece: Piece, budget: int = BUDGET) -> Iterator[Part]:
        """The parts of a piece; and at the end, with shard -1, what became of the piece.

        Raises:
            Error: the bytes could not be read. Reading the piece again may help.
        """
        text, path, known = piece
        job = _job(self.text)

        def parts() -> Iterator[Part]:
            file = None
            if is_remote(path):
                span = json.loads(text)["bytes"]
                file = RemoteFile(path, known, self.storage_options, span and span["end"])
                file.look()
            try:
                reading = job.read(text, path, budget, file and file.begun)
                yield from reading
                end = reading.finish()
            except Exception:
                if file:
                    file.check()
                raise
            if file:
                file.check()
            yield 0, -1, end

        if not self.skip_unreadable:
            yield from parts()
            return
        # All or nothing: what was handed on of a piece that could not be read to its end would count.
        try:
            rows = list(parts())
        except UsageError:
            raise
        except (Error, OSError) as error:
            sentence = str(error)
            rows = [(0, -1, job.unread(text, path, sentence if path in sentence else f"{path}: {sentence}"))]
        yield from rows

    def bucket(self, slice_: int, shard: int, buckets: int) -> int:
        """The bucket that a part belongs to. Where there are shards enough, all slices of a shard are in one bucket."""
        if self.shards is not None and self.shards >= buckets:
            return shard % buckets
        return ((slice_ * 1_000_003 + shard) * 0x9E3779B97F4A7C15 % 2**64 >> 32) % buckets

    def table_of(self, pieces: list[str], ends: list[bytes], files: int) -> bytes | None:
        """Which pieces count, from what became of all of them; None unless they can be joined."""
        return _job(self.text).table_of(pieces, ends, files)

    def all_slices(self, shard: int) -> _native.WholeShard:
        """Counts all slices of a shard together, from what it has of each."""
        return _job(self.text).all_slices(shard)


class Task(NamedTuple):
    """Pieces that are read by one call of `map`. It can be pickled."""

    worker: Worker
    pieces: list[Piece]


class Reduced(NamedTuple):
    """Output of `reduce`: tallies, rows, and for each shard the elements to count over all slices."""

    tallies: list[bytes]
    tables: list[_native.Table]
    wholes: list[tuple[int, bytes]]


class Reducer(NamedTuple):
    """Reduces parts, once all pieces were joined. It can be pickled."""

    worker: Worker
    table: bytes
    #: Whether one call has all slices of its shards.
    whole_shards: bool = False

    def reduced(self, parts: Iterable[Part]) -> Iterator[Reduced]:
        """What becomes of each shard of a slice, whose parts come one after the other.

        Raises:
            Error: the bytes are damaged, or a shard needs more memory than there is.
        """
        shards = _job(self.worker.text).shards(self.table)
        wholes: dict[int, _native.WholeShard] = {}
        for (slice_, shard), group in itertools.groupby(parts, lambda part: part[:2]):
            size = 0
            for _, _, part in group:
                size += len(part)
                check_room(size, len(part), slice_, shard)
                shards.add(part)
            if self.whole_shards and shard not in wholes:
                wholes[shard] = self.worker.all_slices(shard)
            tally, rows, whole = shards.reduce(slice_, shard, wholes.get(shard))
            yield Reduced(
                [] if tally is None else [tally],
                [] if rows is None else [rows],
                [] if whole is None else [(shard, whole)],
            )
        for all_slices in wholes.values():
            yield Reduced([all_slices.finish()], [], [])


class Plan:
    """A run in pieces, as its driver sees it."""

    def __init__(
        self,
        words: list[str],
        captures: Any,
        tasks: int = 1,
        task_bytes: int | None = None,
        storage_options: dict[str, Any] | None = None,
        skip_unreadable: bool = False,
    ) -> None:
        tasks = whole_number(tasks, "tasks")
        task_bytes = None if task_bytes is None else whole_number(task_bytes, "task_bytes")
        if not isinstance(storage_options, (dict, type(None))):
            raise UsageError(f"storage_options: a dictionary of arguments of fsspec, not {type(storage_options).__name__}")
        self.command = words[0]
        files, self._problems = found(captures, storage_options, skip_unreadable)
        self.files = [file.path for file in files]
        self._sizes = [file.size for file in files]
        self._costs = [REMOTE_OPENING_BYTES if is_remote(path) else OPENING_BYTES for path in self.files]
        self._known = [file.known for file in files]
        remotes = {
            number: RemoteFile(file.path, file.known, storage_options, 0) for number, file in enumerate(files) if is_remote(file.path)
        }
        whole = sum(size or 0 for size in self._sizes) + sum(self._costs)
        # Where slices begin may depend on all first packets: none is skipped here.
        # Flows and packets of a shard are in the memory of one process.
        self._shards = max(LEAST_SHARDS, whole // MOST_BYTES)
        self.job = _native.DividedJob(words, self.files, remotes, self._shards)
        if task_bytes is None:
            rounds = max(-(-whole // (tasks * MOST_BYTES)), 1)
            task_bytes = min(max(whole // (tasks * rounds) - max(self._costs), FEWEST_BYTES), MOST_BYTES)
        self._task_bytes = task_bytes
        lengths: dict[int, tuple[int | None, Any]] = {
            number: (self._sizes[number], SkippedFile(file) if skip_unreadable else file) for number, file in remotes.items()
        }
        self.pieces = self.job.pieces(task_bytes, lengths)
        text = self.job.text()
        parameters = json.loads(text)["parameters"]
        shards = parameters["shards"] if self.command == "count" and parameters.get("slice_ns") else None
        self._parameters = parameters
        self.worker = Worker(text, shards, storage_options, skip_unreadable)
        self.tasks = self._packed(self.pieces)
        # In each round every file with ranges gets on by one at least.
        self._rounds = len(self.pieces) + 1
        self._ends: list[bytes] = []

    def shard_bytes(self) -> int:
        """Bytes that a reducer may take for the largest shard, if there is a new element in each `ELEMENT_BYTES`, a packet in each
        `PACKET_BYTES`, and one slice has all of them."""
        size = sum(size or 0 for size in self._sizes)
        elements, packets = size // ELEMENT_BYTES, size // PACKET_BYTES
        is_exact = self._parameters.get("exact_limit_bytes") is not None
        if self.command == "count":
            return elements * (EXACT_BYTES if is_exact else ESTIMATED_BYTES) // int(self._parameters["shards"])
        if self._ranks_packets():
            return packets * RANKED_BYTES
        if self.command == "top":
            return elements * (RANKED_EXACT_BYTES if is_exact and self._parameters["slice_ns"] is not None else RANKED_BYTES)
        return packets * (FLOW_BYTES if self.command == "flows" else EXPORT_BYTES) // self._shards

    def _ranks_packets(self) -> bool:
        """Whether a ranking takes every packet, and not only distinct pairs."""
        ranks = self.command == "top" and self._parameters["sort"] != "distinct"
        return ranks and self._parameters.get("exact_limit_bytes") is None

    def too_large(self, left: int | None) -> str | None:
        """Says that a shard may not fit into this memory of a task."""
        needed = self.shard_bytes()
        if left is None or needed <= left:
            return None
        condition, remedy = f"there is a new element in each {ELEMENT_BYTES:,} bytes", ""
        if self.command not in ("count", "top") or self._ranks_packets():
            condition = f"there is a packet in each {PACKET_BYTES} bytes"
        if self.command == "count":
            remedy = ", or count with more shards"
        elif self.command == "top" and self._parameters["slice_ns"] is None:
            remedy = ', or choose slices, such as slice="1min"'
        elif self.command == "top":
            condition, remedy = f"{condition} and one slice has all of them", ", or choose shorter slices"
        return (
            f"a reduce task may take {needed >> 20:,} MB, if {condition}, and has {left >> 20:,} MB; give workers more memory{remedy}"
        )

    def _packed(self, pieces: list[str]) -> list[Task]:
        """The pieces as tasks, small ones together, so that a task has enough to do."""
        tasks: list[Task] = []
        room = 0
        for piece in pieces:
            parsed = json.loads(piece)
            number = parsed["input"]
            size = self._sizes[number] or 0
            span = parsed["bytes"] or {"start": 0, "end": size}
            cost = min(span["end"], size) - span["start"] + self._costs[number]
            if not tasks or cost > room:
                tasks.append(Task(self.worker, []))
                room = self._task_bytes + self._costs[number]
            tasks[-1].pieces.append((piece, self.files[number], self._known[number]))
            room -= cost
        return tasks

    def join(self, ends: Iterable[bytes]) -> list[Task]:
        """Joins what became of pieces; the tasks that have to be done again, with those before.

        Raises:
            Error: no input could be opened, or a file changed meanwhile.
        """
        # A task may have run twice.
        self._ends += dict.fromkeys(ends)
        self._rounds -= 1
        again = self.job.join(self.pieces, self._ends, self._problems)
        if again and self._rounds <= 0:
            path = self.files[json.loads(again[0])["input"]]
            raise Error(f"{path}: a range of this file was asked for again and again, and never came", path)
        return self._packed(again)

    def reducer(self, buckets: int = 1) -> Reducer:
        """Reduces the parts of this many buckets."""
        return Reducer(self.worker, self.job.table(), self.worker.shards is not None and self.worker.shards >= buckets)

    def report(self, tallies: Iterable[bytes]) -> Report:
        """The result in the format that the words ask for, once all shards were reduced; of flows and exports without its rows.
        With it what one process says of the inputs, and whether it read all of them to their end."""
        return self.job.report(list(tallies))


@functools.lru_cache(maxsize=4)
def _parsed(text: str, thread: int) -> _native.DividedJob:
    return _native.DividedJob.of_text(text)


def _job(text: str) -> _native.DividedJob:
    return _parsed(text, threading.get_ident())


class Listed(_OfInputs[_P, _T]):
    """Flows or exported rows by shard."""

    def __init__(self, command: Command, tables: Iterable[_native.Table], sorted_by: int) -> None:
        super().__init__(command)
        # The report has no rows.
        command.rows()
        self._read()
        self._sorted_by = sorted_by
        #: The rows of each shard. Sorted by their last columns, named ``begun_…``, they are in the order of the trace.
        self.shards = [Table(table) for table in tables]

    def to_arrow(self) -> Any:
        """All rows in the order of one process (of exports with late packets by time), as a ``pyarrow.Table``."""
        import pyarrow

        rows = pyarrow.concat_tables([plain(shard.to_arrow()) for shard in self.shards])
        places = [name for name in rows.column_names if name.startswith("begun_")]
        order = [(name, "ascending") for name in [*rows.column_names[: self._sorted_by], *places]]
        return rows.sort_by(order).drop_columns(places)


class ListedFlows(Listed[FlowsParameters, FlowsTotals]):
    """Flows by shard."""

    _parameters = FlowsParameters
    _totals = FlowsTotals


class ListedRows(Listed[ExportParameters, ExportTotals]):
    """Exported rows by shard."""

    _parameters = ExportParameters
    _totals = ExportTotals


def words_of(command: str, options: dict[str, Any]) -> list[str]:
    """The words of a command with these options, whose result is for a class of `flowsieve._results`."""
    function = getattr(_commands, command)
    known = inspect.signature(function).parameters.keys() - {"captures", "progress"}
    for name in options:
        if name not in known:
            raise UsageError(f"{command} has no option {name}; there are {', '.join(sorted(known))}")
    # The captures that the words name are replaced by those that were found.
    return command_line([command, "--format=arrows"], function, {"captures": ["-"], **options})


def plan(
    command: Literal["count", "top", "flows", "export"],
    captures: Paths,
    *,
    tasks: int = 1,
    task_bytes: int | None = None,
    manifest: StrPath | None = None,
    storage_options: dict[str, Any] | None = None,
    skip_unreadable: bool = False,
    **options: Any,
) -> Plan:
    """Plans a run in pieces.

    Args:
        command: What is run.
        captures: Paths that all workers see, or addresses such as ``s3://`` that fsspec opens; patterns and directories too.
        tasks: How many tasks run at once: the bytes of a task follow from it.
        task_bytes: Bytes that a task reads, or up to twice as many at the end of a file: smaller files are read together, larger plain pcap files are divided.
        manifest: A file with more captures, one a line.
        storage_options: Arguments of fsspec for remote files.
        skip_unreadable: A file that cannot be read is listed with its error, and its packets are missing.
        **options: Those of the function of `flowsieve` with the name of the command.

    Raises:
        UsageError: the options do not go together, or need all packets in one place.
        Error: a file is missing.
    """
    named = named_paths(captures, "captures")
    if command not in ("count", "top", "flows", "export"):
        raise UsageError(f"command: count, top, flows and export run in pieces, not {command!r}")
    if manifest is not None:
        try:
            with open(manifest, encoding="utf-8-sig", errors="surrogateescape") as lines:
                named += [line.strip() for line in lines if line.strip()]
        except OSError as error:
            raise Error(f"{manifest}: {error.strerror}", os.fspath(manifest)) from None
    return Plan(words_of(command, options), named, tasks, task_bytes, storage_options, skip_unreadable)


def map(task: Task, buckets: int = 1) -> list[list[Any]]:
    """Reads the pieces of a task: what became of them, which `join` takes, and behind it the parts of each bucket."""
    mapped: list[list[Any]] = [[] for _ in range(buckets + 1)]
    for piece in task.pieces:
        for slice_, shard, data in task.worker.read(piece):
            if shard < 0:
                mapped[0].append(data)
            else:
                mapped[1 + task.worker.bucket(slice_, shard, buckets)].append((slice_, shard, data))
    return mapped


def join(plan: Plan, ends: Iterable[bytes]) -> list[Task]:
    """Joins what became of the pieces. The tasks that it returns have to be mapped, too, and joined, until there are none: a range
    of a file may have begun at the wrong place."""
    return plan.join(ends)


def reduce(reducer: Reducer, *parts: Iterable[Part]) -> Reduced:
    """Reduces the parts of a bucket, from all tasks."""
    reduced = Reduced([], [], [])
    for one in reducer.reduced(sorted(itertools.chain(*parts), key=lambda part: part[:2])):
        reduced.tallies.extend(one.tallies)
        reduced.tables.extend(one.tables)
        reduced.wholes.extend(one.wholes)
    return reduced


def report(plan: Plan, reduced: Iterable[Reduced]) -> Any:
    """The result, once all buckets were reduced."""
    tallies: list[bytes] = []
    tables: list[_native.Table] = []
    wholes: dict[int, _native.WholeShard] = {}
    for one in reduced:
        tallies += one.tallies
        tables += one.tables
        for shard, part in one.wholes:
            if shard not in wholes:
                wholes[shard] = plan.worker.all_slices(shard)
            wholes[shard].add(part)
    tallies += [whole.finish() for whole in wholes.values()]
    command = Command.over(plan.report(tallies))
    name = plan.command
    if name in ("flows", "export"):
        tables = tables or [plan.job.columns()]
        # The first column of flows is the start under any of its names.
        return ListedFlows(command, tables, 1) if name == "flows" else ListedRows(command, tables, 0)
    return Counts(command) if name == "count" else Top(command)


def _room_of_call(calls: int, all_here: bool = False) -> int | None:
    """Returns the bytes of memory for each call on this machine; None if the system does not say.

    With `all_here` all calls run on this machine at once, without it at most one for each processor.
    """
    left = room()
    return left and left // (calls if all_here else min(calls, os.cpu_count() or 1))


def _item(values: list[Any], number: int) -> Any:
    return values[number]


@overload
def run(
    command: Literal["count"], captures: Paths, *, submit: Callable[..., Any], gather: Any = None, buckets: int = 8, **options: Any
) -> Counts: ...


@overload
def run(
    command: Literal["top"], captures: Paths, *, submit: Callable[..., Any], gather: Any = None, buckets: int = 8, **options: Any
) -> Top: ...


@overload
def run(
    command: Literal["flows"], captures: Paths, *, submit: Callable[..., Any], gather: Any = None, buckets: int = 8, **options: Any
) -> ListedFlows: ...


@overload
def run(
    command: Literal["export"], captures: Paths, *, submit: Callable[..., Any], gather: Any = None, buckets: int = 8, **options: Any
) -> ListedRows: ...


def run(
    command: Literal["count", "top", "flows", "export"],
    captures: Paths,
    *,
    submit: Callable[..., Any],
    gather: Callable[[list[Any]], list[Any]] | None = None,
    buckets: int = 8,
    **options: Any,
) -> Any:
    """Runs a command in pieces, with the result of one process.

    Args:
        command: What is run.
        captures: As for `plan`.
        submit: Begins a call somewhere, from a function and its arguments, and returns a reference to its result.
        gather: Waits for the results of references. If it is given, references may be arguments of `submit`, and what is read stays
            with the workers. Without it references are futures of `concurrent.futures`, and everything passes through here. What has
            not begun when a run fails is cancelled, if references have `cancel`.
        buckets: Calls that reduce, and tasks that run at once.
        **options: Those of `plan`.

    Raises:
        UsageError: the options do not go together, or need all packets in one place.
        Error: a file is missing or could not be read.
    """
    buckets = whole_number(buckets, "buckets")
    made = plan(command, captures, **{"tasks": buckets, **options})
    left = gather([submit(_room_of_call, buckets)])[0] if gather else _room_of_call(buckets, all_here=True)
    sentence = made.too_large(left)
    if sentence is not None:
        warnings.warn(sentence, RuntimeWarning, stacklevel=2)

    def results(references: list[Any]) -> list[Any]:
        return gather(references) if gather else [reference.result() for reference in references]

    def items(mapped: list[Any], number: int) -> list[Any]:
        return [submit(_item, one, number) if gather else one[number] for one in mapped]

    shuffled: list[list[Any]] = [[] for _ in range(buckets)]
    tasks = made.tasks
    under_way: list[Any] = []
    try:
        while tasks:
            under_way = []
            under_way.extend(submit(map, task, buckets) for task in tasks)
            mapped = under_way if gather else results(under_way)
            for number, bucket in enumerate(shuffled):
                bucket += items(mapped, number + 1)
            ends = items(mapped, 0)
            tasks = join(made, itertools.chain(*(gather(ends) if gather else ends)))
        reducer = made.reducer(buckets)
        under_way = []
        under_way.extend(submit(reduce, reducer, *parts) for parts in shuffled)
        return report(made, results(under_way))
    except BaseException:
        for reference in under_way:
            if hasattr(reference, "cancel"):
                reference.cancel()
        raise
