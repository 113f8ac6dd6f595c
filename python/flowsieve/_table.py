"""Rows: in memory, or as they come."""

from __future__ import annotations

import contextlib
import datetime
import functools
import gc
import html
import keyword
import operator
import zoneinfo
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, overload

from . import _native
from ._errors import Error
from ._run import warner

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._run import Command

#: Why a result that is not in memory cannot go to another process.
NO_PICKLE = "rows that are read as they come cannot be pickled; pickle the table that `.read()` returns"

#: Rows of a table that are shown.
_SHOWN = 10
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
#: Rows that become dictionaries at a time.
_AT_ONCE = 1 << 14


@functools.lru_cache(maxsize=64)
def _maker(names: tuple[str, ...]) -> Any:
    """A function that makes dictionaries with these keys.

    They are the attributes of objects of one class, which share their keys: two thirds of the time of a display, and half the memory.
    """
    if not all(name.isascii() and name.isidentifier() and not name.startswith("_") and not keyword.iskeyword(name) for name in names):
        return lambda rows: [dict(zip(names, row)) for row in rows]
    values = [f"v{number}" for number in range(len(names))]
    sets = "".join(f"        row.{name} = {value}\n" for name, value in zip(names, values))
    made: dict[str, Any] = {}
    exec(
        "class Row: pass\n"
        "def make(rows):\n"
        "    made = []\n"
        f"    for [{', '.join(values)}] in rows:\n"
        "        row = Row()\n"
        f"{sets}"
        "        made.append(row.__dict__)\n"
        "    return made\n",
        made,
    )
    return made["make"]


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
        return plain(self.to_arrow()).to_pandas()

    def _whole(self) -> Table:
        raise NotImplementedError


def plain(table: Any) -> Any:
    """A ``pyarrow.Table`` without dictionaries: pandas would group by every pair of categories, and Spark takes none."""
    import pyarrow

    kinds = pyarrow.types
    fields = [field.with_type(field.type.value_type) if kinds.is_dictionary(field.type) else field for field in table.schema]
    return table.cast(pyarrow.schema(fields))


class Table(Rows):
    """Rows in memory.

    >>> import flowsieve as fs
    >>> slices = fs.count("traces/generated.pcap").slices
    >>> slices.shape, slices.columns[:2]
    ((8, 21), ['start_ns', 'start'])
    >>> slices["exact"][:2]
    [504, 509]
    >>> slices[1]["exact"], slices[2:4]["exact"], slices[["packets", "exact"]].head(1).rows()
    (509, [515, 501], [{'packets': 1000, 'exact': 504}])
    """

    def __init__(self, native: _native.Table) -> None:
        self._native = native

    @property
    def columns(self) -> list[str]:
        """The names of the columns; ``docs/output.md`` says what they mean."""
        return self._native.column_names()

    column_names = columns

    @property
    def schema(self) -> dict[str, str]:
        """The type of each column, by its name."""
        return dict(self._native.types())

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self), len(self.columns)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows in memory: numbers and Community IDs are packed, and other libraries get them unpacked."""
        return self._native.nbytes()

    def head(self, rows: int = 5) -> Table:
        """The first rows."""
        return self[: max(rows, 0)]

    def __len__(self) -> int:
        return len(self._native)

    @overload
    def __getitem__(self, wanted: str) -> list[Any]: ...

    @overload
    def __getitem__(self, wanted: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, wanted: slice | list[str]) -> Table: ...

    def __getitem__(self, wanted: str | int | slice | list[str]) -> Any:
        """A column as a list, a row as a dictionary, or a table of some rows or columns. Times are nanoseconds since 1970."""
        if isinstance(wanted, str):
            column: list[Any] = []
            self._native.select([wanted]).take_rows(column.extend, 0, len(self))
            return column
        if isinstance(wanted, slice):
            start, stop, step = wanted.indices(len(self))
            if step != 1:
                raise ValueError("a table has slices of rows one after the other; leave the step out")
            return Table(self._native.slice(start, max(start, stop)))
        if isinstance(wanted, list):
            return Table(self._native.select(wanted))
        row = operator.index(wanted)
        row += len(self) if row < 0 else 0
        if not 0 <= row < len(self):
            raise IndexError(f"the table has {len(self):,} rows")
        return self.rows(row, row + 1)[0]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for start in range(0, len(self), _AT_ONCE):
            yield from self.rows(start, start + _AT_ONCE)

    def rows(self, start: int = 0, stop: int | None = None) -> list[dict[str, Any]]:
        """The rows as dictionaries."""
        rows: list[dict[str, Any]] = []
        make = _maker(tuple(self.columns))
        # Dictionaries of numbers and texts are in no cycle, and looking for some takes a quarter of the time.
        looks = gc.isenabled()
        gc.disable()
        try:
            self._native.take_rows(lambda *columns: rows.extend(make(zip(*columns))), start, len(self) if stop is None else stop)
        finally:
            if looks:
                gc.enable()
        return rows

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._native.__arrow_c_stream__(requested_schema)

    def _whole(self) -> Table:
        return self

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        """What is shown: names of columns that have values, and the first and last rows as text."""
        rows = self.rows(0, _SHOWN)
        kinds = self.schema
        # A time is in two columns; the one that is a time is shown.
        names = [name for name in kinds if name.removesuffix("_ns") not in kinds.keys() - {name} and any(row[name] is not None for row in rows)]
        return names, [[_text(kinds[name], row[name]) for name in names] for row in rows]

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
    Ctrl-C works when it returns to Python, perhaps after the last row.
    """

    def __init__(self, command: Command, ended: Callable[[], None]) -> None:
        self._command = command
        self._ended = ended

    def __iter__(self) -> Iterator[Table]:
        reader = self._command.native.reader()
        while (table := self._command.native.next(reader)) is not None:
            yield Table(table)
        self._ended()

    def __repr__(self) -> str:
        return f"rows as they come: iterate over them{'' if self._command.follows else ', or call .read()'}"

    def _repr_html_(self) -> str:
        """The first rows, which are still to be read. Those of captures that grow may never come."""
        if self._command.follows:
            return f"<p>{html.escape(repr(self))}</p>"
        try:
            return f"{Table(self._command.native.show())._repr_html_()}<p>the first rows, as they come</p>"
        except Error as error:
            return f"<p>{html.escape(str(error))}</p>"

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._command.native.stream(warner())

    def read(self) -> Table:
        """All rows."""
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


def _text(kind: str, value: Any) -> str:
    if value is None:
        return ""
    if kind.startswith("timestamp"):
        seconds, fraction = divmod(value, 10**9)
        zone: datetime.tzinfo = datetime.timezone.utc
        # A system without time zones shows universal time.
        with contextlib.suppress(KeyError, ValueError, OSError):
            zone = zoneinfo.ZoneInfo(kind.removeprefix("timestamp[ns, ").removesuffix("]"))
        time = (_EPOCH + datetime.timedelta(seconds=seconds)).astimezone(zone)
        return f"{time:%Y-%m-%d %H:%M:%S}{f'.{fraction:09}'.rstrip('0') if fraction else ''}{time:%z}"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return str(value)
