"""From the arguments of a function to the words of a command, and from what the command says to warnings."""

from __future__ import annotations

import datetime
import decimal
import glob
import inspect
import ipaddress
import json
import logging
import numbers
import operator
import os
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import Any, Literal, Protocol, TypeAlias

from . import _native
from ._errors import Error, InputWarning, UsageError


class Scalar(Protocol):
    """A number or time of NumPy."""

    @property
    def ndim(self) -> Literal[0]: ...


StrPath: TypeAlias = str | os.PathLike[str]
#: One file or several. Patterns such as ``captures/*.pcap.gz`` are expanded.
Paths: TypeAlias = StrPath | Iterable[StrPath]
Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address | ipaddress.IPv4Network | ipaddress.IPv6Network
#: A value as on the command line; numbers, durations (``timedelta``), times, zones and addresses may be Python's own.
Value: TypeAlias = str | int | float | decimal.Decimal | datetime.timedelta | datetime.date | datetime.tzinfo | Address | Scalar
#: One value or several.
Values: TypeAlias = Value | Iterable[Value]
#: ``True``, a bar of tqdm (anything with ``update`` and ``total``), or a function of bytes read, packets seen and all bytes.
Progress: TypeAlias = Any

#: The output of a run that is over, the lines that it said with path and offset, and whether everything could be read.
Report: TypeAlias = tuple[bytes, list[tuple[str, StrPath | None, int | None]], bool]

ADDRESSES = (ipaddress.IPv4Address, ipaddress.IPv6Address, ipaddress.IPv4Network, ipaddress.IPv6Network)

_log = logging.getLogger("flowsieve")


def path(value: Any, name: str) -> str:
    """A path as text; anything else is refused with the name of its argument."""
    if not isinstance(value, (str, os.PathLike)):
        raise UsageError(f"{name}: {_not_a_path(value)}")
    text = os.fspath(value)
    if not text:
        raise UsageError(f"{name}: a path is empty; name a file or a directory")
    # `os.fspath` of a path of bytes is bytes.
    return os.fsdecode(text)


def _not_a_path(value: Any) -> str:
    kind = type(value).__name__
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"a path is a str or an os.PathLike, not {kind}; if this is a path, decode it with os.fsdecode, else write it to a file first"
    if hasattr(value, "read") or hasattr(value, "write"):
        return f"a path is a str or an os.PathLike, not a file object ({kind}); give the path of the file, or write its content to one first"
    return f"a path is a str or an os.PathLike, not {kind}"


def named_paths(values: Any, name: str) -> list[str]:
    """One path or several, as text."""
    is_one = isinstance(values, (str, os.PathLike, bytes, bytearray, memoryview)) or hasattr(values, "read")
    return [path(one, name) for one in ([values] if is_one or not isinstance(values, Iterable) else values)]


def paths(named: Any, name: str = "captures") -> list[str]:
    """The files that are named, with patterns expanded."""
    found: list[str] = []
    for one in named_paths(named, name):
        if "://" in one and not os.path.exists(one):
            sentence = "this is an address; read it with flowsieve.pieces or flowsieve.spark, or copy it to a file first"
            raise UsageError(f"{one}: {sentence}", one)
        if any(mark in one for mark in "*?[") and not os.path.exists(one):
            matches = sorted(glob.glob(one, recursive=True))
            if not matches:
                raise Error(f"{one}: no file matches this pattern", one)
            found += matches
        else:
            found.append(one)
    return found


def word(value: Any, name: str) -> str:
    """A value in the words of the command line; what has none is refused with the name of its argument."""
    if isinstance(value, datetime.timedelta):
        # Those of pandas have nanoseconds. As a bound it is relative to the first packet, or before the last.
        sign = "+" if name in ("from_", "to") and value >= datetime.timedelta() else ""
        return sign + (f"{value.value}ns" if hasattr(value, "value") else f"{value // datetime.timedelta(microseconds=1)}us")
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            return str(value.isoformat())
        try:
            return str(value.astimezone(datetime.timezone.utc).isoformat().replace("+00:00", "Z"))
        except OverflowError as error:
            raise UsageError(f"{name}: {error}") from None
    if isinstance(value, float):
        return format(decimal.Decimal(repr(float(value))), "f")
    if isinstance(value, os.PathLike):
        return path(value, name)
    # Scalars of NumPy have a dtype, too.
    if isinstance(value, (str, numbers.Number, datetime.date, datetime.tzinfo, *ADDRESSES)) or getattr(value, "ndim", None) == 0:
        return str(value)
    raise UsageError(f"{name}: a value is text, a number, a time or an address, not {type(value).__name__}")


def whole_number(value: Any, name: str) -> int:
    """A whole number of at least one; anything else is refused with the name of its argument."""
    if not isinstance(value, bool) and hasattr(value, "__index__") and operator.index(value) >= 1:
        return operator.index(value)
    raise UsageError(f"{name}: give a whole number of at least one, not {value!r}")


def listed(values: Any) -> list[Any]:
    """Values, if there is one or more."""
    if values is None:
        return []
    one = (str, bytes, bytearray, memoryview, os.PathLike, *ADDRESSES)
    is_one = isinstance(values, one) or hasattr(values, "read") or getattr(values, "ndim", None) == 0
    return [values] if is_one or not isinstance(values, Iterable) else list(values)


def command_line(command: list[str], function: Callable[..., Any], given: dict[str, Any]) -> list[str]:
    """The words of a command from the arguments of its function: options that differ from their defaults, then the rest."""
    line, rest = list(command), []
    if "self" in given:
        rest.append(path(given["self"].archive, "archive"))
    for name, parameter in inspect.signature(function).parameters.items():
        value: Any = given.get(name)
        if name in ("self", "progress"):
            continue
        if parameter.kind is not parameter.KEYWORD_ONLY:
            is_path = parameter.annotation in ("Paths", "StrPath")
            # What is dropped from an index need not exist.
            if command == ["index", "drop"]:
                words = [one for named in named_paths(value, name) for one in glob.glob(named, recursive=True) or [named]]
            else:
                words = paths(value, name) if is_path else [word(one, name) for one in listed(value)]
            if not words and parameter.default is parameter.empty:
                raise UsageError(f"{name}: name at least one")
            rest += words
            continue
        option = "--" + name.rstrip("_").replace("_", "-")
        if getattr(getattr(value, "dtype", None), "kind", None) == "b":
            value = bool(value)
        if value is True and parameter.default is not False:
            raise UsageError(f"{name}: this takes a value, not True")
        if value is True:
            line.append(option)
        elif value is None or value is False or (type(value) is type(parameter.default) and value == parameter.default):
            continue
        elif parameter.default is False:
            raise UsageError(f"{name}: this is True or False, not {value!r}")
        elif parameter.annotation == "Paths | None":
            line += [f"{option}={one}" for one in paths(value, name)]
        elif "StrPath" in str(parameter.annotation):
            if str(value) in ("-", "/dev/stdout"):
                raise UsageError(f"{name}: name a file; results come back from the function")
            line.append(f"{option}={path(value, name)}")
        else:
            line += [f"{option}={word(one, name)}" for one in listed(value)]
    return [*line, "--", *rest]


class Command:
    """A command at work. Its native part knows how far its output was read."""

    #: Whether it waits for more packets, perhaps for ever.
    follows = False

    def __init__(self, line: list[str], progress: Progress = None) -> None:
        self._bar = Bar(progress)
        self.follows = "--follow" in line
        self.native = _native.Run(line, self._bar.report)

    @classmethod
    def over(cls, report: Report) -> Command:
        """A command that is over, with this report."""
        made = cls.__new__(cls)
        made._bar = Bar(None)
        made.native = _native.Run.over(*report)
        return made

    def rows(self) -> _native.Table:
        """All rows."""
        try:
            return self.native.rows()
        except BaseException:
            self._bar.close()
            raise

    def document(self) -> tuple[dict[str, Any], bool]:
        """The document behind the rows, and whether everything could be read. Raises unless all rows were read."""
        text, complete = self.native.document()
        document: dict[str, Any] = json.loads(text)
        if complete:
            self._bar.end(document.get("inputs", []))
        self._end()
        return document, complete

    def text(self) -> tuple[str, bool]:
        """The output of a command without rows, and whether everything could be read."""
        text, complete = self.native.text()
        self._end()
        return text.decode(), complete

    def close(self) -> None:
        """Ends the command, unless everything was read."""
        self.native.close()
        self._bar.close()

    def _end(self) -> None:
        self._bar.close()
        self.warn()

    def warn(self) -> None:
        """Hands on what the command said."""
        warner()(self.native.said())


def warner() -> Callable[[list[Any]], None]:
    """A function that hands on what a command said, in any thread, as of the line that called the package now."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__package__") == __package__:
        frame = frame.f_back
    file, line, names = frame.f_code.co_filename, frame.f_lineno, frame.f_globals

    def warn(said: list[Any]) -> None:
        for text, _path, _offset in said:
            if text.startswith("flowsieve: "):
                seen = names.setdefault("__warningregistry__", {})
                warnings.warn_explicit(text.removeprefix("flowsieve: "), InputWarning, file, line, names.get("__name__"), seen)
            else:
                _log.info(text)

    return warn


class Bar:
    """Progress in the form that was asked for."""

    def __init__(self, progress: Progress, unit: str = "B") -> None:
        self._seen = 0
        self._last: tuple[int, int | None] = (0, None)
        self._own = False
        if progress is True:
            from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]

            progress, self._own = tqdm(unit=unit, unit_scale=unit == "B"), True
        elif progress not in (None, False) and not callable(progress) and not hasattr(progress, "update"):
            raise UsageError(f"progress: give True, a bar such as tqdm's, or a function, not {type(progress).__name__}")
        self._progress = None if progress is False else progress
        self.report: Callable[[int, int, int | None], None] | None = (
            None if self._progress is None else self._report
        )

    def _report(self, done: int, packets: int, total: int | None) -> None:
        self._last = (packets, total)
        self._show(done, packets, total)

    def _show(self, done: int, packets: int, total: int | None) -> None:
        bar: Any = self._progress
        if not hasattr(bar, "update"):
            bar(done, packets, total)
            return
        if total is not None:
            bar.total = total
        bar.update(done - self._seen)
        self._seen = done

    def end(self, inputs: list[dict[str, Any]]) -> None:
        """Reports the end of these inputs: the last report may have been some time before it."""
        (packets, total), self._last = self._last, (0, None)
        if total is not None and inputs and not any(one["unread_bytes"] for one in inputs):
            self._show(total, max(packets, sum(one["packets"] + one["left_out"] for one in inputs)), total)

    def close(self) -> None:
        if self._own and self._progress is not None:
            self._progress.close()
