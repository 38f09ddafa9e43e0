"""The package against arithmetic in Python; and, for 2^20 coefficients, against what arkworks says."""

from __future__ import annotations

import os
import random
import signal
import threading
import tempfile
import unittest

import numpy as np

import spillproof
from spillproof import MODULUS, Point

SECRET = 5
# The commitment of arkworks to 2^20 coefficients: a test of the C library computes it.
ARKWORKS = os.path.join(os.path.dirname(__file__), "..", "..", "c", "tests", "commitment_2_20.hex")
LITTLE = 1 << 6
# The generator of G1.
GENERATOR = Point(1, 2)
BASE_MODULUS = 0x30644E72E131A029B85045B68181585D97816A916871CA8D3C208C16D87CFD47


def added(a: Point, b: Point) -> Point:
    """The sum of two points, by the textbook."""
    p = BASE_MODULUS
    if a == Point(0, 0):
        return b
    if b == Point(0, 0):
        return a
    if a.x == b.x:
        if (a.y + b.y) % p == 0:
            return Point(0, 0)
        slope = 3 * a.x * a.x * pow(2 * a.y, -1, p)
    else:
        slope = (b.y - a.y) * pow(b.x - a.x, -1, p)
    x = (slope * slope - a.x - b.x) % p
    return Point(x, (slope * (a.x - x) - a.y) % p)


def times(scalar: int, point: Point) -> Point:
    total = Point(0, 0)
    for bit in bin(scalar % MODULUS)[2:]:
        total = added(total, total)
        if bit == "1":
            total = added(total, point)
    return total


def evaluated(coefficients: list[int], point: int) -> int:
    value = 0
    for coefficient in reversed(coefficients):
        value = (value * point + coefficient) % MODULUS
    return value


def words(first: int, count: int) -> np.ndarray:
    """Scalars of splitmix64, as the C library's test has them: uint64, shape (count, 4)."""
    with np.errstate(over="ignore"):
        z = (np.arange(4 * first, 4 * (first + count), dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = (z ^ (z >> np.uint64(31))).reshape(-1, 4)
    z[:, 3] &= np.uint64(0x0FFFFFFFFFFFFFFF)
    return z


class Package(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = folder.name
        self.session = spillproof.Session("16MiB", self.dir, 2)

    def srs(self, k: int) -> spillproof.Srs:
        path = os.path.join(self.dir, f"{k}.srs")
        if not os.path.exists(path):
            self.session.generate_srs(path, k, SECRET)
        return self.session.open_srs(path)

    def test_a_large_polynomial(self) -> None:
        """2^20 coefficients, 32 MiB, in 16 MiB; fewer if the environment says so."""
        k = int(os.environ.get("SPILLPROOF_TEST_LOG_N", "20"))
        srs, column = self.srs(k), self.session.column(1 << k)
        at_secret, at_point, point = 0, 0, 11
        powers = [1, 1]
        for start in range(0, 1 << k, 1 << 13):
            piece = words(start, min(1 << 13, 1 << k))
            column.push(piece)
            for value in spillproof.to_ints(piece):
                at_secret = (at_secret + powers[0] * value) % MODULUS
                at_point = (at_point + powers[1] * value) % MODULUS
                powers = [powers[0] * SECRET % MODULUS, powers[1] * point % MODULUS]
        commitment = srs.commit(column)
        # The SRS is of a known secret, so the commitment is one product.
        self.assertEqual(commitment, times(at_secret, GENERATOR))
        if k == 20:
            with open(ARKWORKS, encoding="ascii") as file:
                self.assertEqual(bytes(commitment).hex(), file.read().strip())
        opening = srs.open(column, point)
        self.assertEqual(opening.value, at_point)
        self.assertEqual(opening.proof, times((at_secret - at_point) * pow(SECRET - point, -1, MODULUS), GENERATOR))
        self.assertTrue(srs.check(commitment, point, opening))
        self.assertFalse(srs.check(commitment, point + 1, opening))
        self.assertEqual(srs.commit(column.ntt(), basis="lagrange"), commitment)

    def test_arrays(self) -> None:
        srs = self.srs(6)
        values = [random.randrange(MODULUS) for _ in range(LITTLE)]
        as_bytes = spillproof.from_ints(values)
        as_words = as_bytes.view(np.uint64)
        self.assertEqual((as_bytes.shape, as_words.shape), ((LITTLE, 32), (LITTLE, 4)))
        commitment = times(evaluated(values, SECRET), GENERATOR)
        column = self.session.column(as_words)
        all_forms: list[spillproof.Column | spillproof.Data] = [as_bytes, as_words, as_bytes.tobytes(), bytearray(as_bytes.tobytes()), column]
        for given in all_forms:
            self.assertEqual(srs.commit(given), commitment)
            self.assertEqual(srs.open(given, 3).value, evaluated(values, 3))
        self.assertEqual(srs.commit_many([column, as_bytes[:1], as_bytes[:0]])[1:], [times(values[0], GENERATOR), Point(0, 0)])
        self.assertEqual(spillproof.to_ints(column.read(3, 2)), values[3:5])
        self.assertEqual([len(chunk) for chunk in column.chunks(30)], [30, 30, 4])

        points = [times(SECRET**i, GENERATOR) for i in range(4)]
        self.assertEqual(Point.from_bytes(bytes(points[1])), points[1])
        in_bytes = b"".join(map(bytes, points))
        expected = times(evaluated(values[:4], SECRET), GENERATOR)
        self.assertEqual(self.session.msm(in_bytes, as_bytes[:4]), expected)
        on_disk = self.session.points(4)
        on_disk.push(in_bytes[:64])
        on_disk.push(np.frombuffer(in_bytes[64:], dtype=np.uint64).reshape(-1, 8))
        self.assertEqual(on_disk.msm(as_words[:4]), expected)

        root = 0x30644E72E131A029B85045B68181585D2833E84879B9709143E1F593F0000000  # of order 2: the same for all
        self.assertEqual(
            spillproof.to_ints(self.session.ntt(as_bytes[:2], shift=7)),
            [evaluated(values[:2], 7), evaluated(values[:2], 7 * root % MODULUS)],
        )
        both: tuple[spillproof.Roots, ...] = ("halo2", "arkworks")
        for roots in both:
            transformed = self.session.ntt(as_words, shift=9, roots=roots)
            self.assertEqual(transformed.dtype, np.uint64)
            back = transformed.copy()
            self.session.ntt(back, shift=9, roots=roots, inverse=True, out=back)
            self.assertTrue((back == as_words).all())
            self.assertTrue((column.ntt(shift=9, roots=roots).read() == transformed.view(np.uint8)).all())
        padded = self.session.ntt(as_bytes[:3], log_n=3)
        self.assertEqual(spillproof.to_ints(padded)[0], sum(values[:3]) % MODULUS)

    def test_srs(self) -> None:
        srs = self.srs(6)
        self.assertEqual(self.session.verify_srs(os.path.join(self.dir, "6.srs")), 6)
        info = srs.info
        self.assertEqual((info.k, info.has_monomial, info.has_lagrange, len(info.root)), (6, True, True, 32))
        self.assertEqual((len(info.g2), len(info.s_g2)), (128, 128))
        with self.assertRaises(spillproof.FormatError):
            self.session.import_srs(os.path.join(self.dir, "6.srs"), os.path.join(self.dir, "7.srs"))

    def test_plans(self) -> None:
        plan = spillproof.plan("commit", 1 << 20, memory=16 << 20, threads=2)
        self.assertLessEqual(plan.peak_bytes, 16 << 20)
        self.assertEqual([step.name for step in plan.steps], ["commit"])
        self.assertEqual((plan.budget_bytes, plan.threads), (16 << 20, 2))
        with self.assertRaises(spillproof.BudgetError) as raised:
            spillproof.plan("commit", 1 << 20, memory="128KiB", threads=2)
        self.assertEqual(raised.exception.needed_bytes, plan.smallest_budget_bytes)

    def test_refusals(self) -> None:
        srs = self.srs(6)
        with self.assertRaisesRegex(spillproof.InvalidError, "index 1"):
            srs.commit(np.full((2, 32), [[1] * 32, [255] * 32], dtype=np.uint8))
        with self.assertRaises(ValueError):
            srs.commit(spillproof.from_ints([1]), basis="other")  # type: ignore[arg-type]
        with self.assertRaisesRegex(TypeError, r"\(n, 32\)"):
            srs.commit(np.zeros((2, 31), dtype=np.uint8))
        with self.assertRaises(TypeError):
            srs.commit(np.zeros((2, 4), dtype=np.float64))
        with self.assertRaises(BufferError):
            srs.commit(np.zeros((4, 32), dtype=np.uint8)[::2])
        with self.assertRaises(BufferError):
            self.session.ntt(spillproof.from_ints([1, 2]), out=spillproof.from_ints([1, 2]))
        with self.assertRaisesRegex(spillproof.InvalidError, "curve"):
            self.session.msm(bytes(Point(1, 1)), spillproof.from_ints([1]))
        with self.assertRaises(spillproof.InvalidError):
            self.session.column(2).read()
        with self.assertRaises(spillproof.InvalidError):
            self.session.ntt(spillproof.from_ints([1]), shift=0)
        with self.assertRaisesRegex(spillproof.FileError, "none.srs"):
            self.session.open_srs("none.srs")
        with self.assertRaises(spillproof.InvalidError):
            spillproof.Session("twelve")
        with self.assertRaises(TypeError):
            spillproof.Session(1.5)  # type: ignore[arg-type]
        little = spillproof.Session(128 << 10, self.dir, 1)
        with self.assertRaises(spillproof.BudgetError) as raised:
            little.open_srs(os.path.join(self.dir, "6.srs")).commit(spillproof.from_ints([1]))
        self.assertGreater(raised.exception.needed_bytes or 0, 128 << 10)

    def test_threads_and_signals(self) -> None:
        """Other threads of Python run while a call works, and Ctrl-C is not lost."""
        srs, column = self.srs(12), self.session.column(words(0, 1 << 12))
        commitment = srs.commit(column)
        turns: list[object] = []

        def interrupt() -> None:
            turns.append(1)
            os.kill(os.getpid(), signal.SIGINT)

        threads = [threading.Thread(target=lambda: turns.append(srs.commit(column))) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(turns, [commitment] * 3)
        # A process in the background may have been started with the signal ignored.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        timer = threading.Timer(0.05, interrupt)
        with self.assertRaises(KeyboardInterrupt):
            timer.start()
            for _ in range(10_000):
                srs.commit(column)
        timer.join()
        self.assertEqual(srs.commit(column), commitment)


if __name__ == "__main__":
    unittest.main()
