"""From the arguments of a function to the words of a command, and from what the command says to warnings."""

from __future__ import annotations

import datetime
import glob
import inspect
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from . import _native
from ._errors import Error, InputWarning

StrPath: TypeAlias = str | os.PathLike[str]
#: One file or several. Patterns such as ``captures/*.pcap.gz`` are expanded.
Paths: TypeAlias = StrPath | Iterable[StrPath]
#: A value as on the command line; numbers, durations (``timedelta``) and times (``datetime``) may be Python's own.
Value: TypeAlias = str | int | float | datetime.timedelta | datetime.datetime
#: One value or several.
Values: TypeAlias = Value | Iterable[Value]
#: ``True``, a bar of tqdm (anything with ``update`` and ``total``), or a function of bytes read, packets seen and all bytes.
Progress: TypeAlias = Any

_log = logging.getLogger("flowsieve")


def paths(named: Paths) -> list[str]:
    """The files that are named, with patterns expanded."""
    if isinstance(named, (str, os.PathLike)):
        named = [named]
    found: list[str] = []
    for path in named:
        name = os.fspath(path)
        if any(mark in name for mark in "*?[") and not os.path.exists(name):
            matches = sorted(glob.glob(name, recursive=True))
            if not matches:
                raise Error(f"{name}: no file matches this pattern", name)
            found += matches
        else:
            found.append(name)
    return found


def word(value: Any) -> str:
    """A value in the words of the command line."""
    if isinstance(value, datetime.timedelta):
        return f"{value // datetime.timedelta(microseconds=1)}us"
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            value = value.replace(tzinfo=datetime.timezone.utc)
        return str(value.astimezone(datetime.timezone.utc).isoformat().replace("+00:00", "Z"))
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    return str(value)


def listed(values: Any) -> list[Any]:
    """Values, if there is one or more."""
    if values is None:
        return []
    if isinstance(values, (str, bytes, os.PathLike)) or not isinstance(values, Iterable):
        return [values]
    return list(values)


def command_line(command: list[str], function: Callable[..., Any], given: dict[str, Any]) -> list[str]:
    """The words of a command from the arguments of its function: options that differ from their defaults, then the rest."""
    line, rest = list(command), []
    if "self" in given:
        rest.append(word(given["self"].archive))
    for name, parameter in inspect.signature(function).parameters.items():
        value: Any = given.get(name)
        if name in ("self", "progress"):
            continue
        if parameter.kind is not parameter.KEYWORD_ONLY:
            is_path = parameter.annotation in ("Paths", "StrPath")
            rest += paths(value) if is_path else [word(one) for one in listed(value)]
            continue
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is True:
            line.append(option)
        elif value is not None and value is not False and value != parameter.default:
            line += [f"{option}={word(one)}" for one in listed(value)]
    return [*line, "--", *rest]


class Command:
    """A command at work."""

    def __init__(self, line: list[str], progress: Progress = None) -> None:
        self._bar = _Bar(progress)
        self.native = _native.Run(line, self._bar.report)

    @classmethod
    def over(cls, output: bytes) -> Command:
        """A command that is over, with this output."""
        made = cls.__new__(cls)
        made._bar = _Bar(None)
        made.native = _native.Run.over(output)
        return made

    def rest(self) -> tuple[bytes, bool]:
        """What is left of the output, and whether everything could be read."""
        rest, complete = self.native.rest()
        self._bar.close()
        self.warn()
        return rest, complete

    def warn(self) -> None:
        """Hands on what the command said."""
        for line, _path, _offset in self.native.said():
            if line.startswith("flowsieve: "):
                warnings.warn(line.removeprefix("flowsieve: "), InputWarning, stacklevel=_callers_level())
            else:
                _log.info(line)


def _callers_level() -> int:
    """How far up whoever called the package is, so that a warning names their line."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__package__") == __package__:
        level, frame = level + 1, frame.f_back
    return level


class _Bar:
    """Progress in the form that was asked for."""

    def __init__(self, progress: Progress) -> None:
        self._seen = 0
        self._own = False
        if progress is True:
            from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]

            progress, self._own = tqdm(unit="B", unit_scale=True), True
        self._progress = None if progress is False else progress
        self.report: Callable[[int, int, int | None], None] | None = (
            None if self._progress is None else self._report
        )

    def _report(self, done: int, packets: int, total: int | None) -> None:
        bar: Any = self._progress
        if not hasattr(bar, "update"):
            bar(done, packets, total)
            return
        if total is not None:
            bar.total = total
        bar.update(done - self._seen)
        self._seen = done

    def close(self) -> None:
        if self._own and self._progress is not None:
            self._progress.close()
