"""The examples that each verb's `--help` ends with, and the completion of kernels' names in a shell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "bench": (
        "gemmlab bench --sizes 512,1024",
        "gemmlab bench naive block_tile --device emulated --sizes 128",
    ),
    "blas": ("gemmlab blas --emit libgemmlab_blas.so",),
    "cache": ("gemmlab cache packed microkernel --sizes 250,256",),
    "check": ("gemmlab check packed", "gemmlab check mine.cu --sizes 37x53x29"),
    "climb": ("gemmlab climb --quick", "gemmlab climb --device cuda"),
    "compare": ("gemmlab compare before.json after.json",),
    "compile": (
        "gemmlab compile block_tile --arch sm_80,sm_90",
        "gemmlab compile mine.cu --out mine.cubin",
        "gemmlab compile --prune",
    ),
    "doctor": ("gemmlab doctor --quick",),
    "explain": ("gemmlab explain block_tile", "gemmlab explain mine.cu --gpu A100 --sizes 512"),
    "list": ("gemmlab list --op gemm --device cuda", "gemmlab list block_tile"),
    "new": (
        "gemmlab new mine.cu",
        "gemmlab new --exercise block_tile",
        "gemmlab new --rung my_kernel --after double_buffer",
    ),
    "profile": ("gemmlab profile block_tile --device emulated", "gemmlab profile naive --load h200"),
    "sass": ("gemmlab sass conflict_free --counts --html page.html", "gemmlab sass mine.cu --diff arch=sm_80"),
    "schedule": ("gemmlab schedule conflict_free --out ordered.cubin",),
    "tune": ("gemmlab tune async_copy --device cuda --sizes 4096 --budget 60s", "gemmlab tune --show"),
    "report": ("gemmlab report climb.json --out report.html",),
}
"""Command lines by verb. Each can be run as it is once the files that it names exist."""


def epilog(verb: str) -> str | None:
    """Return the end of a verb's help, its examples; `None` if it has none."""
    lines = EXAMPLES.get(verb)
    # A backspace keeps the parser from joining the lines of a paragraph.
    return None if lines is None else "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


def kernel_names(incomplete: str) -> Iterator[str]:
    """Yield the ids of kernels that begin with `incomplete`."""
    from gemmlab.kernels.catalog import all_kernels

    yield from (kernel.id for kernel in all_kernels() if kernel.id.startswith(incomplete))
