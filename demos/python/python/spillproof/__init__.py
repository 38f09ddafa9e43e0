"""Commitments, openings, multi-scalar multiplications and transforms over BN254 within a budget of bytes.

Scalars in arrays are 32 bytes each, little-endian, below `MODULUS`: uint8 of shape (n, 32), or uint64 of shape (n, 4), or `bytes`. Points in arrays
are 64 bytes each: x, then y; infinity is all zeros. Nothing is in Montgomery form. Single scalars are integers, single points are `Point`s.

What is larger than the memory goes to a `Column`, in pieces. Calls work without the interpreter's lock: do not write to an array while a call reads
it. Ctrl-C during a call is raised when the call is done.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from . import _native
from ._errors import (
    BudgetError,
    DamagedError,
    Error,
    FileError,
    FormatError,
    InternalError,
    InvalidError,
    SystemError,
)

__all__ = [
    "MODULUS", "BudgetError", "Column", "DamagedError", "Error", "FileError", "FormatError", "InternalError", "InvalidError",
    "Opening", "Plan", "Point", "Points", "Session", "Srs", "SrsInfo", "Step", "SystemError", "from_ints", "plan", "to_ints",
]  # fmt: skip

MODULUS = 0x30644E72E131A029B85045B68181585D2833E84879B9709143E1F593F0000001
"""The modulus of the scalar field."""

SCALAR_BYTES = 32
POINT_BYTES = 64
PIECE_SCALARS = 1 << 13
"""Scalars that `Column.chunks` reads at a time."""

Array = npt.NDArray[Any]
Data = Array | bytes | bytearray | memoryview
"""Scalars or points: arrays, or their bytes."""
Basis = Literal["monomial", "lagrange"]
Roots = Literal["halo2", "arkworks"]
Memory = int | str | None
Path = str | os.PathLike[str]


def from_ints(values: Iterable[int]) -> npt.NDArray[np.uint8]:
    """Integers, reduced, as an array of scalars."""
    data = b"".join((value % MODULUS).to_bytes(SCALAR_BYTES, "little") for value in values)
    return np.frombuffer(data, dtype=np.uint8).reshape(-1, SCALAR_BYTES)


def to_ints(scalars: Array) -> list[int]:
    """An array of scalars as integers."""
    data = scalars.tobytes()
    return [int.from_bytes(data[at : at + SCALAR_BYTES], "little") for at in range(0, len(data), SCALAR_BYTES)]


def _scalar(value: int) -> bytes:
    return (value % MODULUS).to_bytes(SCALAR_BYTES, "little")


@dataclass(frozen=True)
class Point:
    """A point of G1: its coordinates, both 0 at infinity."""

    x: int
    y: int

    @classmethod
    def from_bytes(cls, data: bytes) -> Point:
        """From 64 bytes: x, then y, little-endian."""
        if len(data) != POINT_BYTES:
            raise InvalidError(f"a point has {POINT_BYTES} bytes, and {len(data)} were given")
        half = POINT_BYTES // 2
        return cls(int.from_bytes(data[:half], "little"), int.from_bytes(data[half:], "little"))

    def __bytes__(self) -> bytes:
        half = POINT_BYTES // 2
        return self.x.to_bytes(half, "little") + self.y.to_bytes(half, "little")


@dataclass(frozen=True)
class Opening:
    """A polynomial's value at a point, and the proof of it."""

    value: int
    proof: Point


@dataclass(frozen=True)
class SrsInfo:
    """What an SRS is: 2^k points in each form, the digest that names its content, the generator of G2 and the secret times that (128 bytes each:
    x.c0, x.c1, y.c0, y.c1)."""

    k: int
    has_monomial: bool
    has_lagrange: bool
    root: bytes
    g2: bytes
    s_g2: bytes


@dataclass(frozen=True)
class Step:
    """A step of a plan."""

    name: str
    peak_bytes: int
    passes: int
    bytes_read: int
    bytes_written: int
    seconds: float


@dataclass(frozen=True)
class Plan:
    """What work over columns will take. Seconds are a guess for two cores and an NVMe disk."""

    budget_bytes: int
    smallest_budget_bytes: int
    peak_bytes: int
    disk_bytes: int
    threads: int
    steps: tuple[Step, ...]


def plan(
    job: Literal["commit", "open", "msm", "ntt"], count: int, *, memory: Memory = None, threads: int = 0
) -> Plan:
    """What a job over `count` scalars will take. A budget that is too small is a `BudgetError` with the smallest one that works."""
    *numbers, steps = _native.plan(job, count, memory, threads)
    budget, smallest, peak, disk, used_threads = numbers
    return Plan(budget, smallest, peak, disk, used_threads, tuple(Step(*step) for step in steps))


class Column:
    """Scalars on disk: made by `Session.column`, filled by `push` from its start on, and used when it is full."""

    def __init__(self, native: _native.Column) -> None:
        self._native = native

    def __len__(self) -> int:
        return len(self._native)

    def push(self, values: Data) -> None:
        """Appends scalars."""
        self._native.push(values)

    def read(self, start: int = 0, count: int | None = None, *, out: Array | None = None) -> Array:
        """Scalars from `start` on, as many as `count` or `out` says, else all that follow."""
        if out is None:
            count = max(len(self) - start, 0) if count is None else count
            out = np.empty((count, SCALAR_BYTES), dtype=np.uint8)
        self._native.read(start, out)
        return out

    def chunks(self, count: int = PIECE_SCALARS) -> Iterator[Array]:
        """All scalars, `count` at a time."""
        for start in range(0, len(self), count):
            yield self.read(start, min(count, len(self) - start))

    def ntt(
        self, *, log_n: int | None = None, inverse: bool = False, shift: int = 1, roots: Roots = "halo2"
    ) -> Column:
        """As `Session.ntt`, from disk to disk."""
        return Column(self._native.ntt(_domain(len(self), log_n, inverse, shift, roots)))


class Points:
    """Points on disk, for sums: made by `Session.points`, filled by `push`, and used when they are all there."""

    def __init__(self, native: _native.Points) -> None:
        self._native = native

    def __len__(self) -> int:
        return len(self._native)

    def push(self, points: Data) -> None:
        """Appends points, each of which is checked."""
        self._native.push(points)

    def msm(self, scalars: Column | Data) -> Point:
        """The sum of scalars times points; there may be fewer scalars than points."""
        return Point.from_bytes(self._native.msm(_values(scalars)))


class Srs:
    """An open SRS file."""

    def __init__(self, native: _native.Srs) -> None:
        self._native = native

    @property
    def info(self) -> SrsInfo:
        """What it is."""
        return SrsInfo(*self._native.inspect())

    def commit(self, polynomial: Column | Data, *, basis: Basis = "monomial") -> Point:
        """Commits to a polynomial: its coefficients, the lowest first; or, with "lagrange", its values on halo2's domain."""
        return self.commit_many([polynomial], basis=basis)[0]

    def commit_many(
        self, polynomials: Iterable[Column | Data], *, basis: Basis = "monomial"
    ) -> list[Point]:
        """Commits to polynomials, with one pass over the SRS for as many as memory takes."""
        native = self._native.commit([_values(polynomial) for polynomial in polynomials], basis)
        return [Point.from_bytes(point) for point in native]

    def open(self, coefficients: Column | Data, point: int) -> Opening:
        """Opens a polynomial at a point."""
        value, proof = self._native.open(_values(coefficients), _scalar(point))
        return Opening(int.from_bytes(value, "little"), Point.from_bytes(proof))

    def check(self, commitment: Point, point: int, opening: Opening) -> bool:
        """Whether an opening proves the value of the polynomial behind a commitment: one pairing equation."""
        arguments = (bytes(commitment), _scalar(point), _scalar(opening.value), bytes(opening.proof))
        return self._native.check(*arguments)


class Session:
    """A memory budget, a folder for scratch files, and threads. What is opened or begun in it is charged to its budget.

    `memory` is a number of bytes or a text such as "2GiB"; without it, most of the memory that is there. `dir` is best on NVMe; without it, the folder
    of SPILLPROOF_DIR, or the system's one for temporary files. `threads` 0 is one for each core. After a fork, a process has to make its own.
    """

    def __init__(self, memory: Memory = None, dir: Path | None = None, threads: int = 0) -> None:
        self._native = _native.Session(memory, dir, threads)

    @property
    def memory_bytes(self) -> int:
        """The budget."""
        return self._native.memory_bytes

    @property
    def held_bytes(self) -> int:
        """What is held of it now."""
        return self._native.held_bytes

    @property
    def dir(self) -> str:
        """The folder."""
        return os.fspath(self._native.dir)

    @property
    def threads(self) -> int:
        """The number of threads."""
        return self._native.threads

    def generate_srs(self, path: Path, k: int, secret: int) -> None:
        """Makes an INSECURE SRS file of 2^k points, for tests: whoever knows the secret can prove anything."""
        self._native.generate_srs(path, k, _scalar(secret))

    def import_srs(self, source: Path, target: Path) -> None:
        """Imports a ParamsKZG file of halo2. Every point is checked."""
        self._native.import_srs(source, target)

    def verify_srs(self, path: Path) -> int:
        """Reads all of an SRS file, and checks that its parts belong together. Gives k."""
        return self._native.verify_srs(path)

    def open_srs(self, path: Path) -> Srs:
        """Opens an SRS file."""
        return Srs(self._native.open_srs(path))

    def column(self, values: int | Data) -> Column:
        """A column for a number of scalars, which pushes fill; or one of the scalars of an array."""
        if isinstance(values, int):
            return Column(self._native.begin_column(values))
        column = Column(self._native.begin_column(_count(values, SCALAR_BYTES)))
        column.push(values)
        return column

    def points(self, points: int | Data) -> Points:
        """Room for a number of points, which pushes fill; or the points of an array."""
        if isinstance(points, int):
            return Points(self._native.begin_points(points))
        on_disk = Points(self._native.begin_points(_count(points, POINT_BYTES)))
        on_disk.push(points)
        return on_disk

    def msm(self, points: Data, scalars: Column | Data) -> Point:
        """The sum of scalars times points. The points are copied to the disk."""
        return Point.from_bytes(self._native.msm(points, _values(scalars)))

    def ntt(
        self,
        values: Data,
        *,
        log_n: int | None = None,
        inverse: bool = False,
        shift: int = 1,
        roots: Roots = "halo2",
        out: Array | None = None,
    ) -> Array:
        """Coefficients to values on the coset `shift * <root>` of 2^log_n points, or back; fewer count as padded with zeros.

        `roots` says whose root of unity it is: from 2^6 points on, those of halo2 and arkworks differ. The Lagrange form of an SRS is for halo2's.
        `out` may be `values`.
        """
        domain = _domain(_count(values, SCALAR_BYTES), log_n, inverse, shift, roots)
        if out is None:
            dtype = values.dtype if isinstance(values, np.ndarray) else np.dtype(np.uint8)
            out = np.empty((1 << domain[0], SCALAR_BYTES // dtype.itemsize), dtype=dtype)
        self._native.ntt(values, domain, out)
        return out


def _values(values: Column | Data) -> _native.Column | Data:
    return values._native if isinstance(values, Column) else values


def _count(values: Data, element_bytes: int) -> int:
    data_bytes = values.nbytes if isinstance(values, (np.ndarray, memoryview)) else len(values)
    return data_bytes // element_bytes


def _domain(
    count: int, log_n: int | None, inverse: bool, shift: int, roots: Roots
) -> tuple[int, str, bool, bytes]:
    log_n = max(count - 1, 0).bit_length() if log_n is None else log_n
    if not 0 <= log_n <= 28:
        raise InvalidError(f"a domain of 2^{log_n} points: the scalar field has domains of at most 2^28 points")
    return log_n, roots, inverse, _scalar(shift)
