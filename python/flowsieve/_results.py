"""What the functions return."""

from __future__ import annotations

import dataclasses
import html
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from ._errors import UsageError
from ._records import (
    CompareParameters,
    CountParameters,
    CountTotals,
    DedupParameters,
    DedupTotals,
    ExportParameters,
    ExportTotals,
    FlowsParameters,
    FlowsTotals,
    Input,
    PlanParameters,
    ReproduceParameters,
    TopParameters,
    TopTotals,
)
from ._records import record as _record
from ._run import Command
from ._table import NO_PICKLE, Stream, Table

if TYPE_CHECKING:
    from typing_extensions import Self

_P = TypeVar("_P")
_T = TypeVar("_T")

_BARS = "▁▂▃▄▅▆▇█"


class Result:
    """The document of a run: what stands around its rows.

    A result is a context manager: at the end of ``with`` a run that is still under way is ended.
    """

    def __init__(self, command: Command) -> None:
        self._command: Command | None = command
        self._document: dict[str, Any] = {}
        self._complete = True

    def _read(self) -> None:
        """Takes the document, which is there once all rows were read."""
        if self._command is not None:
            self._document, self._complete = self._command.document()
            self._command = None

    @property
    def document(self) -> dict[str, Any]:
        """Everything but the rows, as in the format ``json``."""
        self._read()
        return self._document

    @property
    def complete(self) -> bool:
        """Whether everything could be read; ``inputs`` says what could not."""
        self._read()
        return self._complete

    def close(self) -> None:
        """Ends the run, unless everything was read."""
        if self._command is not None:
            self._command.close()

    def __getstate__(self) -> dict[str, Any]:
        if self._command is not None:
            raise TypeError(NO_PICKLE)
        return self.__dict__

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _OfInputs(Result, Generic[_P, _T]):
    _parameters: ClassVar[type[Any]]
    _totals: ClassVar[Any] = None

    @property
    def parameters(self) -> _P:
        """What the result depends on."""
        parameters: _P = _record(self._parameters, self.document["parameters"])
        return parameters

    @property
    def totals(self) -> _T:
        """Sums over the run. Of a stream of rows they are known when all rows were read."""
        if self._totals is None:
            raise AttributeError(f"{type(self).__name__} has no totals; see its rows, or document for all numbers")
        totals: _T = _record(self._totals, self.document["totals"])
        return totals

    @property
    def inputs(self) -> list[Input]:
        """What became of the inputs."""
        return [_record(Input, one) for one in self.document["inputs"]]


class _InMemory(_OfInputs[_P, _T]):
    """Rows in memory, read at once."""

    def __init__(self, command: Command) -> None:
        super().__init__(command)
        self._rows = Table(command.rows())
        self._read()

    def __repr__(self) -> str:
        return f"{type(self).__name__} of {self._said()}\n{self._rows!r}"

    def _said(self) -> str:
        return f"{len(self._rows):,} rows"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self._said())}</p>{self._rows._repr_html_()}"


class _AsTheyCome(_OfInputs[_P, _T]):
    """Rows that are read as they come."""

    #: The attribute that has them.
    _name = "rows"

    def __init__(self, command: Command) -> None:
        super().__init__(command)
        self._rows = Stream(command, self._read)

    def _said(self) -> str:
        if self._command is not None and self._command.follows:
            return f"rows as they come; iterate over .{self._name}"
        if self._command is not None:
            return f"rows as they come, not read to their end; iterate over .{self._name}, or call .{self._name}.read()"
        counts = ((field.name, getattr(self.totals, field.name)) for field in dataclasses.fields(self._totals))
        return ", ".join(f"{count:,} {name}" for name, count in counts if type(count) is int and count)

    def __repr__(self) -> str:
        return f"{type(self).__name__} of {self._said()}"

    def _repr_html_(self) -> str:
        """The totals; before they are known the first rows, which are still to be read."""
        if self._command is not None and not self._command.follows:
            return self._rows._repr_html_()
        return f"<p>{html.escape(repr(self))}</p>"


class LiveCounts(_AsTheyCome[CountParameters, CountTotals]):
    """A count of captures that grow: a row for each time slice, as soon as it is over.

    It has no end, unless all inputs are pipes, and so no totals, inputs and parameters, which are known there.
    """

    _name = "slices"
    _parameters = CountParameters
    _totals = CountTotals

    @property
    def slices(self) -> Stream:
        """The slices, in the order of time."""
        return self._rows


class Counts(_InMemory[CountParameters, CountTotals]):
    """A count: a row for each time slice."""

    _parameters = CountParameters
    _totals = CountTotals

    @property
    def slices(self) -> Table:
        """The slices, in the order of time."""
        return self._rows

    def _said(self) -> str:
        totals = self.totals
        one = "slice" if self.parameters.every_ns is None else "window"
        rows = one if totals.slices == 1 else f"{one}s"
        return f"{totals.packets:,} packets in {totals.slices:,} {rows} {self._sparkline()}".rstrip()

    def _sparkline(self) -> str:
        table = self._rows
        values = table["exact"] if "exact" in table.columns else table["estimate"]
        values = [value or 0 for value in values]
        groups = min(len(values), 60)
        peaks = [max(values[i * len(values) // groups : (i + 1) * len(values) // groups]) for i in range(groups)]
        top = max(peaks, default=0)
        return "".join(_BARS[round(peak / top * 7)] for peak in peaks) if top else ""

    def _repr_html_(self) -> str:
        from . import _native

        parameters = self.parameters
        figure = _native.draw_count(self._rows._native, parameters.element, parameters.filter)
        return f"<p>{html.escape(self._said())}</p>{figure}{self._rows._repr_html_()}"


class Top(_InMemory[TopParameters, TopTotals]):
    """A ranking: a row for each key and slice."""

    _parameters = TopParameters
    _totals = TopTotals

    @property
    def keys(self) -> Table:
        """The keys, the one with the most distinct others first."""
        return self._rows


class Dedup(_InMemory[DedupParameters, DedupTotals]):
    """What was dropped."""

    _parameters = DedupParameters
    _totals = DedupTotals

    @property
    def slices(self) -> Table:
        """A row for each slice, or one for everything."""
        return self._rows


class Comparison(_InMemory[CompareParameters, CountTotals]):
    """Structures compared: a row for each structure, memory and seed; with `each` for each capture and memory."""

    _parameters = CompareParameters
    _totals = CountTotals

    @property
    def rows(self) -> Table:
        """The rows of the CSV."""
        return self._rows

    @property
    def verdicts(self) -> list[dict[str, Any]]:
        """Which of two structures is nearer to the truth, for each memory and kind of count, as in the format ``json``."""
        verdicts: list[dict[str, Any]] = self._of_one("verdicts")
        return verdicts

    @property
    def structures(self) -> list[dict[str, Any]]:
        """The structures with all that was measured of them, as in the format ``json``."""
        structures: list[dict[str, Any]] = self._of_one("structures")
        return structures

    def _of_one(self, name: str) -> Any:
        if name not in self.document:
            raise UsageError(f"with each=True there are no {name}; document['summary'] sums the captures up, which are the rows")
        return self.document[name]


class Plan(_InMemory[PlanParameters, None]):
    """A plan: a row for each structure and stored combination."""

    _parameters = PlanParameters

    @property
    def rows(self) -> Table:
        """The rows of the CSV."""
        return self._rows


class Reproduction(_InMemory[ReproduceParameters, None]):
    """Tables and figures of the papers: a row for each value."""

    _parameters = ReproduceParameters

    @property
    def rows(self) -> Table:
        """The rows of the CSV."""
        return self._rows


class Flows(_AsTheyCome[FlowsParameters, FlowsTotals]):
    """A list of flows, as they come."""

    _name = "flows"
    _parameters = FlowsParameters
    _totals = FlowsTotals

    @property
    def flows(self) -> Stream:
        """The flows, in the order of their first packet."""
        return self._rows


class Export(_AsTheyCome[ExportParameters, ExportTotals]):
    """Packets or elements, as they come."""

    _parameters = ExportParameters
    _totals = ExportTotals

    @property
    def rows(self) -> Stream:
        """The rows."""
        return self._rows


class Rows(Result):
    """Rows without totals."""

    def __init__(self, command: Command) -> None:
        super().__init__(command)
        self.rows = Table(command.rows())
        self._read()

    def __repr__(self) -> str:
        return repr(self.rows)

    def _repr_html_(self) -> str:
        return self.rows._repr_html_()


class Text(Result):
    """What a command prints, where that is text."""

    def __init__(self, command: Command) -> None:
        super().__init__(command)
        self.text, self._complete = command.text()
        self._command = None

    def __repr__(self) -> str:
        return self.text
