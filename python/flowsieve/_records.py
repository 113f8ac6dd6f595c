"""What stands around the rows of a result, as dataclasses.

scripts/python-api writes this file from the declarations of the program."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

_R = TypeVar("_R")


def record(kind: type[_R], fields: dict[str, Any]) -> _R:
    """A record from the fields of a document."""
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: fields.get(name.rstrip("_")) for name in names})


@dataclasses.dataclass(frozen=True)
class Input:
    """The fields of `count.inputs`, as in docs/output.md."""

    path: str
    """as given; files of a directory by their path; a directory only if there is a problem with it."""
    container: str | None
    """its format ([names](inputs.md)), with the compression (`pcap in gzip`)."""
    packets: int
    """selected packets that were read (records of a log)."""
    left_out: int
    """packets read and not selected."""
    unread_bytes: int
    """bytes of a large pcap file that were skipped as outside the range of time; their packets are not in `left_out`
        (bytes)."""
    times_out_of_range: int
    """packets with times outside 1677 to 2262, which count at its nearer end."""
    error: str | None
    """why it was not read in full, in a sentence."""


@dataclasses.dataclass(frozen=True)
class CountParameters:
    """The fields of `count.parameters`, as in docs/output.md."""

    element: str
    """`host-pair`, `flow`, `dns`, `src`, `dst`, or the fields of a key."""
    undirected: bool
    """both directions are one element."""
    queries_only: bool
    """count DNS queries only."""
    dns_ports: list[Any]
    """DNS ports besides 53."""
    tunnel: str
    """`outer` or `inner`: which IP header counts."""
    dnstap_type: str | None
    """`--dnstap-type`; null for `auth,client`."""
    where: str | None
    """the capture filter ([capture-filters.md](capture-filters.md))."""
    from_: str | None
    """earlier packets were not selected: RFC 3339, or `+90s` after the first packet of a pipe."""
    from_ns: int | None
    """the same in nanoseconds since the epoch (ns)."""
    to: str | None
    """packets at this time or later were not selected."""
    to_ns: int | None
    """the same in nanoseconds since the epoch (ns)."""
    timezone: str | None
    """zone in which times are shown (`--timezone`)."""
    slice_ns: int | None
    """width of a slice; null for one slice over everything (ns)."""
    every_ns: int | None
    """with `--every`: time between the ends of two windows (ns)."""
    align: str
    """`epoch` or `first`: where slices begin."""
    filter: str
    """the structure that counts: a filter, `hll`, `ell`, `sliding` (with `--every`) or `exact`."""
    memory_bytes: int | None
    """memory of the structure for one slice, over all shards (bytes)."""
    probes: int | None
    """hash functions (k) of a whole element."""
    shards: int
    """partitions of the elements, each with a filter."""
    open_slices: int
    """slices open at the same time, each with filters."""
    seed: int
    """seed of the digests."""
    exact_limit_bytes: int | None
    """memory that the exact sets may take (bytes)."""
    whole_bytes: int | None
    """memory of the sample that counts all slices together (bytes)."""
    anonymized: bool
    """addresses are replaced ([privacy.md](privacy.md))."""


@dataclasses.dataclass(frozen=True)
class CountTotals:
    """The fields of `count.totals`, as in docs/output.md."""

    packets: int
    """packets read."""
    ip_packets: int
    """packets with a readable IP header."""
    elements: int
    """elements seen, repeats included."""
    skipped: dict[str, Any]
    """skipped packets by [reason](#reasons-without-an-element)."""
    late: int
    """packets that came after the row of their slice; they count, and the row was `revised`."""
    uncounted: int
    """packets in no slice: too late from a pipe, or not reached by an interrupted run."""
    interrupted: bool
    """a signal ended the run before everything was read; the result covers what was read until then."""
    complete: bool
    """all inputs were read to their ends; if not, the exit code is not 0, except for what a filter of `--continue`
        lacks."""
    slices: int
    """slices reported."""
    empty_slices_omitted: int
    """empty slices of long gaps."""
    whole: dict[str, Any] | None
    """all slices together, where an element in two slices counts once."""
    exact: int | None
    """sum over the slices: an element in two slices counts twice."""
    first: int | None
    """the same sum of `first`."""
    estimate: float | None
    """the same sum of `estimate`."""
    std_error: float | None
    """standard error of the sum of the estimates."""
    lower: int | None
    """lower bound of the sum."""
    upper: int | None
    """upper bound of the sum."""
    observed_fpr: float | None
    """over all slices (share)."""
    saturated_slices: int
    """slices that are `saturated`."""
    bounds_checked: int
    """slices with elements, bounds and an exact count."""
    bounds_held: int
    """those whose bounds enclose the exact count."""
    quantiles: dict[str, Any] | None
    """quantiles of the distinct elements per reported slice: exact, else estimated, else raw counts; null if a slice
        has none."""


@dataclasses.dataclass(frozen=True)
class FlowsParameters:
    """The fields of `flows.parameters`, as in docs/output.md."""

    bidirectional: bool
    """both directions are one flow."""
    unique: bool
    """each flow once, when its first packet is seen."""
    tunnel: str
    """`outer` or `inner`: which IP header counts."""
    dnstap_type: str | None
    """`--dnstap-type`; null for `auth,client`."""
    where: str | None
    """the capture filter ([capture-filters.md](capture-filters.md))."""
    from_: str | None
    """earlier packets were not selected: RFC 3339, or `+90s` after the first packet of a pipe."""
    from_ns: int | None
    """the same in nanoseconds since the epoch (ns)."""
    to: str | None
    """packets at this time or later were not selected."""
    to_ns: int | None
    """the same in nanoseconds since the epoch (ns)."""
    timezone: str | None
    """zone in which times are shown (`--timezone`)."""
    dns_ports: list[Any]
    """DNS ports besides 53."""
    idle_ns: int | None
    """idle timeout (ns)."""
    active_ns: int | None
    """active timeout (ns)."""
    memory_bytes: int
    """memory (bytes)."""
    anonymized: bool
    """addresses are replaced ([privacy.md](privacy.md))."""
    sort: str
    """order of the list: `start`, `bytes`, `packets` or `duration`."""
    most: int | None
    """flows listed at most (`-n`)."""


@dataclasses.dataclass(frozen=True)
class FlowsTotals:
    """The fields of `flows.totals`, as in docs/output.md."""

    packets: int
    """packets read."""
    ip_packets: int
    """those that are in flows."""
    bytes: int | None
    """their bytes from the IP header on."""
    flows: int
    """flows, also those that `-n` leaves out."""
    ended: dict[str, Any] | None
    """the same by why they ended."""
    late: int
    """flows whose first packet came later than `--delay` from a pipe: they and later ones may be parts of others."""
    exact: bool | None
    """with `--unique`: no flow is missing."""
    missed: float | None
    """with `--unique`: flows expected to be missing."""
    missed_std_error: float | None
    """its standard error."""
    dns_messages: int
    """DNS messages with a question."""
    interrupted: bool
    """a signal ended the run before everything was read; the result covers what was read until then."""
    complete: bool
    """all inputs were read to their ends; if not, the exit code is not 0, except for what a filter of `--continue`
        lacks."""
    skipped: dict[str, Any]
    """skipped packets by [reason](#reasons-without-an-element)."""


@dataclasses.dataclass(frozen=True)
class ExportParameters:
    """The fields of `export.parameters`, as in docs/output.md."""

    element: str | None
    """as for `count`; null with `--all`, where a row is a packet."""
    undirected: bool
    """both directions are one element."""
    queries_only: bool
    """count DNS queries only."""
    tunnel: str
    """`outer` or `inner`: which IP header counts."""
    dnstap_type: str | None
    """`--dnstap-type`; null for `auth,client`."""
    where: str | None
    """the capture filter ([capture-filters.md](capture-filters.md))."""
    from_: str | None
    """earlier packets were not selected: RFC 3339, or `+90s` after the first packet of a pipe."""
    from_ns: int | None
    """the same in nanoseconds since the epoch (ns)."""
    to: str | None
    """packets at this time or later were not selected."""
    to_ns: int | None
    """the same in nanoseconds since the epoch (ns)."""
    timezone: str | None
    """zone in which times are shown (`--timezone`)."""
    dns_ports: list[Any]
    """DNS ports besides 53."""
    slice_ns: int | None
    """width of a slice; null for one slice over everything (ns)."""
    align: str | None
    """`epoch` or `first`: where slices begin."""
    memory_bytes: int | None
    """memory of the elements of open slices (bytes)."""


@dataclasses.dataclass(frozen=True)
class ExportTotals:
    """The fields of `export.totals`, as in docs/output.md."""

    packets: int
    """packets read."""
    rows: int
    """rows written."""
    row_packets: int
    """packets in the rows."""
    bytes: int
    """their bytes from the IP header on."""
    slices: int
    """slices with elements."""
    early: int
    """rows written before their slice was closed, because the memory was full."""
    late: int
    """rows of late packets from a pipe."""
    interrupted: bool
    """a signal ended the run before everything was read; the result covers what was read until then."""
    complete: bool
    """all inputs were read to their ends; if not, the exit code is not 0, except for what a filter of `--continue`
        lacks."""
    skipped: dict[str, Any]
    """skipped packets by [reason](#reasons-without-an-element)."""


@dataclasses.dataclass(frozen=True)
class DedupParameters:
    """The fields of `dedup.parameters`, as in docs/output.md."""

    by: str
    """`packet`, `frame`, `retransmission` or `flow`."""
    tunnel: str
    """`outer` or `inner`: which IP packet of a frame is compared."""
    where: str | None
    """the capture filter ([capture-filters.md](capture-filters.md))."""
    from_: str | None
    """earlier packets were not selected: RFC 3339, or `+90s` after the first packet of a pipe."""
    from_ns: int | None
    """the same in nanoseconds since the epoch (ns)."""
    to: str | None
    """packets at this time or later were not selected."""
    to_ns: int | None
    """the same in nanoseconds since the epoch (ns)."""
    timezone: str | None
    """zone in which times are shown (`--timezone`)."""
    distinguish: dict[str, Any] | None
    """what counts as a difference."""
    window_ns: int | None
    """width of a window of time (ns)."""
    window_packets: int | None
    """width of a window of packets."""
    filter: str
    """the filter that follows the window."""
    approximate: bool
    """`--approximate`."""
    memory_bytes: int
    """memory that window and filter may take (bytes)."""
    slice_ns: int | None
    """width of a slice (ns)."""
    snap_bytes: int | None
    """bytes to which written packets are cut (bytes)."""
    headers_only: bool
    """written packets are cut behind their headers."""
    anonymized: bool
    """addresses are replaced ([privacy.md](privacy.md))."""


@dataclasses.dataclass(frozen=True)
class DedupTotals:
    """The fields of `dedup.totals`, as in docs/output.md."""

    packets: int | None
    """packets read."""
    kept: int | None
    """packets written."""
    dropped: int | None
    """packets left out."""
    bytes: int | None
    """captured bytes of the packets read."""
    dropped_bytes: int | None
    """captured bytes of the packets left out (bytes)."""
    dropped_packet: int | None
    """IP packets seen before."""
    dropped_frame: int | None
    """frames whose bytes were seen before."""
    dropped_retransmission: int | None
    """TCP segments with data seen before."""
    dropped_spurious_retransmission: int | None
    """the same, with data that the other side had confirmed already."""
    dropped_keep_alive: int | None
    """TCP keep-alives seen before."""
    dropped_flow: int | None
    """packets of flows seen before."""
    not_compared: int
    """packets that are kept in any case."""
    out_of_order: int
    """packets with an earlier time than the one before."""
    interrupted: bool
    """a signal ended the run before everything was read; the result covers what was read until then."""
    complete: bool
    """all inputs were read to their ends; if not, the exit code is not 0, except for what a filter of `--continue`
        lacks."""
    outside_slices: int
    """packets beyond 65,536 slices."""
    left_early: int
    """packets that left the window early, because memory was full."""
    least_reach: int | None
    """how far the window then reached at least, in nanoseconds or packets."""
    window_bytes: int
    """memory of window and filter in the end (bytes)."""
    filter_first: int
    """packets that the filter called new; depends on its random seed."""
    looked_up: int
    """packets looked up among the digests; depends on the random seed."""
    expected_wrong: float | None
    """with `--approximate`: packets expected to be dropped although none of the last one and a half windows was equal;
        null if the filter was ever too full to tell."""


@dataclasses.dataclass(frozen=True)
class CompareParameters:
    """The fields of `compare.parameters`, as in docs/output.md."""

    version: str
    """of flowsieve."""
    command: str
    """the command line, without options that change no number (`--threads`, and how and where results are written)."""
    element: str
    """as for `count`."""
    undirected: bool
    """As the field before it."""
    queries_only: bool
    """As the field before it."""
    dns_ports: list[Any]
    """As the field before it."""
    tunnel: str
    """As the field before it."""
    where: str | None
    """the capture filter ([capture-filters.md](capture-filters.md))."""
    from_: str | None
    """earlier packets were not selected: RFC 3339, or `+90s` after the first packet of a pipe."""
    from_ns: int | None
    """the same in nanoseconds since the epoch (ns)."""
    to: str | None
    """packets at this time or later were not selected."""
    to_ns: int | None
    """the same in nanoseconds since the epoch (ns)."""
    timezone: str | None
    """zone in which times are shown (`--timezone`)."""
    slice_ns: int | None
    """As the field before it (ns)."""
    align: str
    """As the field before it."""
    whole_slices: bool
    """slices that the capture covers only in part are not judged (`--whole-slices`)."""
    filters: list[Any]
    """the structures."""
    pair: list[Any]
    """the two structures of `verdicts`; empty for a single structure."""
    setting: str
    """`total`: every structure has the same memory; `array`: every array has the same bits."""
    memory_bytes: list[Any] | None
    """memory that each structure gets for a slice; null with `array`, and with `--each` where it follows from each
        capture (bytes)."""
    array_bits: list[Any] | None
    """bits of each array; null with `total`."""
    queries: bool
    """absent elements were asked for (`--queries`)."""
    asked: list[Any]
    """combinations that queries ask for, each a list of names; all attributes first."""
    expected_elements: int | None
    """distinct elements per slice for which k was chosen; null if unknown (then k = 4). With `--each` this and the next
        two are null: each capture has its own."""
    expected_from: str | None
    """`given` (`--expect`), `p95` (95 of 100 slices have no more; nearest rank), or `unknown`."""
    expected_slices: int | None
    """slices of which that is the 95th percentile."""
    k_rule: str
    """`formula`: least predicted loss while the arrays are filled (k = m/n ln 2 for structures that are no Bloom
        filters); `best`: least error in trials that are not judged; `given`: `--k`."""
    probes: int | None
    """hash functions (k) of every structure, if given."""
    open_slices: int
    """as for `count`."""
    seed: int
    """As the field before it."""
    seeds: int | None
    """replicates asked for; null for as many as it takes."""
    looks: list[Any]
    """numbers of replicates after which it was decided whether more are needed: a size has no more once its pair is
        decided (an interval excludes 0 or lies inside the margin, or ten seeds are all the same)."""
    level: float | None
    """level of the interval of a decision: 0.05 / (looks x sizes)."""
    interval: str
    """what all other intervals are."""
    margin_points: float
    """a difference up to this does not matter (share)."""
    margin_share: float
    """nor does one up to this share of the larger error."""
    exact_limit_bytes: int
    """as for `count` (bytes)."""
    anonymized: bool
    """addresses of the page and of `--od-out` are replaced."""


@dataclasses.dataclass(frozen=True)
class PlanParameters:
    """The fields of `plan.parameters`, as in docs/output.md."""

    element: str | None
    """kind of element; null for abstract attributes."""
    attributes: list[Any]
    """their names, in order."""
    memory_bytes: int | None
    """memory asked for; null if it follows from a rate (bytes)."""
    fpr: float | None
    """weighted rate asked for (share)."""
    attribute_fpr: float | None
    """rate asked for single attributes (share)."""
    most_elements: bool
    """asked is how many elements fit."""
    known: float
    """share of the single values of a negative that occur (α) (share)."""


@dataclasses.dataclass(frozen=True)
class ReproduceParameters:
    """The fields of `reproduce.parameters`, as in docs/output.md."""

    scale: str
    """`default`, or `full` with `--full-scale`."""
    seed: int
    """start of the random numbers."""
    captures: int
    """captures for the experiments on traffic; with 0 it is generated."""
    words: bool
    """a list of words was given; if not, words are generated."""
    machine: str
    """the machine that times were measured on."""


@dataclasses.dataclass(frozen=True)
class TopParameters:
    """The fields of `top.parameters`, as in docs/output.md."""

    by: str
    """fields of the keys."""
    distinct: str
    """fields whose distinct values are counted for each key."""
    most: int | None
    """keys listed per slice at most (`-n`)."""
    least: int
    """distinct others of a listed key at least (`--min`)."""
    sort: str
    """what keys are ranked by: `distinct`, `packets` or `bytes`."""
    tunnel: str
    """`outer` or `inner`: which IP header counts."""
    dnstap_type: str | None
    """`--dnstap-type`; null for `auth,client`."""
    where: str | None
    """the capture filter ([capture-filters.md](capture-filters.md))."""
    from_: str | None
    """earlier packets were not selected: RFC 3339, or `+90s` after the first packet of a pipe."""
    from_ns: int | None
    """the same in nanoseconds since the epoch (ns)."""
    to: str | None
    """packets at this time or later were not selected."""
    to_ns: int | None
    """the same in nanoseconds since the epoch (ns)."""
    timezone: str | None
    """zone in which times are shown (`--timezone`)."""
    queries_only: bool
    """count DNS queries only."""
    dns_ports: list[Any]
    """DNS ports besides 53."""
    slice_ns: int | None
    """width of a slice; null for one slice over everything (ns)."""
    align: str
    """`epoch` or `first`: where slices begin."""
    memory_bytes: int
    """memory of one slice (bytes)."""
    seed: int
    """seed of the digests."""
    exact_limit_bytes: int | None
    """memory that the exact sets may take (bytes)."""


@dataclasses.dataclass(frozen=True)
class TopTotals:
    """The fields of `top.totals`, as in docs/output.md."""

    packets: int
    """packets read."""
    ip_packets: int
    """packets with a readable IP header."""
    elements: int
    """packets that have a key."""
    skipped: dict[str, Any]
    """skipped packets by [reason](#reasons-without-an-element)."""
    uncounted: int
    """packets in no slice: too late from a pipe, or not reached by an interrupted run."""
    interrupted: bool
    """a signal ended the run before everything was read; the result covers what was read until then."""
    complete: bool
    """all inputs were read to their ends; if not, the exit code is not 0, except for what a filter of `--continue`
        lacks."""
    slices: int
    """slices with packets."""
    keys: int
    """keys listed, over all slices."""
    over_limit_slices: int
    """slices whose exact set passed its limit."""
    crowded_slices: int
    """slices whose filter finally missed more than half of the new pairs: errors are large."""
    exact_keys: int | None
    """keys of the exact answer."""
    found_keys: int | None
    """how many of these, or others with as many, the bounded table alone would list."""
    missed_keys: list[Any]
    """the first 20 of the others."""
