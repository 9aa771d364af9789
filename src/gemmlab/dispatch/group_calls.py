"""The products of a group on any device: errors that name the product, and results that must not overlap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gemmlab.arrays.mapped_file import span
from gemmlab.core.errors import ArgumentTypeError, DeviceError, UsageError
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.request import Float32Array, Request, overlap

CALL = "gemm_group"


@contextmanager
def product_of_group(index: int | None) -> Iterator[None]:
    """Raise a `UsageError` or `DeviceError` of the block again, with the index of the product in the message; `None`
    for a group without products.
    """
    try:
        yield
    except (UsageError, ArgumentTypeError, DeviceError) as error:
        message = str(error).removeprefix("gemm: ")
        raise type(error)(f"{CALL}: {'' if index is None else f'product {index}: '}{message}") from error


def group_calls(a: Any, b: Any, c: Any, out: Any, one: Call) -> list[Call]:
    """Return a call for each product of a group, with the scalars and flags of the call `one`.

    Raises `ArgumentTypeError` for arguments that are neither lists nor tuples (`c` and `out` may be `None`), and
    `UsageError` for lists of different lengths.
    """
    lists = {name: _listed(name, value) for name, value in (("a", a), ("b", b), ("c", c), ("out", out))}
    count = len(lists["a"] or ())
    for name, values in lists.items():
        if values is not None and len(values) != count:
            raise UsageError(f"{CALL}: {name} has {len(values)} arrays, and a has {count}")
    nothing = (None,) * count
    rows = zip(*(nothing if values is None else values for values in lists.values()), strict=True)
    return [one._replace(a=a, b=b, c=c, out=out) for a, b, c, out in rows]


def _listed(name: str, value: Any) -> Sequence[Any] | None:
    if value is None and name in ("c", "out"):
        return None
    if not isinstance(value, (list, tuple)):
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        raise ArgumentTypeError(f"{CALL}: {name} is {kind}; it must be a list or a tuple of arrays")
    return value


class _Place(NamedTuple):
    """An array of the group in memory."""

    low: int
    high: int
    """`low` and `high` are the addresses of the array's first byte and of the byte after its last."""
    product: int
    """Index of the product in the group."""
    name: str
    """`"a"`, `"b"`, `"c"` or `"out"`."""
    view: Float32Array

    @property
    def label(self) -> str:
        return f"{self.name}[{self.product}]"


def ranges_apart(low: npt.NDArray[np.int64], high: npt.NDArray[np.int64], results: npt.NDArray[np.bool_]) -> bool:
    """Return whether no range of addresses from `low` to `high - 1` that belongs to a result overlaps another range."""
    order = np.argsort(low)
    low, high, results = low[order], high[order], results[order]
    reach = np.maximum.accumulate(high)
    written = np.maximum.accumulate(np.where(results, high, 0))
    return not (low[1:] < np.where(results[1:], reach[:-1], written[:-1])).any()


def require_apart(products: Sequence[tuple[Request, Float32Array | None]]) -> None:
    """Raise `UsageError` if a product's `out` shares memory with an array of another product.

    Each product comes with a view of its `out`, or `None` if the result is a new array.
    """
    places = sorted(_places(products), key=lambda place: place.low)
    written, read = list[_Place](), list[_Place]()
    for place in places:
        written = [one for one in written if one.high > place.low]
        read = [one for one in read if one.high > place.low]
        results = place.name == "out"
        for other in (*written, *(read if results else ())):
            if other.product != place.product and overlap(place.view, other.view):
                first, second = (place, other) if results else (other, place)
                raise UsageError(f"{CALL}: {first.label} shares memory with {second.label}; give it memory of its own")
        (written if results else read).append(place)


def _places(products: Sequence[tuple[Request, Float32Array | None]]) -> Iterator[_Place]:
    if all(target is None for _, target in products):
        return
    for index, (operands, target) in enumerate(products):
        views = {"out": target, "a": operands.left, "b": operands.right, "c": operands.addend}
        for name, view in views.items():
            if view is not None and view.size:
                low, high = span(view)
                start = view.ctypes.data
                yield _Place(start + low, start + high, index, name, view)
