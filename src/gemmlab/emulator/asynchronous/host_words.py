"""Loads and stores of words at host addresses, for structures that compiled handlers pass by address."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ctypes import c_int32, c_int64, c_uint32


def wide(address: int) -> int:
    """Return the i64 at a host address."""
    return c_int64.from_address(address).value


def put_wide(address: int, value: int) -> None:
    """Write an i64 to a host address."""
    c_int64.from_address(address).value = value


def narrow(address: int) -> int:
    """Return the u32 at a host address."""
    return c_uint32.from_address(address).value


def put_narrow(address: int, value: int) -> None:
    """Write an i32 to a host address."""
    c_int32.from_address(address).value = value


def mask_of(lanes: Iterable[int]) -> int:
    """Return the mask in which the bits with these numbers are set."""
    return sum(1 << lane for lane in lanes)


def lanes_of(mask: int) -> Iterator[int]:
    """Yield the numbers of the bits that are set in a mask, lowest first."""
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1
