"""The exceptions of this package. Each is an `Error`, and one of Python's own where that says the same."""

from __future__ import annotations


class Error(Exception):
    """Something that the engine refused, or could not do."""


class InvalidError(Error, ValueError):
    """A mistake in a call: a value, a length, a name, a column that is not full."""


class BudgetError(Error):
    """The memory budget is too small. With `needed_bytes`, that step would have gone on."""

    needed_bytes: int | None

    def __init__(self, message: str, needed_bytes: int | None = None) -> None:
        super().__init__(message)
        self.needed_bytes = needed_bytes


class FileError(Error):
    """The system refused an operation on a file, or the disk is full."""


class FormatError(Error):
    """A file is not what it should be."""


class DamagedError(Error):
    """The disk gave back other bytes than were written."""


class SystemError(Error):
    """The system does not give what is needed: memory, threads, a session after a fork."""


class InternalError(Error):
    """A defect of the library: please report it."""


_OF_KIND: dict[int, type[Error]] = {
    1: InvalidError,
    3: FileError,
    4: FormatError,
    5: DamagedError,
    6: SystemError,
    7: InternalError,
}


def of(kind: int, message: str, needed_bytes: int | None) -> Error:
    """The exception for a kind of error, by its number in the engine."""
    if kind == 2:
        return BudgetError(message, needed_bytes)
    return _OF_KIND.get(kind, InternalError)(message)
