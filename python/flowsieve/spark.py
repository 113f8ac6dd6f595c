"""Counts, rankings, lists of flows and exports on Apache Spark, with the same answer as on one machine, to the bit.

    from flowsieve.spark import count
    counts = count(spark, "s3a://captures/2026-11-23/*.pcap.gz", element="flow", slice="1min")

`flowsieve.pieces` says how. Damage in a capture is listed with its input, and warnings, remarks and ``complete`` are those of one
machine. What the file system does not give raises, so that Spark tries again and the job fails with the name of the file, unless it may
be skipped.

Run as a program, the module prints the path of itself, for ``spark-submit``; ``count`` may be left out:

    spark-submit "$(python -m flowsieve.spark)" count --slice 1min s3a://captures/2026-11-23/*.pcap.gz
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterable
from typing import Any

if __name__ == "__main__" and __package__ in (None, ""):
    # spark-submit runs this file by its path, and puts its folder first.
    sys.path = [place for place in sys.path if os.path.abspath(place or ".") != os.path.dirname(os.path.abspath(__file__))]

from flowsieve._errors import Error, UsageError
from flowsieve._native import DividedJob
from flowsieve._on_spark import count, export, flows, top
from flowsieve._spark import ExportOnSpark, FlowsOnSpark, Run, room_of_task, threads_of
from flowsieve._remote import is_remote
from flowsieve.pieces import Plan

__all__ = ["ExportOnSpark", "FlowsOnSpark", "count", "export", "flows", "top"]


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


def check_output(output: str | os.PathLike[str], files: Iterable[str]) -> None:
    """Refuses an output that is a capture, that is no regular file, or that cannot be written."""
    path = os.path.realpath(output)
    if not os.path.isdir(os.path.dirname(path)):
        raise UsageError(f"the folder of {output} does not exist; make it first")
    try:
        tempfile.TemporaryFile(dir=os.path.dirname(path)).close()
        if os.path.isfile(path):
            open(path, "ab").close()
    except OSError as error:
        raise UsageError(f"{output} cannot be written ({error.strerror}); name another file with --output") from None
    if not os.path.exists(path):
        return
    if not os.path.isfile(path):
        raise UsageError(f"{output} is no regular file; leave --output out to write to standard output")
    for file in files:
        if not is_remote(file) and os.path.exists(file) and os.path.samefile(path, file):
            raise UsageError(f"{output} is one of the captures; name another file with --output")


def write_output(output: str | os.PathLike[str], report: bytes) -> None:
    """Writes the report, whole or not at all. A link stays, and its target is replaced."""
    path = os.path.realpath(output)
    handle, new = tempfile.mkstemp(".tmp", ".flowsieve-", os.path.dirname(path))
    try:
        with open(handle, "wb") as file:
            file.write(report)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(new, os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o666 & ~mask)
        os.replace(new, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.remove(new)
        raise


def main(words: list[str]) -> int:
    """The program for spark-submit: the options of ``flowsieve count`` or ``flowsieve top``, and addresses."""
    from pyspark.sql import SparkSession

    words = words if words[0] in ("count", "top", "flows", "export") else ["count", *words]
    try:
        if words[0] in ("flows", "export"):
            raise UsageError(f"the rows stay in Spark: call flowsieve.spark.{words[0]} and write its data frame")
        captures, named = DividedJob.named(words)
        output = None if named == "-" else named
        spark = SparkSession.builder.appName(f"flowsieve {words[0]}").getOrCreate()
        try:
            plan = Plan(words, captures, threads_of(spark))
            if output is not None:
                check_output(output, plan.files)
            sentence = plan.too_large(room_of_task(spark))
            if sentence is not None:
                _say([f"flowsieve: {sentence}"])
            with Run(spark, plan, None) as run:
                report, said, complete = run.report()
        finally:
            spark.stop()
    except Error as error:
        _say([f"flowsieve: {error}"])
        return 2 if isinstance(error, UsageError) else 1
    _say(line for line, _path, _offset in said)
    if output is None:
        sys.stdout.buffer.write(report)
        sys.stdout.buffer.flush()
    else:
        try:
            write_output(output, report)
        except OSError as error:
            _say([f"flowsieve: {output}: the report cannot be written, and follows on standard output: {error.strerror}"])
            sys.stdout.buffer.write(report)
            sys.stdout.buffer.flush()
            return 1
    return 0 if complete else 1


if __name__ == "__main__":
    if len(sys.argv) == 1:
        print(os.path.abspath(__file__))
    else:
        sys.exit(main(sys.argv[1:]))
