"""Compares each Parquet file of a directory, as DuckDB and Polars read it, with the CSV of the same name."""

import csv
import sys
from pathlib import Path

import duckdb
import polars

KINDS = {
    "start_ns": ("TIMESTAMPTZ_NS", "Datetime(time_unit='ns', time_zone='UTC')"),
    "end_ns": ("TIMESTAMPTZ_NS", "Datetime(time_unit='ns', time_zone='UTC')"),
    "exact_over_limit": ("BOOLEAN", "Boolean"),
    "origin": ("VARCHAR", "String"),
    "destination": ("VARCHAR", "String"),
    **{name: ("UBIGINT", "UInt64") for name in ("packets", "elements", "exact", "first")},
    **{name: ("DOUBLE", "Float64") for name in ("estimate", "std_error", "rel_error", "observed_fpr")},
}


def expected(path):
    """The rows of the CSV, each field of its kind; nothing for an empty one."""

    def value(name, text):
        kind = KINDS[name][0]
        if text == "":
            return None
        if kind == "BOOLEAN":
            return {"true": True, "false": False}[text]
        if kind == "DOUBLE":
            return float(text)
        return text if kind == "VARCHAR" else int(text)

    with open(path, newline="") as file:
        return [{name: value(name, text) for name, text in row.items()} for row in csv.DictReader(file)]


def differ(path, reader, names, rows, wanted):
    assert names == list(wanted[0]), f"{path} by {reader}: columns {names}"
    assert len(rows) == len(wanted), f"{path} by {reader}: {len(rows)} rows, not {len(wanted)}"
    for number, (row, want) in enumerate(zip(rows, wanted)):
        have = dict(zip(names, row))
        assert have == want, f"{path} by {reader}, row {number}: {have} is not {want}"


def check(path):
    wanted = expected(path.with_suffix(".csv"))
    assert wanted, f"{path}: the CSV has no row to compare with"
    times = [name for name in wanted[0] if name.endswith("_ns")]

    table = duckdb.sql(f"select * from '{path}'")
    kinds = [str(kind) for kind in table.types]
    # Older ones have no type for nanoseconds with a zone.
    for name, kind in zip(table.columns, kinds):
        known = (KINDS[name][0],) + (("TIMESTAMP WITH TIME ZONE", "TIMESTAMP_NS") if name in times else ())
        assert kind in known, f"{path} by DuckDB: {name} is {kind}"
    columns = ", ".join(f"epoch_ns({name}) as {name}" if name in times else name for name in table.columns)
    differ(path, "DuckDB", table.columns, duckdb.sql(f"select {columns} from '{path}'").fetchall(), wanted)

    frame = polars.read_parquet(path)
    for name, kind in frame.schema.items():
        assert str(kind) == KINDS[name][1], f"{path} by Polars: {name} is {kind}"
    frame = frame.with_columns([polars.col(name).dt.epoch("ns") for name in times])
    differ(path, "Polars", frame.columns, frame.rows(), wanted)
    nulls = sum(value is None for row in wanted for value in row.values())
    print(f"{path.name}: {len(wanted)} rows, {nulls} nulls, the same in DuckDB {duckdb.__version__}, Polars {polars.__version__} and CSV")


files = sorted(Path(sys.argv[1]).glob("*.parquet"))
assert files, "there is no Parquet file"
for file in files:
    check(file)
