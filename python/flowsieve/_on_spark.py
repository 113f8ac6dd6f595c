"""The commands that run on Spark as functions.

scripts/python-api writes this file from the declarations of the program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from ._results import Counts, Top
from ._run import Paths, Progress, StrPath, Value, Values
from ._spark import ExportOnSpark, FlowsOnSpark, counted, exported, listed, ranked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def count(
    spark: SparkSession,
    captures: Paths,
    *,
    input_format: Literal["auto", "tsh"] = "auto",
    dnstap_type: Value | None = None,
    where: Value | None = None,
    from_: Value | None = None,
    to: Value | None = None,
    timezone: Value = "UTC",
    tunnel: Literal["outer", "inner"] = "outer",
    element: Literal["host-pair", "flow", "dns", "src", "dst"] | str = "host-pair",
    undirected: bool = False,
    queries_only: bool = False,
    dns_port: Values | None = None,
    slice: Value = "1s",
    align: Literal["epoch", "first"] = "epoch",
    every: Value | None = None,
    filter: Literal["subset", "bloom", "mdbf", "cmdbf", "cmdbf-xor", "cmdbf-xor-independent", "cartesian", "bfm", "cbfm", "wcbfm", "counting", "split-counting", "scalable", "dleft", "cuckoo", "exact", "hll", "ell"] | None = None,
    continue_: StrPath | None = None,
    memory: Value | None = None,
    fpr: Value | None = None,
    expect: Values | None = None,
    want: Values | None = None,
    cuts: Value | None = None,
    weights: Value | None = None,
    seed: Value = "0",
    shards: Value | None = None,
    no_exact: bool = False,
    exact_limit: Value = "4GiB",
    threads: Value | None = None,
    html: StrPath | None = None,
    svg: StrPath | None = None,
    od: Value | None = None,
    od_out: StrPath | None = None,
    anonymize: bool = False,
    anonymize_key: StrPath | None = None,
    top: Value | None = None,
    save_filter: StrPath | None = None,
    manifest: StrPath | None = None,
    task_bytes: int | None = None,
    partitions: int | None = None,
    storage_options: dict[str, Any] | None = None,
    skip_unreadable: bool = False,
    progress: Progress = None,
) -> Counts:
    """Counts as `flowsieve.count` does, on a cluster.

    Args:
        spark: The session.
        captures: Paths that all workers see, or addresses such as ``s3a://`` that fsspec opens; patterns and directories too.
        input_format: How inputs are read; tsh has no mark and must be named. Default: auto.
        dnstap_type: Which messages of dnstap files count: client, auth, resolver and more.
        where: Only packets that match a capture filter, such as 'tcp port 80 and net 10.0.0.0/8'.
        from_: Only packets from this time on, such as 2014-01-01T12:30, +90s or -5min.
        to: Only packets before this time.
        timezone: Zone of times, such as Europe/Berlin; `local` is that of this machine. Default: UTC.
        tunnel: Which IP header of tunnelled packets counts. Default: outer.
        element: What is counted. Default: host-pair.
        undirected: Count both directions as one.
        queries_only: Count DNS queries only.
        dns_port: Another DNS port besides 53.
        slice: Width of a time slice, such as 500ms or 5min, or `all`. Default: 1s.
        align: Where slices begin. Default: epoch.
        every: Print a row this often, each for the --slice before it.
        filter: The structure that counts; those of the papers: `flowsieve help structures` [default: subset]
        continue_: Go on from the filter that an earlier count saved.
        memory: Memory of the filter for one slice, such as 64KiB [default: 256KiB]
        fpr: Size the filter for this false-positive rate at --expect elements.
        expect: Distinct elements expected per slice; with --want also src=5k for one combination.
        want: A combination that queries ask for, and its weight, such as src,dst:3 or all.
        cuts: Your own cuts of CBFM and WCBFM, such as '1,3;1,2' or 'src,domain;dst,domain'.
        weights: Your own weights of WCBFM, one per attribute, such as 1,2,1.
        seed: Seed of all hash functions and of what is drawn. Default: 0.
        shards: Partitions with a filter each [default: 8; published structures, and with --want: 1]
        no_exact: Skip the exact count: memory stays small for any traffic.
        exact_limit: Memory of the exact count; a slice that needs more has none. Default: 4GiB.
        threads: Threads; results do not depend on them [default: all processors]
        html: Write a page with figures to this file.
        svg: Write the figures of that page into this directory, as SVG.
        od: Also count packets by origin and destination, by prefixes of this many bits.
        od_out: Write all of these pairs to this file, in the format of its name, such as pairs.csv.
        anonymize: Replace IP addresses by others that keep prefixes (Crypto-PAn).
        anonymize_key: The secret that the replacement follows from: a file of 32 random bytes.
        top: List this many keys with the most distinct others on the page.
        save_filter: Save the filter for `flowsieve filter`; needs --slice all.
        manifest: A file with more captures, one a line.
        task_bytes: Bytes that a task reads, or up to twice as many at the end of a file: smaller files are read
            together, larger plain pcap files are divided. Default: by size and threads, 256 MB at most.
        partitions: Reduce tasks. Default: by size, as many as Spark has threads at least.
        storage_options: Arguments of fsspec for remote files.
        skip_unreadable: A file that cannot be read is listed with its error, and its packets are missing.
        progress: ``True`` for a bar of tqdm, a bar, or a function of tasks done, 0 and all tasks so far. Default: none.

    Raises:
        UsageError: the options do not go together, or need all packets in one place.
        Error: a file is missing, or could not be read after Spark's retries.
    """
    return counted(count, locals())


def export(
    spark: SparkSession,
    captures: Paths,
    *,
    input_format: Literal["auto", "tsh"] = "auto",
    dnstap_type: Value | None = None,
    where: Value | None = None,
    from_: Value | None = None,
    to: Value | None = None,
    timezone: Value = "UTC",
    tunnel: Literal["outer", "inner"] = "outer",
    all: bool = False,
    element: Literal["host-pair", "flow", "dns", "src", "dst"] | str = "flow",
    undirected: bool = False,
    queries_only: bool = False,
    slice: Value = "1s",
    align: Literal["epoch", "first"] = "epoch",
    dns_port: Values | None = None,
    memory: Value = "1GiB",
    threads: Value | None = None,
    names: Literal["flowsieve", "zeek", "ecs"] = "flowsieve",
    manifest: StrPath | None = None,
    task_bytes: int | None = None,
    partitions: int | None = None,
    storage_options: dict[str, Any] | None = None,
    skip_unreadable: bool = False,
    progress: Progress = None,
) -> ExportOnSpark:
    """Exports packets or elements as `flowsieve.export` does, on a cluster.

    The rows stay in Spark: `ExportOnSpark.rows` is a data frame.

    Args:
        spark: The session.
        captures: Paths that all workers see, or addresses such as ``s3a://`` that fsspec opens; patterns and directories too.
        input_format: How inputs are read; tsh has no mark and must be named. Default: auto.
        dnstap_type: Which messages of dnstap files count: client, auth, resolver and more.
        where: Only packets that match a capture filter, such as 'tcp port 80 and net 10.0.0.0/8'.
        from_: Only packets from this time on, such as 2014-01-01T12:30, +90s or -5min.
        to: Only packets before this time.
        timezone: Zone of times, such as Europe/Berlin; `local` is that of this machine. Default: UTC.
        tunnel: Which IP header of tunnelled packets counts. Default: outer.
        all: Export each packet, and not each element once per slice.
        element: What an element is. Default: flow.
        undirected: Export both directions as one, with the ends of its first packet.
        queries_only: Export DNS queries only, with `--element dns`.
        slice: Width of a time slice, such as 500ms or 5min, or `all`. Default: 1s.
        align: Where slices begin. Default: epoch.
        dns_port: Another DNS port besides 53.
        memory: Memory of open slices; when it is full, elements are written early. Default: 1GiB.
        threads: Threads; results do not depend on them [default: all processors]
        names: Whose names the fields have. Default: flowsieve.
        manifest: A file with more captures, one a line.
        task_bytes: Bytes that a task reads, or up to twice as many at the end of a file: smaller files are read
            together, larger plain pcap files are divided. Default: by size and threads, 256 MB at most.
        partitions: Reduce tasks. Default: by size, as many as Spark has threads at least.
        storage_options: Arguments of fsspec for remote files.
        skip_unreadable: A file that cannot be read is listed with its error, and its packets are missing.
        progress: ``True`` for a bar of tqdm, a bar, or a function of tasks done, 0 and all tasks so far. Default: none.

    Raises:
        UsageError: the options do not go together, or need all packets in one place.
        Error: a file is missing, or could not be read after Spark's retries.
    """
    return exported(export, locals())


def flows(
    spark: SparkSession,
    captures: Paths,
    *,
    input_format: Literal["auto", "tsh"] = "auto",
    dnstap_type: Value | None = None,
    where: Value | None = None,
    from_: Value | None = None,
    to: Value | None = None,
    timezone: Value = "UTC",
    tunnel: Literal["outer", "inner"] = "outer",
    bidirectional: bool = False,
    idle: Value | None = None,
    active: Value | None = None,
    unique: bool = False,
    number: Value | None = None,
    sort: Literal["start", "bytes", "packets", "duration"] = "start",
    dns_port: Values | None = None,
    memory: Value = "1GiB",
    threads: Value | None = None,
    names: Literal["flowsieve", "zeek", "ecs"] = "flowsieve",
    anonymize: bool = False,
    anonymize_key: StrPath | None = None,
    manifest: StrPath | None = None,
    task_bytes: int | None = None,
    partitions: int | None = None,
    storage_options: dict[str, Any] | None = None,
    skip_unreadable: bool = False,
    progress: Progress = None,
) -> FlowsOnSpark:
    """Lists flows as `flowsieve.flows` does, on a cluster.

    The list stays in Spark: `FlowsOnSpark.flows` is a data frame.

    Args:
        spark: The session.
        captures: Paths that all workers see, or addresses such as ``s3a://`` that fsspec opens; patterns and directories too.
        input_format: How inputs are read; tsh has no mark and must be named. Default: auto.
        dnstap_type: Which messages of dnstap files count: client, auth, resolver and more.
        where: Only packets that match a capture filter, such as 'tcp port 80 and net 10.0.0.0/8'.
        from_: Only packets from this time on, such as 2014-01-01T12:30, +90s or -5min.
        to: Only packets before this time.
        timezone: Zone of times, such as Europe/Berlin; `local` is that of this machine. Default: UTC.
        tunnel: Which IP header of tunnelled packets counts. Default: outer.
        bidirectional: Both directions are one flow, its originator the sender of its first packet.
        idle: A flow ends when no packet comes for longer than this, such as 15s [default: never]
        active: A flow is cut when it goes on for longer than this, such as 5min [default: never]
        unique: Print each flow once, as soon as it is seen, by its first packet.
        number: List this many flows, the first in the order of --sort [default: all]
        sort: Order of the list: start, bytes, packets or duration. Default: start.
        dns_port: Another DNS port besides 53.
        memory: Memory; when it is full, the flow without packets for longest ends early. Default: 1GiB.
        threads: Threads; results do not depend on them [default: all processors]
        names: Whose names the fields have; not for tables. Default: flowsieve.
        anonymize: Replace IP addresses by others that keep prefixes (Crypto-PAn).
        anonymize_key: The secret that the replacement follows from: a file of 32 random bytes.
        manifest: A file with more captures, one a line.
        task_bytes: Bytes that a task reads, or up to twice as many at the end of a file: smaller files are read
            together, larger plain pcap files are divided. Default: by size and threads, 256 MB at most.
        partitions: Reduce tasks. Default: by size, as many as Spark has threads at least.
        storage_options: Arguments of fsspec for remote files.
        skip_unreadable: A file that cannot be read is listed with its error, and its packets are missing.
        progress: ``True`` for a bar of tqdm, a bar, or a function of tasks done, 0 and all tasks so far. Default: none.

    Raises:
        UsageError: the options do not go together, or need all packets in one place.
        Error: a file is missing, or could not be read after Spark's retries.
    """
    return listed(flows, locals())


def top(
    spark: SparkSession,
    captures: Paths,
    *,
    input_format: Literal["auto", "tsh"] = "auto",
    dnstap_type: Value | None = None,
    where: Value | None = None,
    from_: Value | None = None,
    to: Value | None = None,
    timezone: Value = "UTC",
    tunnel: Literal["outer", "inner"] = "outer",
    by: Values = "src",
    distinct: Values | None = None,
    number: Value | None = None,
    sort: Literal["distinct", "packets", "bytes"] = "distinct",
    min: Value | None = None,
    queries_only: bool = False,
    dns_port: Values | None = None,
    slice: Value = "all",
    align: Literal["epoch", "first"] = "epoch",
    memory: Value = "1MiB",
    seed: Value = "0",
    no_exact: bool = False,
    exact_limit: Value = "4GiB",
    threads: Value | None = None,
    html: StrPath | None = None,
    svg: StrPath | None = None,
    manifest: StrPath | None = None,
    task_bytes: int | None = None,
    partitions: int | None = None,
    storage_options: dict[str, Any] | None = None,
    skip_unreadable: bool = False,
    progress: Progress = None,
) -> Top:
    """Ranks as `flowsieve.top` does, on a cluster.

    One task ranks a slice; of ``slice="all"`` it takes filter and summary, and others the exact count.

    Args:
        spark: The session.
        captures: Paths that all workers see, or addresses such as ``s3a://`` that fsspec opens; patterns and directories too.
        input_format: How inputs are read; tsh has no mark and must be named. Default: auto.
        dnstap_type: Which messages of dnstap files count: client, auth, resolver and more.
        where: Only packets that match a capture filter, such as 'tcp port 80 and net 10.0.0.0/8'.
        from_: Only packets from this time on, such as 2014-01-01T12:30, +90s or -5min.
        to: Only packets before this time.
        timezone: Zone of times, such as Europe/Berlin; `local` is that of this machine. Default: UTC.
        tunnel: Which IP header of tunnelled packets counts. Default: outer.
        by: Keys to rank, such as src, dst/24 or src,dst. Default: src.
        distinct: Fields to count for each key, such as dst or dst-port [default: dst; src if dst is in the key]
        number: Keys listed per slice at most [default: 20; with --min: all]
        sort: Rank by distinct, packets or bytes. Default: distinct.
        min: List keys with at least this many distinct others [default: 2; 1 with --sort bytes or packets]
        queries_only: Count DNS queries only.
        dns_port: Another DNS port besides 53.
        slice: Width of a time slice, such as 500ms or 5min, or `all`. Default: all.
        align: Where slices begin. Default: epoch.
        memory: Memory of one slice, half for the filter and half for the keys. Default: 1MiB.
        seed: Seed of all hash functions and of what is drawn. Default: 0.
        no_exact: Skip the exact count: memory stays small for any traffic.
        exact_limit: Memory of the exact count; a slice that needs more has none. Default: 4GiB.
        threads: Threads; results do not depend on them [default: all processors]
        html: Write a page with figures to this file.
        svg: Write the figures of that page into this directory, as SVG.
        manifest: A file with more captures, one a line.
        task_bytes: Bytes that a task reads, or up to twice as many at the end of a file: smaller files are read
            together, larger plain pcap files are divided. Default: by size and threads, 256 MB at most.
        partitions: Reduce tasks. Default: by size, as many as Spark has threads at least.
        storage_options: Arguments of fsspec for remote files.
        skip_unreadable: A file that cannot be read is listed with its error, and its packets are missing.
        progress: ``True`` for a bar of tqdm, a bar, or a function of tasks done, 0 and all tasks so far. Default: none.

    Raises:
        UsageError: the options do not go together, or need all packets in one place.
        Error: a file is missing, or could not be read after Spark's retries.
    """
    return ranked(top, locals())
