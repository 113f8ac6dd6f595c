"""The same count on Apache Spark, with the same answer to the bit.

    from flowsieve.spark import count
    counts = count(spark, "s3a://captures/2026-11-23/*.pcap.gz", element="flow", slice="1min")

Three stages: captures are read in pieces and give the distinct elements of each slice and shard (map); these go to one place a
shard (shuffle); there the filter and the exact set count them (reduce). Each step gives the same bytes when Spark runs it again.

Damage in a capture is listed with its input, as on one machine. What the file system does not give raises, so that Spark tries
again and the job fails with the name of the file; there is no partial answer.

Run as a program, the module prints the path of itself, for ``spark-submit``:

    spark-submit "$(python -m flowsieve.spark)" --slice 1min s3a://captures/2026-11-23/*.pcap.gz
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if __name__ == "__main__" and __package__ in (None, ""):
    # spark-submit runs this file by its path, and puts its folder first.
    sys.path = [place for place in sys.path if os.path.abspath(place or ".") != os.path.dirname(os.path.abspath(__file__))]

from flowsieve._divided import BUDGET, TASK_BYTES, DividedCount, Share, counts_of, words_of
from flowsieve._errors import Error, UsageError
from flowsieve._native import CountJob
from flowsieve._results import Counts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Slice, shard (-1: what became of a piece), and the bytes.
_PARTS = "slice long, shard int, part binary"
_TALLIES = "tally binary"
#: Bytes of a batch of rows on its way from Python to Spark.
_BATCH_BYTES = 32 << 20
#: Rows that Spark puts into a batch: a part has at most some megabytes, and a batch at most two gigabytes.
_BATCH_ROWS = "64"


def count(
    spark: SparkSession,
    captures: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
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
    named = [captures] if isinstance(captures, (str, os.PathLike)) else list(captures)
    if manifest is not None:
        with open(manifest, encoding="utf-8") as lines:
            named += [line.strip() for line in lines if line.strip()]
    divided = DividedCount(words_of(options), named, task_bytes, storage_options)
    return counts_of(_run(spark, divided, skip_unreadable, partitions))


def _run(spark: SparkSession, divided: DividedCount, skip_unreadable: bool, partitions: int | None) -> bytes:
    """The report of a count, made on the cluster."""
    share = divided.share(skip_unreadable)
    settings = {"spark.sql.execution.arrow.maxRecordsPerBatch": _BATCH_ROWS}
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    kept: list[DataFrame] = []
    try:
        inputs: list[bytes] = []
        pieces: list[str] | None = None
        while pieces is None or pieces:
            parts = _map(spark, share, divided.tasks(pieces)).persist(_disk())
            kept.append(parts)
            inputs += [bytes(row.part) for row in parts.filter("shard = -1").select("part").collect()]
            pieces = divided.join(inputs)
        tallies = _reduce(spark, share, kept, divided.job.table(), partitions)
        return divided.report([bytes(row.tally) for row in tallies.collect()])
    except Exception as error:
        raise _explained(error) from error
    finally:
        for parts in kept:
            parts.unpersist()
        for name, old in before.items():
            spark.conf.unset(name) if old is None else spark.conf.set(name, old)


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
    spark: SparkSession, share: Share, maps: list[DataFrame], table: bytes, partitions: int | None
) -> DataFrame:
    """The tallies of all shards of slices."""

    def reduce(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        count = share.shards(table)
        tallies: list[bytes] = []
        place: tuple[int, int] | None = None
        parts: list[bytes] = []
        for batch in batches:
            rows = zip(*(column.to_pylist() for column in batch.columns))
            for slice_, shard, part in rows:
                if place is not None and place != (slice_, shard):
                    tallies.append(count(*place, parts))
                    parts = []
                place = (slice_, shard)
                parts.append(part)
        if place is not None:
            tallies.append(count(*place, parts))
        if tallies:
            yield pyarrow.RecordBatch.from_arrays([pyarrow.array(tallies, pyarrow.binary())], names=["tally"])

    parts = maps[0]
    for more in maps[1:]:
        parts = parts.unionAll(more)
    if partitions is None:
        partitions = 4 * _threads(spark)
    shuffled = parts.filter("shard >= 0").repartition(partitions, "slice", "shard")
    return shuffled.sortWithinPartitions("slice", "shard").mapInArrow(reduce, _TALLIES)


def _threads(spark: SparkSession) -> int:
    """Tasks that run at once."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:
        # A session of Spark Connect does not say.
        return 4


def _explained(error: Exception) -> Exception:
    """What a worker raised, with the sentence that names the file and not Spark's traceback."""
    if isinstance(error, Error):
        return error
    text = str(error)
    for kind in ("flowsieve._errors.Error: ", "flowsieve._errors.UsageError: "):
        if kind in text:
            sentence = text.rsplit(kind, 1)[1].splitlines()[0]
            return Error(sentence, sentence.split(": ")[0])
    return error


def main(words: list[str]) -> int:
    """The program for spark-submit: the options of ``flowsieve count``, and addresses."""
    from pyspark.sql import SparkSession

    try:
        captures, output = CountJob.named(words)
        divided = DividedCount(words, captures)
        spark = SparkSession.builder.appName("flowsieve count").getOrCreate()
        try:
            report = _run(spark, divided, False, None)
        finally:
            spark.stop()
    except Error as error:
        print(f"flowsieve: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    if output is None:
        sys.stdout.buffer.write(report)
        return 0
    new = f"{os.fspath(output)}.{os.getpid()}.tmp"
    with open(new, "wb") as file:
        file.write(report)
    os.replace(new, output)
    return 0


if __name__ == "__main__":
    if len(sys.argv) == 1:
        print(os.path.abspath(__file__))
    else:
        sys.exit(main(sys.argv[1:]))
