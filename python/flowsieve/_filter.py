"""Filters by themselves: for experiments in a notebook, and for those that a count saved."""

from __future__ import annotations

import dataclasses
import ipaddress
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from . import _native
from ._errors import InputWarning, UsageError
from ._run import StrPath, Value, listed, word
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

    An element has one value for each attribute. A value is an integer of 64 bits, ``bytes`` or ``str``; columns of values are
    NumPy arrays or lists. The digest of an integer is that of its 8 bytes, little-endian, so ``1`` and ``numpy.uint64(1)``
    are the same value and ``b"1"`` is another.

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
        attributes: int | Sequence[str] = 1,
        fpr: float | None = None,
        expect: int | None = None,
        seed: int = 0,
        shards: int = 1,
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
        names = [f"a{i}" for i in range(attributes)] if isinstance(attributes, int) else listed(attributes)
        if not names or len(set(names)) < len(names):
            raise UsageError(f"attributes: a filter has one or more, with different names, not {attributes!r}")
        if any("," in name for name in names if isinstance(name, str)):
            raise UsageError(f"attributes: a name has no comma, so give a list of names, not {attributes!r}")
        if memory is None and fpr is None:
            memory = "256KiB"
        size = None if memory is None else word(memory, "memory")
        try:
            self._native = _native.Filter(structure, names, size, fpr, expect, seed, shards)
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
            answer = self._native.query_text(",".join(map(str, columns)))
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
            given = [values.get(name) for name in names]
            return self._native.query_text(",".join("*" if one is None else str(one) for one in given))
        return self._native.query([None if values.get(name) is None else _value(values[name]) for name in names])

    def estimate(self) -> Estimate | None:
        """How many distinct elements were inserted; None if the structure cannot say."""
        estimate = self._native.estimate()
        return None if estimate is None else Estimate(*estimate)

    def __or__(self, other: Filter) -> Filter:
        """The filter of the elements of both. They need the same structure, memory, seed, shards and attributes."""
        # A union with itself is a copy.
        united = self._native.copy()
        united.unite(other._native)
        return Filter._of(united)

    def __ior__(self, other: Filter) -> Filter:
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

    def _columns(self, columns: tuple[Any, ...]) -> list[bytes | list[bytes]]:
        if self.element is not None:
            raise UsageError(f"the elements of this filter are {self.element}s from captures; make a Filter for values")
        names = self.attributes
        if len(columns) != len(names):
            raise UsageError(f"there are {len(names)} attributes ({', '.join(names)}), not {len(columns)}")
        return [_column(column) for column in columns]


def _is_column(values: Any) -> bool:
    return not isinstance(values, (str, bytes, int, ipaddress.IPv4Address, ipaddress.IPv6Address)) and isinstance(values, Iterable)


def _column(values: Any) -> bytes | list[bytes]:
    """A column as numbers of 64 bits, or as bytes."""
    values = values if _is_column(values) else [values]
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    # Of a masked array, the bytes would be what its mask hides.
    if hasattr(values, "fill_value") and values.mask.any():
        raise UsageError("a column has masked values, which are none; leave them out, for example with .compressed()")
    kind = getattr(getattr(values, "dtype", None), "kind", None)
    if kind in ("i", "u"):
        words: bytes = values.astype("<u8", copy=False).tobytes()
        return words
    return [_value(value) for value in values]


def _value(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if hasattr(value, "packed"):
        return bytes(value.packed)
    if hasattr(value, "__index__"):
        number = value.__index__()
        if not -(1 << 63) <= number < 1 << 64:
            raise UsageError(f"{number} has more than 64 bits; give it as bytes, str or an address")
        return int(number & (1 << 64) - 1).to_bytes(8, "little")
    raise UsageError(f"a value is an integer, bytes, str or an address, not {type(value).__name__}")
