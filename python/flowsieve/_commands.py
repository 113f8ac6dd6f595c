"""The commands of the program as functions.

scripts/python-api writes this file from the declarations of the program."""

from __future__ import annotations

from typing import Literal, overload

from ._results import (
    Comparison,
    Counts,
    Dedup,
    Export,
    Flows,
    LiveCounts,
    Plan,
    Reproduction,
    Rows,
    Text,
    Top,
)
from ._run import Command, Paths, Progress, StrPath, Value, Values, command_line


def compare(
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
    filter: Values | None = None,
    pair: Values | None = None,
    each: bool = False,
    memory: Values = "auto",
    setting: Literal["total", "array"] = "total",
    bits: Values | None = None,
    seeds: Value = "auto",
    margin: Values = "0.1%,5%",
    queries: bool = False,
    want: Values | None = None,
    whole_slices: bool = False,
    expect: Value | None = None,
    k: Value = "formula",
    seed: Value = "0",
    exact_limit: Value = "4GiB",
    threads: Value | None = None,
    counts: bool = False,
    by: Literal["size", "load"] | None = None,
    html: StrPath | None = None,
    svg: StrPath | None = None,
    od: Value | None = None,
    od_out: StrPath | None = None,
    anonymize: bool = False,
    anonymize_key: StrPath | None = None,
    progress: Progress = None,
) -> Comparison:
    """Compare structures on a capture at equal memory, against the exact answer.

    The capture is decoded once, and every structure sees all of it. The report begins with the two structures of
    --pair: which was nearer to the truth, in how many slices, and by how much. It gives, over all slices, the errors of
    the counts and the share of absent elements that each structure reports as present: values that occur but not
    together (apart), and elements that only the following slice has (next). Predicted rates come from the formulas for
    the numbers of elements found.

    Args:
        captures: Files, directories, or - for standard input.
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
        filter: Structures of `flowsieve help structures`, such as subset,mdbf; or all [default: mdbf,cmdbf,bloom]
        pair: Two structures to compare with each other [default: mdbf,cmdbf]
        each: Compare the pair on each capture, with a letter per memory.
        memory: Memory of each structure for one slice. Default: auto.
        setting: Give each structure the same memory in all, or each array the same bits. Default: total.
        bits: Bits of each array (m) with --setting array, several separated by commas [default:
            128,512,2048,8192,32768]
        seeds: Seeds of hash functions; auto is as many as it takes. Default: auto.
        margin: Differences that do not matter: points, and a share of the larger error. Default: 0.1%,5%.
        queries: Ask for absent elements too: false-positive rates.
        want: A combination that queries ask for, such as src,domain [default: the usual ones]
        whole_slices: Leave out slices that the capture covers only in part.
        expect: Distinct elements per slice [default: 95th percentile of the slices]
        k: Number of hash functions (k) of every structure: by the formula, the best, or a number. Default: formula.
        seed: Seed of all hash functions and of what is drawn. Default: 0.
        exact_limit: Memory of the exact count; a slice that needs more has none. Default: 4GiB.
        threads: Threads; results do not depend on them [default: all processors]
        counts: The count of each slice and seed too, in JSON.
        by: A table by slices of few, some and many elements (without --each), or by elements per byte.
        html: Write a page with figures to this file.
        svg: Write the figures of that page into this directory, as SVG.
        od: Also count packets by origin and destination, by prefixes of this many bits.
        od_out: Write all of these pairs to this file, in the format of its name, such as pairs.csv.
        anonymize: Replace IP addresses by others that keep prefixes (Crypto-PAn).
        anonymize_key: The secret that the replacement follows from: a file of 32 random bytes.
        progress: ``True`` for a bar of tqdm, a bar, or a function of bytes read, packets and all bytes.

    Raises:
        Error: nothing could be read or written; UsageError: the arguments do not go together.
    """
    return Comparison(Command(command_line(["compare", "--format=arrows"], compare, locals()), progress))


@overload
def count(
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
    follow: Literal[False] = False,
    html: StrPath | None = None,
    svg: StrPath | None = None,
    od: Value | None = None,
    od_out: StrPath | None = None,
    anonymize: bool = False,
    anonymize_key: StrPath | None = None,
    top: Value | None = None,
    save_filter: StrPath | None = None,
    progress: Progress = None,
) -> Counts: ...


@overload
def count(
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
    follow: Literal[True],
    html: StrPath | None = None,
    svg: StrPath | None = None,
    od: Value | None = None,
    od_out: StrPath | None = None,
    anonymize: bool = False,
    anonymize_key: StrPath | None = None,
    top: Value | None = None,
    save_filter: StrPath | None = None,
    progress: Progress = None,
) -> LiveCounts: ...


@overload
def count(
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
    follow: bool,
    html: StrPath | None = None,
    svg: StrPath | None = None,
    od: Value | None = None,
    od_out: StrPath | None = None,
    anonymize: bool = False,
    anonymize_key: StrPath | None = None,
    top: Value | None = None,
    save_filter: StrPath | None = None,
    progress: Progress = None,
) -> Counts | LiveCounts: ...


def count(
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
    follow: bool = False,
    html: StrPath | None = None,
    svg: StrPath | None = None,
    od: Value | None = None,
    od_out: StrPath | None = None,
    anonymize: bool = False,
    anonymize_key: StrPath | None = None,
    top: Value | None = None,
    save_filter: StrPath | None = None,
    progress: Progress = None,
) -> Counts | LiveCounts:
    """Count distinct host pairs, flows or DNS triples in each time slice.

    Several captures are one trace in the order of time; directories are searched for captures. Recognised by content:
    pcap, pcapng, ERF, dnstap, C-DNS, Zeek's dns.log and conn.log, Suricata's eve.json, nfdump's CSV, lists of flows as
    CSV, DNS queries as CSV (columns ts, src, dst, qname), plain or compressed by gzip, zstd, xz, bzip2 or lz4. A log of
    flows says when a flow began, not when its packets came, so a flow counts in the slice in which it began.

    Args:
        captures: Files, directories, or - for standard input.
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
        follow: Keep reading captures that grow, and new ones in directories, until interrupted.
        html: Write a page with figures to this file.
        svg: Write the figures of that page into this directory, as SVG.
        od: Also count packets by origin and destination, by prefixes of this many bits.
        od_out: Write all of these pairs to this file, in the format of its name, such as pairs.csv.
        anonymize: Replace IP addresses by others that keep prefixes (Crypto-PAn).
        anonymize_key: The secret that the replacement follows from: a file of 32 random bytes.
        top: List this many keys with the most distinct others on the page.
        save_filter: Save the filter for `flowsieve filter`; needs --slice all.
        progress: ``True`` for a bar of tqdm, a bar, or a function of bytes read, packets and all bytes.

    Raises:
        Error: nothing could be read or written; UsageError: the arguments do not go together.
    """
    return (LiveCounts if follow else Counts)(Command(command_line(["count", "--format=arrows"], count, locals()), progress))


def dedup(
    captures: Paths,
    *,
    input_format: Literal["auto", "tsh"] = "auto",
    dnstap_type: Value | None = None,
    where: Value | None = None,
    from_: Value | None = None,
    to: Value | None = None,
    timezone: Value = "UTC",
    tunnel: Literal["outer", "inner"] = "outer",
    by: Literal["packet", "frame", "retransmission", "flow"] = "packet",
    distinguish: Values | None = None,
    window: Value = "50ms",
    filter: Literal["dleft", "split-counting", "counting", "rotating"] = "rotating",
    approximate: bool = False,
    memory: Value = "64MiB",
    seed: Value | None = None,
    write: StrPath | None = None,
    dropped: StrPath | None = None,
    snaplen: Value | None = None,
    anonymize: bool = False,
    anonymize_key: StrPath | None = None,
    keep_vendors: bool = False,
    dry_run: bool = False,
    slice: Value | None = None,
    threads: Value | None = None,
    progress: Progress = None,
) -> Dedup:
    """Write captures without their duplicates.

    A packet is dropped if the same packet was seen within the window before it. Nothing else is dropped: what the
    filter takes for a repeat is looked up among 128-bit digests. Several captures become one, in order of time.

    Args:
        captures: Files, directories, or - for standard input.
        input_format: How inputs are read; tsh has no mark and must be named. Default: auto.
        dnstap_type: Which messages of dnstap files count: client, auth, resolver and more.
        where: Only packets that match a capture filter, such as 'tcp port 80 and net 10.0.0.0/8'.
        from_: Only packets from this time on, such as 2014-01-01T12:30, +90s or -5min.
        to: Only packets before this time.
        timezone: Zone of times, such as Europe/Berlin; `local` is that of this machine. Default: UTC.
        tunnel: Which IP header of tunnelled packets counts. Default: outer.
        by: What makes two packets the same. Default: packet.
        distinguish: Keep packets that differ only in this.
        window: How far back to look: a time such as 50ms, or packets such as 5p. Default: 50ms.
        filter: The filter that follows the window. Default: rotating.
        approximate: Drop what the filter takes for a repeat, without looking it up.
        memory: Memory of window and filter; a window that does not fit shrinks. Default: 64MiB.
        seed: Seed of the digests [default: random; with --approximate: 0]
        write: Capture to write, whole or not at all.
        dropped: Write the packets that are dropped to a second capture.
        snaplen: Cut the packets that are written to this many bytes, or after their headers.
        anonymize: Replace IP addresses by others that keep prefixes (Crypto-PAn).
        anonymize_key: The secret that the replacement follows from: a file of 32 random bytes.
        keep_vendors: Keep the vendor in MAC addresses: replace only their last three bytes.
        dry_run: Report only.
        slice: Also report each time slice of this width, such as 1s.
        threads: Threads; results do not depend on them [default: all processors]
        progress: ``True`` for a bar of tqdm, a bar, or a function of bytes read, packets and all bytes.

    Raises:
        Error: nothing could be read or written; UsageError: the arguments do not go together.
    """
    return Dedup(Command(command_line(["dedup", "--format=arrows"], dedup, locals()), progress))


def export(
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
    progress: Progress = None,
) -> Export:
    """Export packets, or elements once per slice, as rows for databases and data frames.

    A row is a distinct element of a time slice, with the time of its first packet, its packets and its bytes there; or
    a packet (--all). Packets are in the order of the trace; elements are listed slice by slice, in the order in which
    each was first seen. Packets without a readable IP header have no row and are tallied by reason. Several captures
    are one trace in the order of time; formats and directories are those of `flowsieve count`.

    Args:
        captures: Files, directories, or - for standard input.
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
        progress: ``True`` for a bar of tqdm, a bar, or a function of bytes read, packets and all bytes.

    Raises:
        Error: nothing could be read or written; UsageError: the arguments do not go together.
    """
    return Export(Command(command_line(["export", "--format=arrows"], export, locals()), progress))


def filter_info(
    files: Paths,
    *,
    timezone: Value = "UTC",
    progress: Progress = None,
) -> Rows:
    """Say what a saved filter is and how many distinct elements it holds.

    Args:
        files: Saved filters.
        timezone: Zone of times, such as Europe/Berlin; `local` is that of this machine. Default: UTC.
        progress: ``True`` for a bar of tqdm, a bar, or a function of bytes read, packets and all bytes.

    Raises:
        Error: nothing could be read or written; UsageError: the arguments do not go together.
    """
    return Rows(Command(command_line(["filter", "info", "--format=arrows"], filter_info, locals()), progress))


def filter_query(
    file: StrPath,
    values: Values,
    *,
    progress: Progress = None,
) -> Rows:
    """Ask a saved filter for elements, with * for any value.

    Values are separated by commas, in the order of the element's attributes: `10.0.0.1,10.0.0.2` is a host pair,
    `10.0.0.1,10.0.0.2,6,1234,80` a flow, `192.0.2.1,192.0.2.53,www.example.com` a DNS triple. A table answers each
    question by a line with the question, a tab and one word; the other formats have the same words:

      yes      seen, or a false positive
      no       not seen, for certain (if an input of the count could not be read to its end, a
               message says so: not seen in what was read)
      apart    each value was seen, but perhaps in different elements: the filter cannot say
      unknown  the filter keeps nothing about such a question, or looks at a sample of the elements
               and not at this one: a crowded `subset` filter of a count does

    Args:
        file: A saved filter.
        values: Elements, or - to read one per line from standard input.
        progress: ``True`` for a bar of tqdm, a bar, or a function of bytes read, packets and all bytes.

    Raises:
        Error: nothing could be read or written; UsageError: the arguments do not go together.
    """
    return Rows(Command(command_line(["filter", "query", "--format=arrows"], filter_query, locals()), progress))


def filter_union(
    files: Paths,
    *,
    output: StrPath,
    progress: Progress = None,
) -> Text:
    """Unite saved filters of equal parameters into the filter of all their inputs.

    They must have been saved with the same structure, memory, seed and shards, of the same kind of element. Scalable
    filters can be united only if the union has no more links than a chain may have. If they were made with --from and
    --to, `filter info` names the earliest and the latest time, between which there may be gaps. The size of a union of
    crowded filters is known only within bounds; to know it better, count the second day with `count --continue
    monday.fsieve`.

    Args:
        files: Saved filters.
        output: Write the union to this file, whole or not at all.
        progress: ``True`` for a bar of tqdm, a bar, or a function of bytes read, packets and all bytes.

    Raises:
        Error: nothing could be read or written; UsageError: the arguments do not go together.
    """
    return Text(Command(command_line(["filter", "union"], filter_union, locals()), progress))


def filter_intersect(
    first: StrPath,
    second: StrPath,
    *,
    progress: Progress = None,
) -> Rows:
    """Count what two saved filters have in common, and what is in either.

    They must be such that `filter union` unites them. Counts are by the fill of the filters, each with its standard
    error and bounds.

    Args:
        first: A saved filter.
        second: Another one.
        progress: ``True`` for a bar of tqdm, a bar, or a function of bytes read, packets and all bytes.

    Raises:
        Error: nothing could be read or written; UsageError: the arguments do not go together.
    """
    return Rows(Command(command_line(["filter", "intersect", "--format=arrows"], filter_intersect, locals()), progress))


def flows(
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
    follow: bool = False,
    anonymize: bool = False,
    anonymize_key: StrPath | None = None,
    progress: Progress = None,
) -> Flows:
    """List flows: times, five-tuple, packets, bytes, TCP flags, names.

    A flow is all packets with the same addresses, protocol and ports; with --bidirectional those of both directions.
    Flows are listed in the order of their first packet. Without --idle and --active a flow lasts as long as the
    captures, so the number of flows is that of distinct five-tuples. Datagrams are not reassembled: only the first
    fragment has ports, and later fragments are another flow with the same addresses and protocol and with ports 0.
    Several captures are one trace in the order of time; formats and directories are those of `flowsieve count`. Records
    of logs are not packets: --unique lists them; without it they are tallied as skipped.

    Args:
        captures: Files, directories, or - for standard input.
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
        follow: Keep reading captures that grow, and new ones in directories, until interrupted.
        anonymize: Replace IP addresses by others that keep prefixes (Crypto-PAn).
        anonymize_key: The secret that the replacement follows from: a file of 32 random bytes.
        progress: ``True`` for a bar of tqdm, a bar, or a function of bytes read, packets and all bytes.

    Raises:
        Error: nothing could be read or written; UsageError: the arguments do not go together.
    """
    return Flows(Command(command_line(["flows", "--format=arrows"], flows, locals()), progress))


def generate(
    *,
    write: StrPath,
    kind: Literal["traffic", "dns"] = "traffic",
    packets: Value = "10M",
    pairs: Value | None = None,
    names: Value | None = None,
    seed: Value = "1",
    snaplen: Value | None = None,
    duration: Value = "60s",
    nanoseconds: bool = False,
    repeat: Value = "5",
    scan: Value | None = None,
    dns: Value | None = None,
    vlan: Value = "10",
    ipv6: Value = "10",
    progress: Progress = None,
) -> Text:
    """Generate a capture with known counts, the same bytes on every machine.

    Writes a classic pcap of artificial traffic: host pairs under Zipf's law, TCP, UDP, ICMP and DNS over IPv4 and IPv6,
    some in VLANs, some frames sent twice.

    Args:
        write: Capture to write, whole or not at all.
        kind: What the capture consists of. Default: traffic.
        packets: Number of packets. Default: 10M.
        pairs: Number of host pairs to draw from (with `--kind dns`: of clients) [default: in proportion to the packets]
        names: Number of DNS names to draw from [default: in proportion to the packets]
        seed: Seed of the random numbers. Default: 1.
        snaplen: Bytes kept of each frame [default: 96; with `--kind dns`: 65535]
        duration: Time that the packets are spread over. Default: 60s.
        nanoseconds: Time stamps with nanoseconds instead of microseconds.
        repeat: Share of exact repeats of a frame shortly before; they add to the shares of scans and DNS. Default: 5.
        scan: Share of packets from one host that scans the others [default: 0; none with `--kind dns`]
        dns: Share of DNS messages in ordinary traffic [default: 2; all with `--kind dns`]
        vlan: Share of host pairs that talk in a VLAN. Default: 10.
        ipv6: Share of host pairs that talk IPv6. Default: 10.
        progress: ``True`` for a bar of tqdm, a bar, or a function of bytes read, packets and all bytes.

    Raises:
        Error: nothing could be read or written; UsageError: the arguments do not go together.
    """
    return Text(Command(command_line(["generate"], generate, locals()), progress))


class Index:
    """Index an archive of captures, and search it: which capture, and when."""

    def __init__(self, archive: StrPath) -> None:
        """An index that is there, in this directory."""
        self.archive = archive

    def __repr__(self) -> str:
        return f"Index({str(self.archive)!r})"

    @classmethod
    def build(
        cls,
        archive: StrPath,
        captures: Paths,
        *,
        region: Value = "5min",
        filter: Literal["ribbon", "subset", "mdbf", "cmdbf", "cmdbf-xor", "cmdbf-xor-independent", "cartesian", "bfm", "cbfm", "wcbfm"] = "ribbon",
        global_filter: Literal["quotient", "scalable"] = "quotient",
        nodes: Paths | None = None,
        dns_port: Values | None = None,
        memory: Value = "256MiB",
        where: Value | None = None,
        from_: Value | None = None,
        to: Value | None = None,
        timezone: Value = "UTC",
        progress: Progress = None,
    ) -> Index:
        """Make an index of captures.

        The index is a directory. A build commits about every second. If it is interrupted, what was committed stays,
        and `flowsieve index add` continues with the rest. Logs are indexed like captures.

        Args:
            archive: Directory of the index, new or empty.
            captures: Captures, or directories of captures.
            region: Length of a region; flows that last longer are cut. Default: 5min.
            filter: Structure of the regions' filters. Default: ribbon.
            global_filter: Structure of the global level, which says in which segments of the index a value may be.
                Default: quotient.
            nodes: Storage directories, new or empty, over which regions are spread [default: in the index]
            dns_port: Another DNS port besides 53.
            memory: Memory for the flows of a capture; with less, long flows are in more parts. Default: 256MiB.
            where: Only packets that match a capture filter, such as 'tcp port 80 and net 10.0.0.0/8'.
            from_: Only packets from this time on, such as 2014-01-01T12:30, +90s or -5min.
            to: Only packets before this time.
            timezone: Zone of times, such as Europe/Berlin; `local` is that of this machine. Default: UTC.
            progress: ``True`` for a bar of tqdm, a bar, or a function of bytes read, packets and all bytes.

        Raises:
            Error: nothing could be read or written; UsageError: the arguments do not go together.
        """
        Text(Command(command_line(["index", "build"], Index.build, locals()), progress))
        return cls(archive)

    def add(
        self,
        captures: Paths,
        *,
        memory: Value = "256MiB",
        where: Value | None = None,
        from_: Value | None = None,
        to: Value | None = None,
        timezone: Value = "UTC",
        progress: Progress = None,
    ) -> Text:
        """Add captures to an index; what is in it already is skipped.

        Captures are recognised by their content, so one that was moved is not indexed again, and one whose content
        changed is.

        Args:
            captures: Captures, or directories of captures.
            memory: Memory for the flows of a capture; with less, long flows are in more parts. Default: 256MiB.
            where: Only packets that match a capture filter, such as 'tcp port 80 and net 10.0.0.0/8'.
            from_: Only packets from this time on, such as 2014-01-01T12:30, +90s or -5min.
            to: Only packets before this time.
            timezone: Zone of times, such as Europe/Berlin; `local` is that of this machine. Default: UTC.
            progress: ``True`` for a bar of tqdm, a bar, or a function of bytes read, packets and all bytes.

        Raises:
            Error: nothing could be read or written; UsageError: the arguments do not go together.
        """
        return Text(Command(command_line(["index", "add"], Index.add, locals()), progress))

    def search(
        self,
        *,
        src: Value | None = None,
        dst: Value | None = None,
        host: Value | None = None,
        dst_port: Value | None = None,
        port: Value | None = None,
        domain: Value | None = None,
        from_: Value | None = None,
        to: Value | None = None,
        write: StrPath | None = None,
        where: Value | None = None,
        anonymize: bool = False,
        anonymize_key: StrPath | None = None,
        keep_vendors: bool = False,
        explain: bool = False,
        timezone: Value = "UTC",
        progress: Progress = None,
    ) -> Rows:
        """Search an index: captures, regions, times and flows that match.

        All conditions must hold at once. A flow matches if its packets in either direction match; its time runs from
        its first packet to its last. With --domain the DNS questions are searched: the source is the client, the
        destination the server, and ports are the server's. As with grep, the exit code is 1 if there is no answer.

        Args:
            src: Sender, such as 10.1.2.3 or 10.0.0.0/8.
            dst: Receiver.
            host: Sender or receiver.
            dst_port: Port of the receiver, such as 53 or https.
            port: Port of either.
            domain: Name in DNS messages: www.example.com, or *.example.com for all below.
            from_: Earliest time, such as 2014-01-01 or 2014-01-01T12:30:00Z.
            to: Latest time (exclusive).
            write: Write the matching packets to this capture; captures are merged by time.
            where: Write only packets that match a capture filter, too, such as 'greater 1000 and not arp'.
            anonymize: Replace IP addresses by others that keep prefixes (Crypto-PAn).
            anonymize_key: The secret that the replacement follows from: a file of 32 random bytes.
            keep_vendors: Keep the vendor in MAC addresses: replace only their last three bytes.
            explain: Say what each level of the index ruled out; JSON always does.
            timezone: Zone of times, such as Europe/Berlin; `local` is that of this machine. Default: UTC.
            progress: ``True`` for a bar of tqdm, a bar, or a function of bytes read, packets and all bytes.

        Raises:
            Error: nothing could be read or written; UsageError: the arguments do not go together.
        """
        return Rows(Command(command_line(["index", "search", "--format=arrows"], Index.search, locals()), progress))

    def drop(
        self,
        captures: Paths,
        *,
        progress: Progress = None,
    ) -> Text:
        """Remove captures from an index; the captures themselves stay.

        The captures need not exist any more. Their regions are removed, and the global filters forget their values.

        Args:
            captures: Captures, or directories of captures.
            progress: ``True`` for a bar of tqdm, a bar, or a function of bytes read, packets and all bytes.

        Raises:
            Error: nothing could be read or written; UsageError: the arguments do not go together.
        """
        return Text(Command(command_line(["index", "drop"], Index.drop, locals()), progress))

    def verify(
        self,
        *,
        progress: Progress = None,
    ) -> Rows:
        """Check every file of an index, and that filters hold what the lists hold.

        Args:
            progress: ``True`` for a bar of tqdm, a bar, or a function of bytes read, packets and all bytes.

        Raises:
            Error: nothing could be read or written; UsageError: the arguments do not go together.
        """
        return Rows(Command(command_line(["index", "verify", "--format=arrows"], Index.verify, locals()), progress))

    def repair(
        self,
        *,
        memory: Value = "256MiB",
        progress: Progress = None,
    ) -> Text:
        """Index damaged captures again, and rebuild damaged filters.

        Each capture whose files in the index are damaged is dropped and added again in one step, so it must still be
        there. Filters are made again from the records.

        Args:
            memory: Memory for the flows of a capture; with less, long flows are in more parts. Default: 256MiB.
            progress: ``True`` for a bar of tqdm, a bar, or a function of bytes read, packets and all bytes.

        Raises:
            Error: nothing could be read or written; UsageError: the arguments do not go together.
        """
        return Text(Command(command_line(["index", "repair"], Index.repair, locals()), progress))

    def adopt(
        self,
        *,
        nodes: Paths | None = None,
        progress: Progress = None,
    ) -> Text:
        """Tell an index that was moved or copied which directories are its nodes.

        Nothing is written to or deleted from a directory without the mark of the index. Nodes that are inside the
        directory of the index move with it; others have to be named after a move, and copied and named after a copy.

        Args:
            nodes: Directories of all nodes, in the order in which they were named to `index build`.
            progress: ``True`` for a bar of tqdm, a bar, or a function of bytes read, packets and all bytes.

        Raises:
            Error: nothing could be read or written; UsageError: the arguments do not go together.
        """
        return Text(Command(command_line(["index", "adopt"], Index.adopt, locals()), progress))

    def stats(
        self,
        *,
        captures: bool = False,
        timezone: Value = "UTC",
        progress: Progress = None,
    ) -> Rows:
        """Show what an index holds and how large it is.

        Args:
            captures: List the captures as well.
            timezone: Zone of times, such as Europe/Berlin; `local` is that of this machine. Default: UTC.
            progress: ``True`` for a bar of tqdm, a bar, or a function of bytes read, packets and all bytes.

        Raises:
            Error: nothing could be read or written; UsageError: the arguments do not go together.
        """
        return Rows(Command(command_line(["index", "stats", "--format=arrows"], Index.stats, locals()), progress))


def plan(
    *,
    element: Literal["host-pair", "flow", "dns", "src", "dst"] | str = "host-pair",
    undirected: bool = False,
    queries_only: bool = False,
    dns_port: Values | None = None,
    attributes: Value | None = None,
    expect: Values | None = None,
    known: Value = "1",
    sample: Paths | None = None,
    input_format: Literal["auto", "tsh"] = "auto",
    dnstap_type: Value | None = None,
    where: Value | None = None,
    from_: Value | None = None,
    to: Value | None = None,
    timezone: Value = "UTC",
    tunnel: Literal["outer", "inner"] = "outer",
    exact_limit: Value = "4GiB",
    want: Values | None = None,
    cuts: Value | None = None,
    weights: Value | None = None,
    memory: Value | None = None,
    fpr: Value | None = None,
    attribute_fpr: Value | None = None,
    filter: Values | None = None,
    progress: Progress = None,
) -> Plan:
    """Plan a filter: for every structure its parameters, memory and false-positive rate.

    A plan is for a mixture of queries: combinations of attributes (--want) with weights. It predicts false-positive
    rates for combinations that do not occur; see --known. For CBFM and WCBFM it searches for the cuts and weights with
    the lowest weighted rate. Combinations that no wanted one contains are cut. If at most 6894 families of cuts remain
    (always with up to five attributes), all are tried; otherwise a search with bounded work starts from several
    families and may miss the best one (--cuts names another one). The weights are never worse than equal ones.

    Args:
        element: What is counted. Default: host-pair.
        undirected: Count both directions as one.
        queries_only: Count DNS queries only.
        dns_port: Another DNS port besides 53.
        attributes: Elements of this many attributes, named 1, 2, 3 and so on.
        expect: Distinct elements, such as 100k; src=5k for one combination; max for as many as fit.
        known: Share of an absent element's values that occur in other elements. Default: 1.
        sample: A capture, as one slice, on which numbers and spread are measured.
        input_format: How inputs are read; tsh has no mark and must be named. Default: auto.
        dnstap_type: Which messages of dnstap files count: client, auth, resolver and more.
        where: Only packets that match a capture filter, such as 'tcp port 80 and net 10.0.0.0/8'.
        from_: Only packets from this time on, such as 2014-01-01T12:30, +90s or -5min.
        to: Only packets before this time.
        timezone: Zone of times, such as Europe/Berlin; `local` is that of this machine. Default: UTC.
        tunnel: Which IP header of tunnelled packets counts. Default: outer.
        exact_limit: Memory of the exact count; a slice that needs more has none. Default: 4GiB.
        want: A combination that queries ask for, and its weight, such as src,dst:3 or all.
        cuts: Your own cuts of CBFM and WCBFM, such as '1,3;1,2' or 'src,domain;dst,domain'.
        weights: Your own weights of WCBFM, one per attribute, such as 1,2,1.
        memory: Memory of the filter [default: 256KiB]
        fpr: Weighted false-positive rate instead, in as little memory as possible.
        attribute_fpr: Rate of single attributes instead, by the rule of the CBFM paper's tables.
        filter: Only these structures of `flowsieve help structures`, such as mdbf,cmdbf [default: all but the variants
            of cmdbf]
        progress: ``True`` for a bar of tqdm, a bar, or a function of bytes read, packets and all bytes.

    Raises:
        Error: nothing could be read or written; UsageError: the arguments do not go together.
    """
    return Plan(Command(command_line(["plan", "--format=arrows"], plan, locals()), progress))


def reproduce(
    names: Values | None = None,
    *,
    list: bool = False,
    full_scale: bool = False,
    capture: Paths | None = None,
    seed: Value = "1",
    threads: Value | None = None,
    markdown: StrPath | None = None,
    html: StrPath | None = None,
    svg: StrPath | None = None,
    machine: Value | None = None,
    progress: Progress = None,
) -> Reproduction:
    """Recompute the tables and figures of the papers that the filters come from.

    For each figure: what the paper prints, what the formula says, what is measured on the filters of this program with
    its standard error, and a verdict. Everything but times follows from the seed.

    Experiments on traffic take captures from --capture, or from the directory in the environment variable
    `FLOWSIEVE_TRACES`; without both they generate traffic and say so. The dictionary takes its words from the file in
    `FLOWSIEVE_WORDS` (one per line); without it, it makes words up and says so.

    Args:
        names: What to recompute [default: all]
        list: List the experiments and do nothing.
        full_scale: Sizes as published everywhere: Fig. 7 of the CBFM paper with 16 MB and 5 million elements.
        capture: A capture, or a directory of captures, for the experiments on traffic.
        seed: Seed of all hash functions and of what is drawn. Default: 1.
        threads: Threads; results do not depend on them [default: all processors]
        markdown: Write them as a Markdown page as well, its figures as SVG in the folder `figures` beside it.
        html: Write a page with figures to this file.
        svg: Write the figures of that page into this directory, as SVG.
        machine: The machine's name in the page, for its times [default: its processor and system]
        progress: ``True`` for a bar of tqdm, a bar, or a function of bytes read, packets and all bytes.

    Raises:
        Error: nothing could be read or written; UsageError: the arguments do not go together.
    """
    return Reproduction(Command(command_line(["reproduce", "--format=arrows"], reproduce, locals()), progress))


def top(
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
    progress: Progress = None,
) -> Top:
    """Rank hosts, ports or names by how many distinct others each has.

    Which sources contact the most destinations (scanners), which destinations the most sources (victims), who tries the
    most ports, which domains have the most names. A Bloom filter removes repeats, and a summary of bounded size ranks
    the rest. Without options: sources by distinct destinations, over the whole trace. Several captures are one trace in
    the order of time; formats and directories are those of `flowsieve count`.

    Args:
        captures: Files, directories, or - for standard input.
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
        progress: ``True`` for a bar of tqdm, a bar, or a function of bytes read, packets and all bytes.

    Raises:
        Error: nothing could be read or written; UsageError: the arguments do not go together.
    """
    return Top(Command(command_line(["top", "--format=arrows"], top, locals()), progress))
