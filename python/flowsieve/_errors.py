"""What can go wrong."""

from __future__ import annotations

import os


class Error(Exception):
    """A run without a result.

    Attributes:
        path: the file that stopped it, if it was one.
        offset: the byte in that file, if it is known.
    """

    path: str | None
    offset: int | None

    def __init__(
        self, sentence: str, path: str | os.PathLike[str] | None = None, offset: int | None = None
    ) -> None:
        super().__init__(sentence)
        self.path = None if path is None else os.fspath(path)
        self.offset = offset


class UsageError(Error, ValueError):
    """The arguments do not make sense."""


class InputWarning(UserWarning):
    """Something could not be read, or deserves a remark. The result holds everything else."""


def failure(
    sentence: str, is_usage: bool, path: str | os.PathLike[str] | None, offset: int | None
) -> Error:
    """The exception that the native part raises."""
    if is_usage:
        sentence = sentence.removeprefix("error: ").split("\n\nUsage:")[0].split("\n\nFor more")[0]
        # The parser lists the missing arguments on further lines.
        return UsageError(" ".join(sentence.split()), path, offset)
    return Error(sentence, path, offset)
