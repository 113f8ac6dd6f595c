"""Rows: in memory, or as they come."""

from __future__ import annotations

import datetime
import html
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from . import _native

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._run import Command

#: Why a result that is not in memory cannot go to another process.
NO_PICKLE = "rows that are read as they come cannot be pickled; pickle the table that `.read()` returns"

#: Rows of a table that are shown.
_SHOWN = 10


class Rows:
    """What has rows for other libraries: pyarrow, Polars, pandas, DuckDB and all that take an Arrow C stream."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        raise NotImplementedError

    def to_arrow(self) -> Any:
        """The rows as a ``pyarrow.Table``."""
        import pyarrow

        return pyarrow.table(self._whole())

    def to_polars(self) -> Any:
        """The rows as a ``polars.DataFrame``."""
        import polars

        return polars.DataFrame(self._whole())

    def to_pandas(self) -> Any:
        """The rows as a ``pandas.DataFrame``. Needs pyarrow."""
        return self.to_arrow().to_pandas()

    def _whole(self) -> Table:
        raise NotImplementedError


class Table(Rows):
    """Rows in memory.

    >>> import flowsieve as fs
    >>> slices = fs.count("traces/generated.pcap").slices
    >>> len(slices), slices.column_names[:2]
    (8, ['start_ns', 'start'])
    >>> slices["exact"][:2]
    [504, 509]
    """

    def __init__(self, native: _native.Table) -> None:
        self._native = native

    @property
    def column_names(self) -> list[str]:
        """The names of the columns; ``docs/output.md`` says what they mean."""
        return self._native.column_names()

    def __len__(self) -> int:
        return len(self._native)

    def __getitem__(self, name: str) -> list[Any]:
        """The values of a column. Times are nanoseconds since 1970."""
        return self._native.column(name)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows())

    def rows(self, start: int = 0, stop: int | None = None) -> list[dict[str, Any]]:
        """The rows as dictionaries."""
        names = self.column_names
        columns = [self._native.column(name, start, stop) for name in names]
        return [dict(zip(names, row)) for row in zip(*columns)]

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._native.__arrow_c_stream__(requested_schema)

    def _whole(self) -> Table:
        return self

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        """What is shown: names of columns that have values, and the first and last rows as text."""
        rows = self.rows(0, _SHOWN)
        names = [name for name in self.column_names if any(row[name] is not None for row in rows)]
        return names, [[_text(name, row[name]) for name in names] for row in rows]

    def __repr__(self) -> str:
        names, rows = self._cells()
        widths = [max(map(len, cells)) for cells in zip(names, *rows)] if names else []
        lines = [
            "  ".join(cell.rjust(width) for cell, width in zip(cells, widths))
            for cells in [names, *rows]
        ]
        if len(self) > len(rows):
            lines.append(f"... {len(self):,} rows")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        names, rows = self._cells()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row in rows
        )
        more = f"<p>{len(rows):,} of {len(self):,} rows</p>" if len(self) > len(rows) else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


class Stream(Rows):
    """Rows as they come, in bounded memory. They can be read once; a second time raises.

    Iterating gives tables of at most 65,536 rows. A library that takes an Arrow C stream pulls the rows itself, and then
    Ctrl-C works when the next rows have come.
    """

    def __init__(self, command: Command, ended: Callable[[], None]) -> None:
        self._command = command
        self._ended = ended

    def __iter__(self) -> Iterator[Table]:
        while (table := self._command.native.next()) is not None:
            yield Table(table)
        self._ended()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._command.native.__arrow_c_stream__(requested_schema)

    def read(self) -> Table:
        """All rows that are left."""
        table = Table(self._command.rows())
        self._ended()
        return table

    def close(self) -> None:
        """Ends the run, unless everything was read."""
        self._command.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError(NO_PICKLE)

    def _whole(self) -> Table:
        return self.read()


def _text(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name.endswith("_ns") and isinstance(value, int) and abs(value) > 10**15:
        time = datetime.datetime.fromtimestamp(value // 10**9, datetime.timezone.utc)
        return time.strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return str(value)
