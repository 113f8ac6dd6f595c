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

import os
import sys
from collections.abc import Iterable
from typing import Any

if __name__ == "__main__" and __package__ in (None, ""):
    # spark-submit runs this file by its path, and puts its folder first.
    sys.path = [place for place in sys.path if os.path.abspath(place or ".") != os.path.dirname(os.path.abspath(__file__))]

from flowsieve._errors import Error, UsageError
from flowsieve._native import DividedJob
from flowsieve._on_spark import count, export, flows, top
from flowsieve._spark import ExportOnSpark, FlowsOnSpark, Run, threads_of
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


def main(words: list[str]) -> int:
    """The program for spark-submit: the options of ``flowsieve count`` or ``flowsieve top``, and addresses."""
    from pyspark.sql import SparkSession

    words = words if words[0] in ("count", "top", "flows", "export") else ["count", *words]
    try:
        if words[0] in ("flows", "export"):
            raise UsageError(f"the rows stay in Spark: call flowsieve.spark.{words[0]} and write its data frame")
        captures, output = DividedJob.named(words)
        spark = SparkSession.builder.appName(f"flowsieve {words[0]}").getOrCreate()
        try:
            with Run(spark, Plan(words, captures, threads_of(spark)), None) as run:
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
