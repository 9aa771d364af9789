"""One call of `gemmlab.gemm` as a value, on its way to the code that serves it."""

from __future__ import annotations

from typing import Any, NamedTuple

from gemmlab.dispatch.precision_rule import HIGHEST


class Call(NamedTuple):
    """The arguments of one call of `gemmlab.gemm` or `gemmlab.explain_choice`, as the caller wrote them, unchecked.

    A named tuple is created in a tenth of the time that a frozen dataclass takes. This matters for many small products.
    """

    a: Any
    b: Any
    c: Any = None
    out: Any = None
    alpha: Any = 1.0
    beta: Any = 0.0
    trans_a: Any = False
    trans_b: Any = False
    threads: Any = None
    precision: str = HIGHEST
    kernel: Any = None
    config: Any = None
    reproducible: Any = False

    @property
    def arrays(self) -> dict[str, Any]:
        """The operands and the result by name; `None` for absent ones."""
        return {"a": self.a, "b": self.b, "c": self.c, "out": self.out}

    @property
    def forced(self) -> bool:
        """True if the caller names a kernel or parameters of one."""
        return self.kernel is not None or self.config is not None

    @property
    def least_precision(self) -> str:
        """The precision that a CPU must have at least: `"highest"` where the order of sums is fixed."""
        return HIGHEST if self.reproducible else self.precision
