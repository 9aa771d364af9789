"""The types of values in CPU kernels, with LLVM's names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Type:
    """A scalar, vector or pointer type. `element` is the type that a pointer points at or a vector consists of."""

    name: str
    element: Type | None = None
    lanes: int = 1

    @property
    def is_pointer(self) -> bool:
        return self.name == "ptr"

    @property
    def is_float(self) -> bool:
        return self.scalar.name in ("half", "float", "double")

    @property
    def scalar(self) -> Type:
        """The element type of a vector; for any other type, the type itself."""
        return self.element if self.lanes > 1 and self.element is not None else self

    @property
    def bits(self) -> int:
        """Width of the scalar type in bits."""
        return {"half": 16, "float": 32, "double": 64, "ptr": 64}.get(self.scalar.name) or int(self.scalar.name[1:])

    def __str__(self) -> str:
        return self.name


VOID = Type("void")
I1 = Type("i1")
I8 = Type("i8")
I16 = Type("i16")
I32 = Type("i32")
I64 = Type("i64")
F16 = Type("half")
F32 = Type("float")
F64 = Type("double")


def vector(element: Type, lanes: int) -> Type:
    """Return the type of vectors of `lanes` elements; for one lane, `element` itself."""
    return element if lanes == 1 else Type(f"<{lanes} x {element}>", element, lanes)


def pointer(element: Type) -> Type:
    """Return the type of addresses of an `element`; an integer added to such an address counts elements."""
    return Type("ptr", element)
