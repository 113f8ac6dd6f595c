"""How `flowsieve.pieces` runs on Apache Spark.

Usually in one job: captures are read in pieces (map), the parts go to one place a bucket (shuffle), and there they are reduced. With
the parts of a bucket comes what became of all pieces, so that the reducer knows which of them count. Where that would be too much, or a
range of a file began at the wrong place, the driver joins the pieces before they are reduced.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
import uuid
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ._errors import Error, UsageError
from ._memory import room
from ._records import ExportParameters, ExportTotals, FlowsParameters, FlowsTotals
from ._results import _P, _T, Counts, Top, _OfInputs
from ._run import Bar, Command, Progress, Report, whole_number
from .pieces import Part, Plan, Reduced, Reducer, Task, Worker, plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Bucket, slice, shard (-1: what became of a piece), and the bytes.
_PARTS = "bucket int, slice long, shard int, part binary"
#: The slice of what became of a piece: before all others.
_FIRST = -(2**63)
#: Bytes of a batch of rows on its way from Python to Spark.
_BATCH_BYTES = 32 << 20
#: Settings of Spark during a run. A part has at most some megabytes, and a batch at most two gigabytes; the plan of a run is known
#: before it begins, and each of its tasks is a row.
_SETTINGS = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.leafNodeDefaultParallelism": "1000000",
    "spark.sql.execution.arrow.localRelationThreshold": "1g",
}
#: Number of running calls for each session, and the settings to restore.
_runs: dict[Any, tuple[int, dict[str, str | None]]] = {}
_runs_lock = threading.Lock()
#: Ends of pieces that are sent to buckets at most, so that the reducers can join the pieces themselves.
_MOST_ENDS = 100_000
#: Time between two looks at the tasks that are done.
_LOOK_SECONDS = 0.2
#: The letter that what became of a piece begins with.
_END = b"I"


class _RowsOnSpark(_OfInputs[_P, _T]):
    """A result whose rows are in Spark."""

    def __init__(self, command: Command, kept: DataFrame) -> None:
        super().__init__(command)
        # The report has no rows.
        command.rows()
        self._read()
        self._kept = kept

    def unpersist(self) -> None:
        """Frees what Spark keeps of the rows."""
        self._kept.unpersist()

    def close(self) -> None:
        """Frees what Spark keeps of the rows."""
        self.unpersist()

    def __reduce__(self) -> Any:
        raise TypeError("the rows are in Spark, so the result cannot be pickled; write its data frame")


class FlowsOnSpark(_RowsOnSpark[FlowsParameters, FlowsTotals]):
    """A list of flows in Spark."""

    _parameters = FlowsParameters
    _totals = FlowsTotals

    @property
    def flows(self) -> DataFrame:
        """The flows in the order of their first packet, as a data frame: ``flows.write.parquet(…)`` has the workers write them."""
        # The first column is the start under any of its names.
        return _in_order(self._kept, 1)


class ExportOnSpark(_RowsOnSpark[ExportParameters, ExportTotals]):
    """Packets or elements in Spark."""

    _parameters = ExportParameters
    _totals = ExportTotals

    @property
    def rows(self) -> DataFrame:
        """The rows by slice, and in a slice in the order of their first packet, as a data frame: ``rows.write.parquet(…)`` has the
        workers write them."""
        return _in_order(self._kept, 0)


def _in_order(kept: DataFrame, first: int) -> DataFrame:
    """The rows without what stands beside them, sorted by so many of their first columns and then by their places."""
    rows = kept.filter("is_row").drop("tally", "is_row")
    places = [name for name in rows.columns if name.startswith("begun_")]
    return rows.sort(*rows.columns[:first], *places).drop(*places)


def counted(function: Any, given: dict[str, Any]) -> Counts:
    """A count with the arguments of its function."""
    with _run_of(function, given) as run:
        return Counts(Command.over(run.report()))


def ranked(function: Any, given: dict[str, Any]) -> Top:
    """A ranking."""
    with _run_of(function, given) as run:
        return Top(Command.over(run.report()))


def listed(function: Any, given: dict[str, Any]) -> FlowsOnSpark:
    """A list of flows."""
    with _run_of(function, given) as run:
        return FlowsOnSpark(*run.listed())


def exported(function: Any, given: dict[str, Any]) -> ExportOnSpark:
    """An export."""
    with _run_of(function, given) as run:
        return ExportOnSpark(*run.listed())


def _run_of(function: Any, given: dict[str, Any]) -> Run:
    options = dict(given)
    spark, partitions, progress = options.pop("spark"), options.pop("partitions"), options.pop("progress")
    partitions = None if partitions is None else whole_number(partitions, "partitions")
    divided = plan(function.__name__, options.pop("captures"), tasks=threads_of(spark), **options)
    sentence = divided.too_large(room_of_task(spark))
    if sentence is not None:
        warnings.warn(sentence, RuntimeWarning, stacklevel=4)
    return Run(spark, divided, partitions, progress)


def _buckets(threads: int, tasks: int, shards: int | None) -> int:
    """Reduce tasks: each has about as much to do as one that reads. More than there are shards would divide the slices of a shard,
    whose distinct elements have to be sent once more, so there are more only if threads would have nothing to do."""
    buckets = max(threads, tasks // 2)
    return buckets if shards is None or threads > shards else min(buckets, shards)


class Run:
    """A run on a cluster, between its first job and its last."""

    def __init__(self, spark: SparkSession, divided: Plan, partitions: int | None, progress: Progress = None) -> None:
        self._spark, self._plan = spark, divided
        self._tasks = _Tasks(spark, progress)
        self._buckets = partitions or _buckets(threads_of(spark), len(divided.tasks), divided.worker.shards)
        self._kept: list[DataFrame] = []

    def __enter__(self) -> Run:
        _use(self._spark, 1)
        self._tasks.begin()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        try:
            self._tasks.end(error is None)
        finally:
            for parts in self._kept:
                parts.unpersist()
            _use(self._spark, -1)
        if self._tasks.failure is not None and isinstance(error, (Exception, type(None))):
            raise self._tasks.failure
        if isinstance(error, Exception):
            explained = _explained(error, self._plan.files)
            if explained is not error:
                raise explained from error

    def listed(self) -> tuple[Command, DataFrame]:
        """The report of all tallies, and the rows with their places, which Spark keeps."""

        def reduced(reduce: _Reduce) -> tuple[DataFrame, list[bytes]]:
            rows = self._reduced(reduce, _row_schema(_columns(self._plan))).persist(_disk())
            return rows, [bytes(row.tally) for row in rows.filter("tally is not null").select("tally").collect()]

        rows, tallies = self._joined(_RowsOf(self._plan), reduced)
        return Command.over(self._plan.report(tallies)), rows

    def report(self) -> Report:
        """The report of all tallies."""

        def reduced(reduce: _Reduce) -> tuple[DataFrame, list[bytes]]:
            frame = self._reduced(reduce, "shard int, tally binary, whole binary")
            if not self._has_wholes():
                return frame, [bytes(row.tally) for row in frame.collect()]
            frame = frame.persist(_disk())
            self._kept.append(frame)
            return frame, [bytes(row.tally) for row in frame.filter("tally is not null").select("tally").collect()]

        frame, tallies = self._joined(_tally_of, reduced)
        if self._has_wholes():
            tallies += [bytes(row.tally) for row in _wholes(self._plan.worker, frame, self._buckets).collect()]
        return self._plan.report(tallies)

    def _has_wholes(self) -> bool:
        """Whether the slices of a shard are reduced in several tasks."""
        shards = self._plan.worker.shards
        return shards is not None and shards < self._buckets

    def _joined(
        self, made: Callable[[Reduced], Iterator[Any]], reduced: Callable[[_Reduce], tuple[DataFrame, list[bytes]]]
    ) -> tuple[DataFrame, list[bytes]]:
        """Returns the output of `reduced` for all parts, and the tallies."""
        again = self._plan.tasks
        is_one_job = len(self._plan.pieces) * self._buckets <= _MOST_ENDS
        maps = [self._map(again, self._buckets if is_one_job else 1)]
        if is_one_job:
            self._parts = maps[0]
            frame, tallies = reduced(_Reduce(self._plan, None, self._buckets, made))
            again = self._plan.join([tally for tally in tallies if tally.startswith(_END)])
            if not again:
                return frame, [tally for tally in tallies if not tally.startswith(_END)]
            frame.unpersist()
            maps.append(self._map(again, 1))
        while again:
            parts = maps[-1] = maps[-1].persist(_disk())
            self._kept.append(parts)
            ends = parts.filter("shard = -1").select("part").collect()
            again = self._plan.join([bytes(row.part) for row in ends])
            if again:
                maps.append(self._map(again, 1))
        self._parts = maps[0]
        for more in maps[1:]:
            self._parts = self._parts.unionAll(more)
        self._parts = self._parts.filter("shard >= 0")
        return reduced(_Reduce(self._plan, self._plan.reducer().table, self._buckets, made))

    def _map(self, tasks: list[Task], copies: int) -> DataFrame:
        """The parts of all pieces, a task a partition. A task knows of no other's pieces. What became of a piece goes to so many
        buckets."""
        import pyarrow

        pieces = pyarrow.table({"pieces": [json.dumps(task.pieces) for task in tasks]})
        return self._spark.createDataFrame(pieces).mapInArrow(_Map(self._plan.worker, self._buckets, copies), _PARTS)

    def _reduced(self, reduce: _Reduce, schema: Any) -> DataFrame:
        """Returns the result for each shard of a slice."""
        parts, buckets = self._parts, self._buckets
        # The bucket is the partition, where Spark has that.
        divide = getattr(parts, "repartitionById", parts.repartition)
        shuffled = divide(buckets, "bucket")
        return shuffled.sortWithinPartitions("bucket", "slice", "shard").mapInArrow(reduce, schema)


def _use(spark: SparkSession, runs: int) -> None:
    """Counts a run that begins (1) or ends (-1): the first one changes the session's settings, the last one restores them."""
    # Several Python objects may share one Java session.
    session = getattr(spark, "_jsparkSession", spark)
    with _runs_lock:
        before, settings = _runs.pop(session, (0, {}))
        if before == 0:
            settings = {name: spark.conf.get(name, None) for name in _SETTINGS}
        for name in _SETTINGS:
            value = _SETTINGS[name] if before + runs else settings[name]
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)
        if before + runs:
            _runs[session] = before + runs, settings


class _Tasks:
    """Shows how many tasks of the jobs that this thread begins are done. Cancels the jobs if the progress function raises."""

    _GROUP = "spark.jobGroup.id"

    def __init__(self, spark: SparkSession, progress: Progress) -> None:
        self._spark, self._bar = spark, Bar(progress, "task")
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_ours = False
        self._total = 0
        self._tag = f"flowsieve-{uuid.uuid4()}"
        #: The exception that the progress function raised.
        self.failure: BaseException | None = None

    def begin(self) -> None:
        """Looks from now on."""
        if self._bar.report is None:
            return
        try:
            self._context = self._spark.sparkContext
            self._tracker = self._context.statusTracker()
        except Exception:
            # A session of Spark Connect does not say.
            return
        self._group = self._context.getLocalProperty(self._GROUP)
        if self._group is None:
            self._is_ours, self._group = True, self._tag
            self._context.setLocalProperty(self._GROUP, self._group)
        self._context.addJobTag(self._tag)
        self._before = set(self._tracker.getJobIdsForGroup(self._group))
        self._thread = threading.Thread(target=self._look_on, daemon=True)
        self._thread.start()

    def _look_on(self) -> None:
        while not self._ended.wait(_LOOK_SECONDS):
            if self.failure is None:
                self._look()
            else:
                # Again and again: later jobs of the run have to end, too.
                self._context.cancelJobsWithTag(self._tag)

    def _look(self) -> None:
        done = total = 0
        for job in set(self._tracker.getJobIdsForGroup(self._group)) - self._before:
            about: Any = self._tracker.getJobInfo(job)
            for number in about.stageIds if about else []:
                stage = self._tracker.getStageInfo(number)
                if stage is not None:
                    done += stage.numCompletedTasks
                    # A stage that was skipped has none that will be done.
                    total += stage.numTasks if about.status == "RUNNING" else stage.numCompletedTasks
        self._total = total
        self._report(done)

    def _report(self, done: int) -> None:
        if self._bar.report is not None and self._total and self.failure is None:
            try:
                self._bar.report(done, 0, self._total)
            except BaseException as error:
                self.failure = error

    def end(self, is_done: bool) -> None:
        """Looks no more."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._context.removeJobTag(self._tag)
            if self._is_ours:
                self._context.setLocalProperty(self._GROUP, None)  # type: ignore[arg-type]
            if is_done:
                self._look()
                self._report(self._total)
        self._bar.close()


class _Map:
    """Reads pieces."""

    def __init__(self, worker: Worker, buckets: int, copies: int) -> None:
        self._worker, self._buckets, self._copies = worker, buckets, copies

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        rows: list[tuple[int, int, int, bytes]] = []
        size = 0
        for batch in batches:
            for pieces in batch.column(0).to_pylist():
                for piece in json.loads(pieces):
                    for row in self._rows(tuple(piece)):
                        rows.append(row)
                        size += len(row[3])
                        if size >= _BATCH_BYTES:
                            yield _part_batch(rows)
                            rows, size = [], 0
        if rows:
            yield _part_batch(rows)

    def _rows(self, piece: Any) -> Iterator[tuple[int, int, int, bytes]]:
        for slice_, shard, data in self._worker.read(piece):
            if shard < 0:
                for bucket in range(self._copies):
                    yield bucket, _FIRST, -1, data
            else:
                yield self._worker.bucket(slice_, shard, self._buckets), slice_, shard, data


def _part_batch(rows: list[tuple[int, int, int, bytes]]) -> Any:
    import pyarrow

    kinds = (pyarrow.int32(), pyarrow.int64(), pyarrow.int32(), pyarrow.binary())
    arrays = [pyarrow.array(values, kind) for values, kind in zip(zip(*rows), kinds)]
    return pyarrow.RecordBatch.from_arrays(arrays, names=["bucket", "slice", "shard", "part"])


class _Reduce:
    """Reduces buckets. Without a table it joins what became of the pieces, and hands that on from the first bucket."""

    def __init__(self, divided: Plan, table: bytes | None, buckets: int, made: Callable[[Reduced], Iterator[Any]]) -> None:
        self._worker, self._table, self._buckets, self._made = divided.worker, table, buckets, made
        self._pieces = divided.pieces if table is None else []
        self._files = len(divided.files)

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        def rows() -> Iterator[tuple[int, Part]]:
            for batch in batches:
                numbers = zip(*(batch.column(place).to_pylist() for place in range(3)))
                parts = batch.column(3)
                for row, (bucket, slice_, shard) in enumerate(numbers):
                    yield bucket, (slice_, shard, parts[row].as_py())

        for bucket, group in itertools.groupby(rows(), lambda row: row[0]):
            parts: Iterator[Part] = (part for _, part in group)
            table = self._table
            if table is None:
                ends = []
                first: list[Part] = []
                for part in parts:
                    if part[1] >= 0:
                        first.append(part)
                        break
                    ends.append(part[2])
                if bucket == 0:
                    for end in ends:
                        yield from self._made(Reduced([end], [], []))
                table = self._worker.table_of(self._pieces, ends, self._files)
                if table is None:
                    continue
                parts = itertools.chain(first, parts)
            reducer = Reducer(self._worker, table, self._worker.shards is not None and self._worker.shards >= self._buckets)
            for one in reducer.reduced(parts):
                yield from self._made(one)


def _tally_of(reduced: Reduced) -> Iterator[Any]:
    """Rows with tallies and with parts of all slices."""
    import pyarrow

    rows = [(-1, tally, None) for tally in reduced.tallies] + [(shard, None, whole) for shard, whole in reduced.wholes]
    if rows:
        kinds = (pyarrow.int32(), pyarrow.binary(), pyarrow.binary())
        arrays = [pyarrow.array(values, kind) for values, kind in zip(zip(*rows), kinds)]
        yield pyarrow.RecordBatch.from_arrays(arrays, names=["shard", "tally", "whole"])


class _RowsOf:
    """Rows of shards, and those with their tallies."""

    def __init__(self, divided: Plan) -> None:
        self._schema = _columns(divided)

    def __call__(self, reduced: Reduced) -> Iterator[Any]:
        import pyarrow

        for native in reduced.tables:
            for batch in pyarrow.table(native).to_batches(max_chunksize=1 << 16):
                yield self._batch(batch.columns, pyarrow.nulls(batch.num_rows, pyarrow.binary()), True)
        for tally in reduced.tallies:
            yield self._batch([pyarrow.nulls(1, field.type) for field in self._schema], pyarrow.array([tally], pyarrow.binary()), False)

    def _batch(self, columns: list[Any], tallies: Any, is_row: bool) -> Any:
        import pyarrow

        columns = [*(_for_spark(column) for column in columns), tallies, pyarrow.array([is_row] * len(tallies))]
        return pyarrow.RecordBatch.from_arrays(columns, names=[*self._schema.names, "tally", "is_row"])


def _for_spark(column: Any) -> Any:
    """Spark has no unsigned numbers, and no times finer than a microsecond."""
    import pyarrow

    if pyarrow.types.is_timestamp(column.type):
        return column.cast(pyarrow.timestamp("us", tz="UTC"), safe=False)
    if pyarrow.types.is_unsigned_integer(column.type):
        return column.cast(pyarrow.int64())
    return column


def _columns(divided: Plan) -> Any:
    """The columns of rows."""
    import pyarrow

    return pyarrow.table(divided.job.columns()).schema


def _row_schema(columns: Any) -> Any:
    """The columns of rows for Spark."""
    import pyarrow
    from pyspark.sql.types import (
        BinaryType,
        BooleanType,
        DoubleType,
        LongType,
        StringType,
        StructField,
        StructType,
        TimestampType,
    )

    def kind(one: Any) -> Any:
        if pyarrow.types.is_floating(one):
            return DoubleType()
        if pyarrow.types.is_boolean(one):
            return BooleanType()
        if pyarrow.types.is_timestamp(one):
            return TimestampType()
        return StringType() if pyarrow.types.is_string(one) else LongType()

    fields = [StructField(field.name, kind(field.type)) for field in columns]
    return StructType([*fields, StructField("tally", BinaryType()), StructField("is_row", BooleanType())])


def _wholes(worker: Worker, reduced: DataFrame, buckets: int) -> DataFrame:
    """The tally of all slices of each shard."""

    def whole(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        rows = ((shard, part) for batch in batches for shard, part in zip(*(column.to_pylist() for column in batch.columns)))
        for shard, parts in itertools.groupby(rows, lambda row: row[0]):
            all_slices = worker.all_slices(shard)
            for _, part in parts:
                all_slices.add(part)
            yield pyarrow.RecordBatch.from_arrays([pyarrow.array([all_slices.finish()], pyarrow.binary())], names=["tally"])

    parts = reduced.filter("whole is not null").select("shard", "whole")
    shuffled = parts.repartition(buckets, "shard").sortWithinPartitions("shard")
    return shuffled.mapInArrow(whole, "tally binary")


def _disk() -> Any:
    from pyspark import StorageLevel

    return StorageLevel.DISK_ONLY


def threads_of(spark: SparkSession) -> int:
    """Tasks that run at once."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:
        # A session of Spark Connect does not say.
        return 4


def room_of_task(spark: SparkSession) -> int | None:
    """Bytes of memory for each of the tasks that run at once; None if nobody says."""
    try:
        conf = spark.sparkContext.getConf()
        if str(conf.get("spark.master")).startswith("local"):
            left = room()
            return None if left is None else left // threads_of(spark)
        number, unit = re.fullmatch(
            "([0-9]+)([kmgt]?)b?", str(conf.get("spark.executor.pyspark.memory") or conf.get("spark.executor.memory", "1g")).lower()
        ).groups()  # type: ignore[union-attr]
        tasks = int(conf.get("spark.executor.cores", "1")) // int(conf.get("spark.task.cpus", "1"))
    except Exception:
        return None
    return (int(number) << 10 * " kmgt".index(unit or "m")) // max(tasks, 1)


def _explained(error: Exception, files: list[str]) -> Exception:
    """Returns the error that a worker raised, with its sentence in place of Spark's traceback."""
    if isinstance(error, Error):
        return error
    text = str(error)
    for kind in (Error, UsageError):
        name = f"{kind.__module__}.{kind.__qualname__}: "
        if name in text:
            sentence = text.rsplit(name, 1)[1].splitlines()[0]
            return kind(sentence, next((file for file in files if sentence.startswith(f"{file}: ")), None))
    return error
