"""The 64 bits of an mbarrier.

Compiled code makes the initial word and takes the phase and the pending arrivals from a state, so those fields are the
hardware's. The place of the bytes to come is this emulator's own: no instruction reads it.

    sm_90   63     62 .. 43            42 .. 22       20 .. 1              0
            phase  2^20 - pending      bytes to come  2^20 - expected      0
    sm_80   63     62 .. 32            31 .. 0
            phase  2^31 - pending      2^30 - expected (modulo 2^31 this gives the next phase's field)
"""

from __future__ import annotations

from dataclasses import dataclass

MOST = (1 << 20) - 1
"""Largest number of arrivals of a phase, and largest number of bytes to come."""
PHASE = 1 << 63
_PENDING, _BYTES, _EXPECTED = 43, 22, 1
_BYTES_MASK = (1 << 21) - 1
_OLD = 32
ONE_ARRIVAL = 1 << _PENDING
"""The amount that one arrival adds to the word of sm_90."""


@dataclass(slots=True)
class Word:
    """Fields of an mbarrier."""

    expected: int
    """Number of arrivals that each later phase needs."""
    pending: int
    """Arrivals that this phase still waits for."""
    transactions: int = 0
    """Bytes that this phase still waits for; negative if they came before they were expected."""
    phase: int = 0
    """Parity of the current phase."""
    old: bool = False
    """True for the layout of sm_80."""

    def encoded(self) -> int:
        """Return the 64 bits, unsigned."""
        if self.old:
            high = ((1 << 31) - self.pending) & 0x7FFFFFFF | self.phase << 31
            return high << _OLD | (1 << 30) - self.expected
        count = ((MOST + 1) - self.pending) & MOST
        later = ((MOST + 1) - self.expected) & MOST
        transactions = (self.transactions & _BYTES_MASK) << _BYTES
        return self.phase << 63 | count << _PENDING | transactions | later << _EXPECTED


def initial(word: int) -> Word | None:
    """Decode the word with which compiled code initialises an mbarrier; `None` if it is no such word."""
    count = MOST + 1 - (word >> _PENDING & MOST)
    found = Word(count, count)
    return found if 1 <= count <= MOST and found.encoded() == word else None
