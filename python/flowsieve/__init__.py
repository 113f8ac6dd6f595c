"""Distinct host pairs, flows and DNS triples in packet captures, per time slice, with the error of every estimate.

>>> import flowsieve as fs
>>> counted = fs.count("traces/generated.pcap", slice="1s")
>>> counted.totals.packets
8000
>>> counted.slices["exact"][:3]
[504, 509, 515]
"""

from ._commands import (
    Index,
    compare,
    count,
    dedup,
    export,
    filter_info,
    filter_intersect,
    filter_query,
    filter_union,
    flows,
    generate,
    plan,
    reproduce,
    top,
)
from ._errors import Error, InputWarning, UsageError
from ._filter import Estimate, Filter
from ._native import __version__
from ._records import Input
from ._results import (
    Comparison,
    Counts,
    Dedup,
    Export,
    Flows,
    LiveCounts,
    Plan,
    Reproduction,
    Result,
    Rows,
    Text,
    Top,
)
from ._table import Stream, Table

__all__ = [
    "Comparison",
    "Counts",
    "Dedup",
    "Error",
    "Estimate",
    "Export",
    "Filter",
    "Flows",
    "Index",
    "Input",
    "InputWarning",
    "LiveCounts",
    "Plan",
    "Reproduction",
    "Result",
    "Rows",
    "Stream",
    "Table",
    "Text",
    "Top",
    "UsageError",
    "__version__",
    "compare",
    "count",
    "dedup",
    "export",
    "filter_info",
    "filter_intersect",
    "filter_query",
    "filter_union",
    "flows",
    "generate",
    "plan",
    "reproduce",
    "top",
]
