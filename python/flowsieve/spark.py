"""Counts, rankings, lists of flows and exports on Apache Spark, with the same answer as on one machine, to the bit.

    from flowsieve.spark import count
    counts = count(spark, "s3a://captures/2026-11-23/*.pcap.gz", element="flow", slice="1min")

Three stages: captures are read in pieces and give the distinct elements of each slice and shard (map); these go to one place a
shard (shuffle); there the filter and the exact set count them (reduce). What each slice of a shard has then goes to one place once
more, where all slices are counted together. Each step gives the same bytes when Spark runs it again.

Damage in a capture is listed with its input, and warnings, remarks and ``complete`` are those of one machine. What the file system
does not give raises, so that Spark tries again and the job fails with the name of the file, unless it may be skipped.

Run as a program, the module prints the path of itself, for ``spark-submit``; ``count`` may be left out:

    spark-submit "$(python -m flowsieve.spark)" count --slice 1min s3a://captures/2026-11-23/*.pcap.gz
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

if __name__ == "__main__" and __package__ in (None, ""):
    # spark-submit runs this file by its path, and puts its folder first.
    sys.path = [place for place in sys.path if os.path.abspath(place or ".") != os.path.dirname(os.path.abspath(__file__))]

from flowsieve._divided import BUDGET, TASK_BYTES, Divided, Share, words_of
from flowsieve._errors import Error, UsageError
from flowsieve._native import DividedJob
from flowsieve._records import ExportParameters, ExportTotals, FlowsParameters, FlowsTotals
from flowsieve._results import _P, _T, Counts, Top, _OfInputs
from flowsieve._run import Command, Report, named_paths

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Slice, shard (-1: what became of a piece), and the bytes.
_PARTS = "slice long, shard int, part binary"
#: Bytes of a batch of rows on its way from Python to Spark.
_BATCH_BYTES = 32 << 20
#: Rows that Spark puts into a batch: a part has at most some megabytes, and a batch at most two gigabytes.
_BATCH_SETTING = "spark.sql.execution.arrow.maxRecordsPerBatch"
_BATCH_ROWS = "64"

#: One path or address, or several.
Captures: TypeAlias = "str | os.PathLike[str] | Iterable[str | os.PathLike[str]]"


def count(
    spark: SparkSession,
    captures: Captures,
    *,
    manifest: str | os.PathLike[str] | None = None,
    task_bytes: int = TASK_BYTES,
    partitions: int | None = None,
    storage_options: dict[str, Any] | None = None,
    skip_unreadable: bool = False,
    **options: Any,
) -> Counts:
    """Counts as `flowsieve.count` does, on a cluster.

    Args:
        spark: the session.
        captures: paths that all workers see, and addresses such as ``s3a://`` or ``hdfs://`` that fsspec can open; with patterns
            and directories.
        manifest: a file with more of them, one a line.
        task_bytes: bytes that a task reads; smaller files are read together, larger plain pcap files are divided.
        partitions: reduce tasks. Default: as many as Spark has threads, times four.
        storage_options: what fsspec needs to know for remote files.
        skip_unreadable: a file that cannot be read is listed with its error, and its packets are missing.
        **options: those of `flowsieve.count`.

    Raises:
        UsageError: the options do not go together, or need all packets in one place.
        Error: a file is missing, or could not be read after Spark's retries.
    """
    divided = _divided("count", captures, manifest, task_bytes, storage_options, skip_unreadable, options)
    with _Run(spark, divided, partitions) as run:
        return Counts(Command.over(run.report()))


def top(
    spark: SparkSession,
    captures: Captures,
    *,
    manifest: str | os.PathLike[str] | None = None,
    task_bytes: int = TASK_BYTES,
    partitions: int | None = None,
    storage_options: dict[str, Any] | None = None,
    skip_unreadable: bool = False,
    **options: Any,
) -> Top:
    """Ranks as `flowsieve.top` does. One task ranks a slice, so choose slices (``slice="1min"``) if there are many packets.

    The arguments are those of `count`, and the options of `flowsieve.top`.
    """
    divided = _divided("top", captures, manifest, task_bytes, storage_options, skip_unreadable, options)
    with _Run(spark, divided, partitions) as run:
        return Top(Command.over(run.report()))


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


def flows(
    spark: SparkSession,
    captures: Captures,
    *,
    manifest: str | os.PathLike[str] | None = None,
    task_bytes: int = TASK_BYTES,
    partitions: int | None = None,
    storage_options: dict[str, Any] | None = None,
    skip_unreadable: bool = False,
    **options: Any,
) -> FlowsOnSpark:
    """Lists flows as `flowsieve.flows` does. The list stays in Spark; `FlowsOnSpark.flows` is a data frame.

    The arguments are those of `count`, and the options of `flowsieve.flows`.
    """
    divided = _divided("flows", captures, manifest, task_bytes, storage_options, skip_unreadable, options)
    with _Run(spark, divided, partitions) as run:
        return FlowsOnSpark(*run.listed())


def export(
    spark: SparkSession,
    captures: Captures,
    *,
    manifest: str | os.PathLike[str] | None = None,
    task_bytes: int = TASK_BYTES,
    partitions: int | None = None,
    storage_options: dict[str, Any] | None = None,
    skip_unreadable: bool = False,
    **options: Any,
) -> ExportOnSpark:
    """Exports packets or the elements of each slice as `flowsieve.export` does. The rows stay in Spark; `ExportOnSpark.rows` is a
    data frame.

    The arguments are those of `count`, and the options of `flowsieve.export`. The elements of an eighth of a slice are in the
    memory of one task, with ``slice="all"`` of a 64th of everything.
    """
    divided = _divided("export", captures, manifest, task_bytes, storage_options, skip_unreadable, options)
    with _Run(spark, divided, partitions) as run:
        return ExportOnSpark(*run.listed())


def _divided(
    command: str,
    captures: Captures,
    manifest: str | os.PathLike[str] | None,
    task_bytes: int,
    storage_options: dict[str, Any] | None,
    skip_unreadable: bool,
    options: dict[str, Any],
) -> Divided:
    named = named_paths(captures, "captures")
    if manifest is not None:
        with open(manifest, encoding="utf-8") as lines:
            named += [line.strip() for line in lines if line.strip()]
    return Divided(words_of(command, options), named, task_bytes, storage_options, skip_unreadable)


class _Run:
    """A run on a cluster, between its first job and its last."""

    def __init__(self, spark: SparkSession, divided: Divided, partitions: int | None) -> None:
        self._spark, self._divided, self._partitions = spark, divided, partitions
        self._share = divided.share()
        self._kept: list[DataFrame] = []
        self._before = spark.conf.get(_BATCH_SETTING, None)

    def __enter__(self) -> _Run:
        self._spark.conf.set(_BATCH_SETTING, _BATCH_ROWS)
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        for parts in self._kept:
            parts.unpersist()
        if self._before is None:
            self._spark.conf.unset(_BATCH_SETTING)
        else:
            self._spark.conf.set(_BATCH_SETTING, self._before)
        if isinstance(error, Exception):
            explained = _explained(error, self._share.files)
            if explained is not error:
                raise explained from error

    def reduced(self, schema: Any, made: Callable[[int, Any, Any, Any], Iterator[Any]]) -> DataFrame:
        """What is made of the tally, the rows and the part of all slices of each shard."""
        inputs: list[bytes] = []
        pieces: list[str] | None = None
        while pieces is None or pieces:
            parts = _map(self._spark, self._share, self._divided.tasks(pieces)).persist(_disk())
            self._kept.append(parts)
            inputs += [bytes(row.part) for row in parts.filter("shard = -1").select("part").collect()]
            pieces = self._divided.join(inputs)
        return _reduce(self._share, self._kept, self._divided.job.table(), self._tasks(), schema, made)

    def _tasks(self) -> int:
        return self._partitions or 4 * _threads(self._spark)

    def listed(self) -> tuple[Command, DataFrame]:
        """The report of all tallies, and the rows with their places, which Spark keeps."""
        rows = self.reduced(_row_schema(self._divided), _rows_of).persist(_disk())
        tallies = rows.filter("tally is not null").select("tally").collect()
        return Command.over(self._divided.report([bytes(row.tally) for row in tallies])), rows

    def report(self) -> Report:
        """The report of all tallies."""
        reduced = self.reduced("tally binary, shard int, whole binary", _tally_of).persist(_disk())
        tallies = reduced.filter("tally is not null").select("tally").collect()
        self._kept.append(reduced)
        tallies += _wholes(self._share, reduced, self._tasks()).collect()
        return self._divided.report([bytes(row.tally) for row in tallies])


def _tally_of(shard: int, tally: Any, rows: Any, whole: Any) -> Iterator[Any]:
    """A row with the tally and the part of all slices."""
    import pyarrow

    columns = [
        pyarrow.array([tally], pyarrow.binary()),
        pyarrow.array([shard], pyarrow.int32()),
        pyarrow.array([whole], pyarrow.binary()),
    ]
    yield pyarrow.RecordBatch.from_arrays(columns, names=["tally", "shard", "whole"])


def _wholes(share: Share, reduced: DataFrame, partitions: int) -> DataFrame:
    """The tally of all slices of each shard."""

    def whole(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        rows = ((shard, part) for batch in batches for shard, part in zip(*(column.to_pylist() for column in batch.columns)))
        for shard, parts in itertools.groupby(rows, lambda row: row[0]):
            tally = share.whole(shard, (part for _, part in parts))
            yield pyarrow.RecordBatch.from_arrays([pyarrow.array([tally], pyarrow.binary())], names=["tally"])

    parts = reduced.filter("whole is not null").select("shard", "whole")
    shuffled = parts.repartition(partitions, "shard").sortWithinPartitions("shard")
    return shuffled.mapInArrow(whole, "tally binary")


def _rows_of(shard: int, tally: Any, rows: Any, whole: Any) -> Iterator[Any]:
    """The rows of a shard, and one with its tally."""
    import pyarrow

    table = pyarrow.table(rows)
    for batch in table.to_batches(max_chunksize=1 << 16):
        columns = [*batch.columns, pyarrow.nulls(batch.num_rows, pyarrow.binary()), pyarrow.array([True] * batch.num_rows)]
        yield pyarrow.RecordBatch.from_arrays([_for_spark(column) for column in columns], names=[*table.column_names, "tally", "is_row"])
    columns = [pyarrow.nulls(1, field.type) for field in table.schema]
    columns += [pyarrow.array([tally], pyarrow.binary()), pyarrow.array([False])]
    yield pyarrow.RecordBatch.from_arrays([_for_spark(column) for column in columns], names=[*table.column_names, "tally", "is_row"])


def _for_spark(column: Any) -> Any:
    """Spark has no unsigned numbers, and no times finer than a microsecond."""
    import pyarrow

    if pyarrow.types.is_timestamp(column.type):
        return column.cast(pyarrow.timestamp("us", tz="UTC"), safe=False)
    if pyarrow.types.is_unsigned_integer(column.type):
        return column.cast(pyarrow.int64())
    return column


def _row_schema(divided: Divided) -> Any:
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

    fields = [StructField(field.name, kind(field.type)) for field in pyarrow.table(divided.job.columns()).schema]
    return StructType([*fields, StructField("tally", BinaryType()), StructField("is_row", BooleanType())])


def _disk() -> Any:
    from pyspark import StorageLevel

    return StorageLevel.DISK_ONLY


def _map(spark: SparkSession, share: Share, tasks: list[list[str]]) -> DataFrame:
    """The parts of all pieces, a task a partition."""

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        def batch(rows: list[tuple[int, int, bytes]]) -> Any:
            slices, shards, parts = zip(*rows)
            return pyarrow.RecordBatch.from_arrays(
                [
                    pyarrow.array(slices, pyarrow.int64()),
                    pyarrow.array(shards, pyarrow.int32()),
                    pyarrow.array(parts, pyarrow.binary()),
                ],
                names=["slice", "shard", "part"],
            )

        rows: list[tuple[int, int, bytes]] = []
        size = 0
        for numbers in batches:
            for number in numbers.column(0).to_pylist():
                for piece in tasks[number]:
                    for row in share.read(piece, BUDGET):
                        rows.append(row)
                        size += len(row[2])
                        if size >= _BATCH_BYTES:
                            yield batch(rows)
                            rows, size = [], 0
        if rows:
            yield batch(rows)

    return spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(read, _PARTS)


def _reduce(
    share: Share, maps: list[DataFrame], table: bytes, partitions: int, schema: Any, made: Callable[[int, Any, Any, Any], Iterator[Any]]
) -> DataFrame:
    """What is made of each shard of a slice."""

    def reduce(batches: Iterator[Any]) -> Iterator[Any]:
        reduced = share.reducer(table)
        place: tuple[int, int] | None = None
        parts: list[bytes] = []
        for batch in batches:
            for slice_, shard, part in zip(*(column.to_pylist() for column in batch.columns)):
                if place is not None and place != (slice_, shard):
                    yield from made(place[1], *reduced(*place, parts))
                    parts = []
                place = (slice_, shard)
                parts.append(part)
        if place is not None:
            yield from made(place[1], *reduced(*place, parts))

    parts = maps[0]
    for more in maps[1:]:
        parts = parts.unionAll(more)
    shuffled = parts.filter("shard >= 0").repartition(partitions, "slice", "shard")
    return shuffled.sortWithinPartitions("slice", "shard").mapInArrow(reduce, schema)


def _threads(spark: SparkSession) -> int:
    """Tasks that run at once."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:
        # A session of Spark Connect does not say.
        return 4


def _explained(error: Exception, files: list[str]) -> Exception:
    """What a worker raised, with the sentence that names the file and not Spark's traceback."""
    if isinstance(error, Error):
        return error
    text = str(error)
    for kind in (Error, UsageError):
        name = f"{kind.__module__}.{kind.__qualname__}: "
        if name in text:
            sentence = text.rsplit(name, 1)[1].splitlines()[0]
            return kind(sentence, next((file for file in files if sentence.startswith(f"{file}: ")), None))
    return error


def _say(lines: Iterable[str]) -> None:
    """Writes lines to standard error. Java writes them, since spark-submit joins Python's with its standard output."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        for line in lines:
            print(line, file=sys.stderr)
        return
    from pyspark import SparkContext

    context: Any = SparkContext
    context._ensure_initialized()
    for line in lines:
        context._jvm.java.lang.System.err.println(line)


def main(words: list[str]) -> int:
    """The program for spark-submit: the options of ``flowsieve count`` or ``flowsieve top``, and addresses."""
    from pyspark.sql import SparkSession

    words = words if words[0] in ("count", "top", "flows", "export") else ["count", *words]
    try:
        if words[0] in ("flows", "export"):
            raise UsageError(f"the rows stay in Spark: call flowsieve.spark.{words[0]} and write its data frame")
        captures, output = DividedJob.named(words)
        divided = Divided(words, captures)
        spark = SparkSession.builder.appName(f"flowsieve {words[0]}").getOrCreate()
        try:
            with _Run(spark, divided, None) as run:
                report, said, complete = run.report()
        finally:
            spark.stop()
    except Error as error:
        _say([f"flowsieve: {error}"])
        return 2 if isinstance(error, UsageError) else 1
    if output is None:
        sys.stdout.buffer.write(report)
        sys.stdout.buffer.flush()
    else:
        new = f"{os.fspath(output)}.{os.getpid()}.tmp"
        with open(new, "wb") as file:
            file.write(report)
        os.replace(new, output)
    _say(line for line, _path, _offset in said)
    return 0 if complete else 1


if __name__ == "__main__":
    if len(sys.argv) == 1:
        print(os.path.abspath(__file__))
    else:
        sys.exit(main(sys.argv[1:]))
