"""Compares each Parquet file of a directory, as DuckDB and Polars read it, with the CSV of the same name; and the
rows of each file of JSON lines, which DuckDB reads without options."""

import csv
import datetime
import sys
from pathlib import Path

import duckdb
import polars

# What each column of every table holds: its type in DuckDB and in Polars.
TIME, NANOSECONDS, COUNT, PORT, OCTET, NUMBER, FLAG, TEXT = (
    ("TIMESTAMPTZ_NS", "Datetime(time_unit='ns', time_zone='UTC')"),
    ("BIGINT", "Int64"), ("UBIGINT", "UInt64"), ("USMALLINT", "UInt16"), ("UTINYINT", "UInt8"),
    ("DOUBLE", "Float64"), ("BOOLEAN", "Boolean"), ("VARCHAR", "String"),
)
NAMES = {
    TIME: "start end worst_start",
    NANOSECONDS: "start_ns end_ns worst_start_ns",
    PORT: "src_port dst_port vlan dns_type",
    OCTET: "proto tcp_flags tcp_flags_fwd tcp_flags_rev dns_rcode",
    COUNT: """packets elements exact first lower upper memory_asked_bytes memory_bytes needed_bytes probes saturated_slices queries positives
        bytes kept dropped dropped_bytes dropped_packet dropped_frame dropped_retransmission
        dropped_spurious_retransmission dropped_keep_alive dropped_flow not_compared packets_fwd packets_rev bytes_fwd bytes_rev
        rank new slices seed seeds array_bits probes_a probes_b memory_used_bytes_a memory_used_bytes_b seeds_nearer_a seeds_nearer_b
        seeds_nearer_equal slices_nearer_a slices_nearer_b slices_nearer_equal at_most""",
    NUMBER: """estimate std_error new_std_error rel_error observed_fpr paper formula measured distance share mean lost worst bias rms
        mean_a_value mean_a_low mean_a_high mean_b_value mean_b_low mean_b_high difference difference_low difference_high
        difference_low_joint difference_high_joint""",
    FLAG: "full complete exact_over_limit saturated revised out_of_range partial fits exceeds_memory best_raw best_estimate matters hopeless is_time held_since_start",
    TEXT: """origin destination filter structure attributes negatives experiment label unit agreement verdict src dst domain
        community_id ended note key certainty capture sha256 count a b hash_variant formula_verdict estimand captures command""",
}
KINDS = {name: kind for kind, names in NAMES.items() for name in names.split()}


def expected(path):
    """The rows of the CSV, each field of its kind; nothing for an empty one."""

    def value(name, text):
        kind = KINDS[name][0]
        # The unit of plain numbers has no name, which is not nothing.
        if text == "":
            return "" if name == "unit" else None
        if kind == "BOOLEAN":
            return {"true": True, "false": False}[text]
        if kind == "DOUBLE":
            return float(text)
        if kind == "TIMESTAMPTZ_NS":
            return nanoseconds(text)
        return text if kind == "VARCHAR" else int(text)

    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return [{name: value(name, text) for name, text in row.items()} for row in rows]


def nanoseconds(text):
    """A time in RFC 3339, UTC, in nanoseconds since the epoch."""
    whole, decimals = text.removesuffix("Z").split(".")
    seconds = datetime.datetime.fromisoformat(whole + "+00:00").timestamp()
    return int(seconds) * 1_000_000_000 + int(decimals)


def differ(path, reader, names, rows, wanted):
    assert names == list(wanted[0]), f"{path} by {reader}: columns {names}"
    assert len(rows) == len(wanted), f"{path} by {reader}: {len(rows)} rows, not {len(wanted)}"
    for number, (row, want) in enumerate(zip(rows, wanted)):
        have = dict(zip(names, row))
        assert have == want, f"{path} by {reader}, row {number}: {have} is not {want}"


def check(path):
    wanted = expected(path.with_suffix(".csv"))
    assert wanted, f"{path}: the CSV has no row to compare with"
    times = [name for name in wanted[0] if KINDS[name] is TIME]

    table = duckdb.sql(f"select * from '{path}'")
    kinds = [str(kind) for kind in table.types]
    # Older ones have no type for nanoseconds with a zone.
    for name, kind in zip(table.columns, kinds):
        known = (KINDS[name][0],) + (("TIMESTAMP WITH TIME ZONE", "TIMESTAMP_NS") if name in times else ())
        assert kind in known, f"{path} by DuckDB: {name} is {kind}"
    # Quoted: `end` is a word of SQL.
    columns = ", ".join(f'epoch_ns("{name}") as "{name}"' if name in times else f'"{name}"' for name in table.columns)
    differ(path, "DuckDB", table.columns, duckdb.sql(f"select {columns} from '{path}'").fetchall(), wanted)

    frame = polars.read_parquet(path)
    for name, kind in frame.schema.items():
        assert str(kind) == KINDS[name][1], f"{path} by Polars: {name} is {kind}"
    frame = frame.with_columns([polars.col(name).dt.epoch("ns") for name in times])
    differ(path, "Polars", frame.columns, frame.rows(), wanted)
    nulls = sum(value is None for row in wanted for value in row.values())
    print(f"{path.name}: {len(wanted)} rows, {nulls} nulls, the same in DuckDB {duckdb.__version__}, Polars {polars.__version__} and CSV")


def read_lines(path):
    """Polars takes the type of a column from the first 100 rows unless told to look at all, and a domain may first be known later."""
    return polars.read_ndjson(path, infer_schema_length=None)


def check_lines(path):
    """The lines have the values of the CSV."""
    wanted = expected(path.with_suffix(".csv"))
    names = list(wanted[0])
    texts = [name for name in names if KINDS[name] is TIME]
    wanted = [{name: value for name, value in row.items() if name not in texts} for row in wanted]
    names = list(wanted[0])
    frame = read_lines(path)
    differ(path, "Polars", names, frame.select(names).rows(), wanted)
    columns = ", ".join(f'"{name}"' for name in names)
    differ(path, "DuckDB", names, duckdb.sql(f"select {columns} from '{path}'").fetchall(), wanted)
    print(f"{path.name}: {len(wanted)} lines, the same in DuckDB, Polars and CSV")


def load_lines(path):
    """Both read the file, and find the same lines in it."""
    lines = len(path.read_text().splitlines())
    count = duckdb.sql(f"select count(*) from '{path}'").fetchall()[0][0]
    assert read_lines(path).height == lines == count, f"{path}: {lines} lines"
    print(f"{path.name}: {lines} lines, read by DuckDB and Polars")


for file in sorted(Path(sys.argv[1]).glob("*.jsonl")):
    if "-" in file.stem:
        check_lines(file)
    else:
        load_lines(file)
files = sorted(Path(sys.argv[1]).glob("*.parquet"))
assert files, "there is no Parquet file"
for file in files:
    check(file)
