"""Captures on local disks and in the file systems of fsspec: what is there, how large it is, and its bytes."""

from __future__ import annotations

import contextlib
import json
import os
import posixpath
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

from . import _native
from ._errors import Error, UsageError
from ._run import named_paths, paths

#: Bytes that are asked of a remote file at first: many are opened only to look at the head.
HEAD_BYTES = 64 << 10
#: Bytes that are asked for at a time once it is clear that the file is read on.
REQUEST_BYTES = 16 << 20
#: Fields of fsspec that identify the content of a file, most reliable first: some listings round times.
_MARKS = ("ETag", "etag", "generation", "mtime", "LastModified", "last_modified", "updated", "created")
#: Requests for sizes that are under way at once.
_AT_ONCE = 16
#: Files of one directory from which on it is listed instead of asking for each of them.
_WORTH_A_LISTING = 32


def is_remote(path: str) -> bool:
    """Whether this names something in a file system that is not the operating system's."""
    return "://" in path


class File(NamedTuple):
    """A capture; its size is unknown if the file system does not say, or it cannot be looked at."""

    path: str
    size: int | None
    #: Size and marks of a remote file, as JSON.
    known: str | None = None


def _file(path: str, about: dict[str, Any]) -> File:
    known = {name: _mark(about[name]) for name in ("size", *_MARKS) if about.get(name) not in (None, "")}
    return File(path, about.get("size"), json.dumps(known) if "size" in known else None)


def _mark(value: Any) -> float | str:
    """Normalizes a mark: times become numbers, and ETags lose their quotes. Listings and ``info`` differ in both."""
    if hasattr(value, "timestamp"):
        return float(value.timestamp())
    return value if isinstance(value, (int, float)) else str(value).strip('"')


def _is_same(before: str | None, after: str | None) -> bool:
    """Whether two looks at a file show the same content. Marks that only one look has are not compared."""
    if before is None or after is None:
        return True
    one, other = json.loads(before), json.loads(after)
    both = (name for name in _MARKS if name in one and name in other)
    mark = next((name for name in both if isinstance(one[name], str) == isinstance(other[name], str)), "size")
    return all(one.get(name) == other.get(name) for name in {"size", mark})


def _system(path: str, storage_options: dict[str, Any] | None) -> tuple[Any, str]:
    import fsspec

    system, inner = fsspec.core.url_to_fs(path, **(storage_options or {}))
    return system, inner


def _reason(error: BaseException) -> str:
    """Returns an error in one line, with its class unless it is an `OSError`: many texts say little without it."""
    line = next(filter(None, map(str.strip, str(error).splitlines())), "")
    return line if line and isinstance(error, OSError) else ": ".join(filter(None, (type(error).__name__, line)))


@contextlib.contextmanager
def _named(path: str) -> Iterator[None]:
    """Turns every exception of the file system into an error that names the file."""
    try:
        yield
    except Error:
        raise
    except FileNotFoundError as error:
        cause = error.__cause__
        # Over HTTP, fsspec also raises it for a refused connection, and for any status of 400 or more.
        if isinstance(cause, OSError) and not isinstance(cause, FileNotFoundError) or getattr(cause, "status", 404) not in (404, 410):
            raise Error(f"{path}: {_reason(cause)}", path) from error  # type: ignore[arg-type]
        raise Error(f"{path}: no such file; check the address", path) from error
    except ImportError as error:
        raise UsageError(f"{path}: {error}; install it on the driver and on all workers", path) from error
    except Exception as error:
        if str(error).startswith("Protocol not known"):
            sentence = "fsspec does not know this scheme; use a lower-case one such as s3://, gs://, abfs://, hdfs:// or https://"
            raise UsageError(f"{path}: {sentence}", path) from error
        raise Error(f"{path}: {_reason(error)}", path) from error


class RemoteFile:
    """A file of fsspec, which is opened at an offset. Up to `end` it is read ahead, behind it little by little."""

    def __init__(self, path: str, known: str | None = None, storage_options: dict[str, Any] | None = None, end: int | None = None) -> None:
        self.path, self.end, self._storage_options = path, end, storage_options
        self._known: str | None = known

    def __call__(self, offset: int) -> ReadAhead:
        """The file from this offset on. Nothing is asked of the file system before the first bytes are read."""
        return ReadAhead(self, offset)

    def begun(self, offset: int) -> ReadAhead:
        """The same, with the first bytes.

        Raises:
            Error: they cannot be read.
        """
        with _named(self.path):
            file = self(offset)
            file.begin()
            return file

    def system(self) -> tuple[Any, str]:
        """The file system and the path in it."""
        return _system(self.path, self._storage_options)

    def size(self) -> int:
        """Bytes of the file.

        Raises:
            Error: the file system does not say.
        """
        self.look()
        size = json.loads(self._known or "{}").get("size")
        if size is None:
            raise Error(f"{self.path}: the file system does not say how large this file is; copy it to one that does", self.path)
        return int(size)

    def look(self) -> None:
        """Looks at the file, unless it is known.

        Raises:
            Error: the file cannot be looked at.
        """
        if self._known is None:
            self._known = self._now()

    def check(self) -> None:
        """Looks at the file once more.

        Raises:
            Error: its content is another one, or it cannot be looked at.
        """
        if not _is_same(self._known, self._now()):
            raise Error(f"{self.path}: this file changed after the run was planned; run again when it is whole", self.path)

    def _now(self) -> str | None:
        with _named(self.path):
            system, inner = self.system()
            system.invalidate_cache(inner)
            return _file(self.path, system.info(inner)).known


class SkippedFile:
    """A remote file that may be unreadable: the driver looks at it as at an empty one, and a worker says why."""

    def __init__(self, file: RemoteFile | ReadAhead) -> None:
        self._file = file

    def __call__(self, offset: int) -> SkippedFile:
        """The file from this offset on."""
        assert isinstance(self._file, RemoteFile)
        return SkippedFile(self._file(offset))

    def read(self, length: int) -> bytes:
        """Reads up to this many bytes; empty at the end, or if the file cannot be read."""
        assert isinstance(self._file, ReadAhead)
        with contextlib.suppress(Exception):
            return self._file.read(length)
        return b""


class ReadAhead:
    """Reads a file in requests that grow, the next one while the last is used."""

    def __init__(self, file: RemoteFile, offset: int) -> None:
        self._file, self._offset = file, offset
        self._system: Any = None
        self._threads: ThreadPoolExecutor | None = None
        self._next: Future[bytes] | None = None
        self._piece, self._at = b"", 0
        self._length = HEAD_BYTES

    def _request(self, offset: int, length: int) -> bytes:
        size = self._file.size()
        bound = self._file.end
        if bound is not None and offset < bound:
            size = min(size, bound)
        elif bound is not None:
            # Behind the range only the rest of a record is wanted.
            length = HEAD_BYTES
        end = min(offset + length, size)
        if offset >= end:
            return b""
        system, path = self._system or self._file.system()
        self._system = system, path
        piece: bytes = system.cat_file(path, start=offset, end=end)
        if len(piece) != end - offset:
            raise OSError(f"{len(piece)} of {end - offset} bytes came")
        return piece

    def begin(self) -> None:
        """Reads the first bytes."""
        self._piece = self._take()

    def read(self, length: int) -> bytes:
        """Reads up to this many bytes; empty at the end."""
        if self._at == len(self._piece):
            self._piece, self._at = self._take(), 0
        piece = self._piece[self._at : self._at + length]
        self._at += len(piece)
        return piece

    def _take(self) -> bytes:
        piece = self._next.result() if self._next else self._request(self._offset, self._length)
        self._offset += len(piece)
        self._next = None
        bound = self._file.size() if self._file.end is None else min(self._file.end, self._file.size())
        if piece and self._length == REQUEST_BYTES and self._offset < bound:
            self._threads = self._threads or ThreadPoolExecutor(1)
            self._next = self._threads.submit(self._request, self._offset, self._length)
        self._length = min(self._length * 16, REQUEST_BYTES)
        return piece

    def __del__(self) -> None:
        if self._threads:
            self._threads.shutdown(wait=False, cancel_futures=True)


def found(
    captures: Any, storage_options: dict[str, Any] | None = None, skip_unreadable: bool = False
) -> tuple[list[File], list[tuple[str, Any]]]:
    """The files that are named: absolute paths, and addresses of file systems. Patterns and directories are expanded.
    With them what is wrong with directories.

    Raises:
        Error: a file is missing and may not be, or nothing is there.
    """
    files: list[File] = []
    problems: list[tuple[str, Any]] = []
    named = named_paths(captures, "captures")
    looked_at = _looked_at([path for path in named if is_remote(path)], storage_options)
    for path in named:
        if is_remote(path):
            inside = looked_at[path]
            if isinstance(inside, Error):
                if not skip_unreadable or isinstance(inside, UsageError):
                    raise inside
                inside = [File(path, None)]
            files += inside
            continue
        # Workers may have other working directories.
        local = [os.path.abspath(one) for one in paths(path)]
        missing = [one for one in local if not os.path.exists(one)]
        if missing and not skip_unreadable:
            raise Error(f"{missing[0]}: no such file; check the path", missing[0])
        there, wrong = _native.captures(local)
        files += [File(str(os.fspath(one)), _size_of(one)) for one in there]
        problems += wrong
    if not files:
        raise Error(*problems[0]) if problems else UsageError("captures: name at least one capture")
    return files, problems


def _size_of(path: Any) -> int | None:
    # If the driver cannot read it, a worker reports why.
    with contextlib.suppress(OSError):
        return os.path.getsize(path)
    return None


def _looked_at(named: Iterable[str], storage_options: dict[str, Any] | None) -> dict[str, list[File] | Error]:
    """The files that each remote address stands for, or what is wrong with it. Addresses in one directory are looked up in a
    listing, and others all at once."""
    named = dict.fromkeys(named)
    folders: dict[str, list[str]] = {}
    for path in named:
        folders.setdefault(posixpath.dirname(path), []).append(path)
    listed: dict[str, File] = {}

    # File systems keep listings as long as the process lives.
    for inside in folders.values():
        with contextlib.suppress(Exception):
            _system(inside[0], storage_options)[0].invalidate_cache()

    def list_folder(folder: str) -> None:
        with contextlib.suppress(Exception):
            system, inner = _system(folder, storage_options)
            for one in system.ls(inner, detail=True):
                if one["type"] == "file" and one.get("size") is not None:
                    path = f"{folder}/{posixpath.basename(one['name'])}"
                    listed[path] = _file(path, one)

    def look(path: str) -> list[File] | Error:
        if path in listed:
            return [listed[path]]
        try:
            with _named(path):
                return _expanded(path, storage_options)
        except Error as error:
            return error

    with ThreadPoolExecutor(_AT_ONCE) as threads:
        list(threads.map(list_folder, (folder for folder, inside in folders.items() if len(inside) >= _WORTH_A_LISTING)))
        return dict(zip(named, threads.map(look, named)))


def _expanded(path: str, storage_options: dict[str, Any] | None) -> list[File]:
    """The files that a remote address stands for."""
    system, inner = _system(path, storage_options)
    try:
        # As with local files, a file of exactly this name comes before the pattern.
        about = system.info(inner)
        if about["type"] != "directory":
            return [_file(path, about)]
        matches = system.find(inner, detail=True)
    except Exception:
        if not any(mark in inner for mark in "*?["):
            raise
        matches = system.glob(inner, detail=True)
    files = sorted((name, about) for name, about in matches.items() if about["type"] != "directory")
    if not files:
        raise Error(f"{path}: no file matches this pattern", path)
    # The path within an archive comes first: `zip://*.pcap::file:///captures.zip`.
    outer, chain, archive = path.partition("::") if "://" in path.partition("::")[0] else (path, "", "")
    # Some systems leave the host out of their names, which may be another's there.
    before = outer.rstrip("/").removesuffix(inner)
    if before == outer.rstrip("/"):
        before = outer.split("://")[0] + "://"
    return [_file(before + name + chain + archive, about) for name, about in files]
