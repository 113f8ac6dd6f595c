"""Filters by themselves: for experiments in a notebook, and for those that a count saved."""

from __future__ import annotations

import dataclasses
import operator
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, SupportsFloat, SupportsIndex

from . import _native
from ._errors import InputWarning, UsageError
from ._run import ADDRESSES, StrPath, Value, listed, word
from ._run import path as named_path


@dataclasses.dataclass(frozen=True)
class Estimate:
    """How many distinct elements a filter has."""

    distinct: float | None
    """The estimate, which has no bias; None if only bounds are known, as of a union of crowded filters."""
    std_error: float | None
    """Its standard error."""
    lower: int
    """Lower bound: with the upper one it holds in 95 of 100 cases or more."""
    upper: int | None
    """Upper bound; None if the filter is too full to say."""


class Filter:
    """A filter that answers whether it has seen an element, and for some structures whether it has seen values together.

    An element has one value for each attribute. A value is an integer of 64 bits, ``bytes`` (or a ``bytearray`` or ``memoryview``
    of them), ``str``, or an address of ``ipaddress``; columns of values are arrays of one dimension, or lists. The digest of an
    integer is that of its 8 bytes, little-endian, so ``1`` and ``numpy.uint64(1)`` are the same value and ``b"1"`` is another.

    >>> import flowsieve as fs
    >>> f = fs.Filter("cmdbf", memory="64KiB", attributes=["src", "dst"])
    >>> f.insert([1, 2, 3], [10, 20, 30])
    >>> f.contains([1, 1], [10, 99]).tolist()
    [True, False]
    >>> f.query(src=1), f.query(src=7)
    ('yes', 'no')
    """

    def __init__(
        self,
        structure: str = "subset",
        *,
        memory: Value | None = None,
        attributes: SupportsIndex | Sequence[str] = 1,
        fpr: SupportsFloat | None = None,
        expect: SupportsIndex | None = None,
        seed: SupportsIndex = 0,
        shards: SupportsIndex = 1,
    ) -> None:
        """An empty filter.

        Args:
            structure: one of the structures of ``flowsieve count --filter`` but ``exact``, ``hll`` and ``ell``, which are no filters.
            memory: bytes, or text such as ``"64KiB"``. Default: 256 KiB, unless fpr is given.
            attributes: how many there are, or their names.
            fpr: false-positive rate for ``expect`` elements, which sizes the filter instead of memory.
            expect: distinct elements; chooses the number of hash functions.
            seed: seed of the digests. Filters of one seed have a union.
            shards: partitions with a filter each.
        """
        names = [f"a{i}" for i in range(attributes)] if isinstance(attributes, SupportsIndex) else listed(attributes)
        if not all(isinstance(name, str) for name in names):
            raise UsageError(f"attributes: give their number or a list of names, not {attributes!r}")
        if not names or len(set(names)) < len(names):
            raise UsageError(f"attributes: a filter has one or more, with different names, not {attributes!r}")
        if any("," in name for name in names):
            raise UsageError(f"attributes: a name has no comma, so give a list of names, not {attributes!r}")
        if memory is None and fpr is None:
            memory = "256KiB"
        size = None if memory is None else word(memory, "memory")
        if fpr is not None and not isinstance(fpr, SupportsFloat):
            raise UsageError(f"fpr: a rate is a number between 0 and 1, not {fpr!r}")
        for name, value, bits in (("expect", expect or 0, 64), ("seed", seed, 64), ("shards", shards, 32)):
            if not (isinstance(value, SupportsIndex) and 0 <= operator.index(value) < 1 << bits):
                raise UsageError(f"{name}: give a whole number of {bits} bits, 0 or more, not {value!r}")
        try:
            self._native = _native.Filter(word(structure, "structure"), names, size, fpr, expect, seed, shards)
        except (OverflowError, TypeError, UnicodeError) as error:
            raise UsageError(str(error)) from None

    @classmethod
    def _of(cls, native: _native.Filter) -> Filter:
        made = cls.__new__(cls)
        made._native = native
        return made

    @classmethod
    def load(cls, path: StrPath) -> Filter:
        """A filter that `save` or ``flowsieve count --save-filter`` wrote. Warns if it is not `complete`."""
        named = named_path(path, "path")
        made = cls._of(_native.Filter.load(named))
        if not made.complete:
            sentence = f"{named}: an input could not be read to its end when this filter was saved, so `no` means not seen in what was read"
            warnings.warn(sentence, InputWarning, stacklevel=2)
        return made

    def save(self, path: StrPath) -> None:
        """Saves the filter, whole or not at all. Links are followed, and a device or a pipe is written to."""
        self._native.save(named_path(path, "path"))

    @property
    def attributes(self) -> list[str]:
        """The names of the attributes, in order."""
        return self._native.attributes()[0]

    @property
    def element(self) -> str | None:
        """What a count inserted, such as ``host-pair``; None for plain values."""
        return self._native.attributes()[1]

    @property
    def complete(self) -> bool:
        """Whether every input was read to its end when a count saved the filter; if not, ``no`` means not seen in what was read."""
        return self._native.is_complete()

    @property
    def stage(self) -> int:
        """The filter looks at one element in 2 to this power: more than 0 only for a count's filter that was crowded."""
        return self._native.stage()

    def insert(self, *columns: Any) -> None:
        """Inserts elements: a column of values for each attribute, or one value each."""
        self._native.insert(self._columns(columns))

    def remove(self, *columns: Any) -> None:
        """Undoes an insertion of each element. Only counting structures can."""
        if not self._native.remove(self._columns(columns)):
            raise UsageError(f"elements cannot be removed from {self._native.describe()[0]}; counting can")

    def contains(self, *columns: Any) -> Any:
        """Whether elements were inserted: of columns an array (a list without NumPy), of single values a bool.

        False is certain; True is wrong at the filter's false-positive rate. Of a filter that a count saved the argument is text such
        as ``"10.0.0.1,10.0.0.2"``.
        """
        if self.element is not None:
            answer = self._asked(columns)
            if answer == "unknown":
                looks = f"looks at one element in {1 << self.stage} and not at this one"
                why = looks if self.stage > 0 else "keeps nothing about such a question"
                raise UsageError(f"the filter {why}; query() says unknown")
            return answer != "no"
        answers = self._native.contains(self._columns(columns))
        if not _is_column(columns[0]):
            return answers == b"\1"
        try:
            import numpy
        except ImportError:
            return [answer == 1 for answer in answers]
        return numpy.frombuffer(answers, dtype=numpy.bool_)

    def __contains__(self, element: Any) -> bool:
        values = element if isinstance(element, tuple) else (element,)
        return bool(self.contains(*values))

    def query(self, **values: Any) -> str:
        """What the filter knows of elements with these values of some attributes, by name.

        ``yes``: seen, or a false positive; ``no``: not seen, for certain; ``apart``: each value was seen, but perhaps in different
        elements; ``unknown``: the filter keeps nothing about such a question, or does not look at this element (`stage`).
        """
        names = self.attributes
        wrong = [name for name in values if name not in names]
        if wrong:
            raise UsageError(f"there is no attribute {wrong[0]}; there are {', '.join(names)}")
        if self.element is not None:
            return self._asked(["*" if values.get(name) is None else values[name] for name in names])
        return self._native.query([None if values.get(name) is None else _value(values[name]) for name in names])

    def estimate(self) -> Estimate | None:
        """How many distinct elements were inserted; None if the structure cannot say."""
        estimate = self._native.estimate()
        return None if estimate is None else Estimate(*estimate)

    def __or__(self, other: Filter) -> Filter:
        """The filter of the elements of both. They need the same structure, memory, seed, shards and attributes."""
        if not isinstance(other, Filter):
            return NotImplemented
        # A union with itself is a copy.
        united = self._native.copy()
        united.unite(other._native)
        return Filter._of(united)

    def __ior__(self, other: Filter) -> Filter:
        if not isinstance(other, Filter):
            return NotImplemented
        self._native.unite(other._native)
        return self

    @property
    def memory_bytes(self) -> int:
        """Bytes of the arrays."""
        return self._native.describe()[1]

    @property
    def fill_ratio(self) -> float:
        """Share of the bits, or cells, that are in use."""
        return self._native.describe()[2]

    def __repr__(self) -> str:
        name, size, fill, seed, _ = self._native.describe()
        attributes = ", ".join(self.attributes)
        mark = "" if self.complete else ", not complete"
        return f"<Filter {name} of ({attributes}), {size:,} bytes, {fill:.1%} in use, seed {seed}{mark}>"

    def _asked(self, values: Sequence[Any]) -> str:
        """Queries a filter that a count saved."""
        if any(map(_is_column, values)):
            raise UsageError("a filter that a count saved is asked for one element at a time; give single values, not columns")
        try:
            return self._native.query_text(",".join(map(str, values)))
        except UnicodeError as error:
            raise UsageError(f"a value cannot be written as UTF-8: {error}") from None

    def _columns(self, columns: tuple[Any, ...]) -> list[bytes | list[bytes]]:
        if self.element is not None:
            raise UsageError(f"the elements of this filter are {self.element}s from captures; make a Filter for values")
        names = self.attributes
        if len(columns) != len(names):
            raise UsageError(f"there are {len(names)} attributes ({', '.join(names)}), not {len(columns)}")
        return [_column(column) for column in columns]


def _is_column(values: Any) -> bool:
    if isinstance(values, (str, bytes, bytearray, int, *ADDRESSES)) or getattr(values, "ndim", None) == 0:
        return False
    return isinstance(values, Iterable) and not _is_bytes(values)


def _is_bytes(value: Any) -> bool:
    """Whether these are bytes. Other views of memory are columns of numbers."""
    return isinstance(value, (bytes, bytearray)) or (isinstance(value, memoryview) and value.format == "B" and value.ndim == 1)


def _column(values: Any) -> bytes | list[bytes]:
    """A column as numbers of 64 bits, or as bytes."""
    values = values if _is_column(values) else [values]
    if hasattr(values, "to_numpy"):
        try:
            values = values.to_numpy()
        except ValueError:
            # Pyarrow converts only numbers without nulls.
            values = values.to_pylist()
    if getattr(values, "ndim", 1) != 1:
        name = type(values).__name__
        raise UsageError(f"a column has one dimension, and this {name} has {values.ndim}; give each of its columns by itself")
    # Of a masked array, the bytes would be what its mask hides.
    if hasattr(values, "fill_value") and values.mask.any():
        raise UsageError("a column has masked values, which are none; leave them out, for example with .compressed()")
    kind = getattr(getattr(values, "dtype", None), "kind", None)
    if kind in ("i", "u"):
        words: bytes = values.astype("<u8", copy=False).tobytes()
        return words
    return [_value(value) for value in values]


def _value(value: Any) -> bytes:
    if _is_bytes(value):
        return bytes(value)
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeError as error:
            raise UsageError(f"a value cannot be written as UTF-8, so give it as bytes: {error}") from None
    if hasattr(value, "packed"):
        return bytes(value.packed)
    try:
        number = operator.index(value)
    except TypeError:
        raise UsageError(f"a value is an integer, bytes, str or an address, not {type(value).__name__}") from None
    if not -(1 << 63) <= number < 1 << 64:
        raise UsageError(f"{number} has more than 64 bits; give it as bytes, str or an address")
    return int(number & (1 << 64) - 1).to_bytes(8, "little")
