"""The values passed between kernels, compilers and devices: `Program`, `Artifact` and `Launch`.

Kernels make `Program`s and `Launch`es without knowing a device; devices load `Artifact`s and run
`Launch`es without knowing kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from gemmlab.core.errors import CompileError
from gemmlab.core.notebook_view import Display, View, grid

Config = Mapping[str, int]
"""A kernel's configuration: name of a compile-time parameter (upper case) -> value."""


@dataclass(frozen=True, slots=True)
class Program:
    """Source code to compile; `emit` returns its text.

    `fingerprint` covers everything that `emit` depends on (source files, configuration, compiler version), so that a
    cached artifact is found without calling `emit`. A program with an empty fingerprint is always compiled and never
    cached. For CUDA C++ the cache does not use the fingerprint: its keys are computed from the text itself.
    """

    kernel: str
    language: str
    """`"llvm"` (textual LLVM IR) or `"cuda"` (CUDA C++)."""
    target: str
    """The machine to compile for: `"x86_64:16:sapphirerapids"`, `"sm_90a"`."""
    entry: str
    """Symbol (LLVM) or name expression (CUDA) of the function that a launch calls."""
    fingerprint: str
    emit: Callable[[], str] = field(repr=False, compare=False)
    exports: tuple[str, ...] = ()
    """Symbols besides `entry` whose addresses are available after loading."""
    vectorize: bool = False
    """True if the compiler may vectorize and unroll scalar loops."""
    resources: Mapping[str, int] = field(default_factory=dict)
    """Resources that the compiler cannot determine, such as `workspace_bytes` per thread."""
    path: str = ""
    """Name of the source file for compile errors and line information."""
    options: tuple[str, ...] = ()
    """Compiler options added to the toolchain's own; an option of the same name replaces the toolchain's."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Name in `#include` -> text of the header."""
    written_anew: bool = False
    """True if gemmlab rewrites the main loop in the machine code that it ships for this target."""

    def source(self) -> str:
        """Return the text of `emit`. If `emit` fails, raise `CompileError` with the kernel; raise `MemoryError` as it
        is.
        """
        try:
            return self.emit()
        except MemoryError:
            raise
        except Exception as error:
            raise CompileError(f"{self.kernel} for {self.target}: {type(error).__name__}: {error}") from error


@dataclass(frozen=True, slots=True, repr=False)
class Artifact(Display):
    """Compiled code, ready for a device to load."""

    kernel: str
    kind: str
    """`"object"` (relocatable object code) or `"cubin"`."""
    target: str
    entry: str
    """The symbol to call: for a cubin the lowered (mangled) name."""
    code: bytes = field(repr=False)
    digest: str
    """SHA-256 in hexadecimal, by which records identify the code; of a cubin without the sections that do not run."""
    compiler: str
    resources: Mapping[str, int] = field(default_factory=dict)
    """Those of the program, and `code_bytes`. For a cubin also `registers`, `barriers`, `static_smem_bytes`;
    `max_threads` of a block if it is limited; in bytes per thread `local_bytes` (the kernel's own stack frame),
    `stack_bytes` (with all functions that it calls), `spill_stores`, `spill_loads`.
    """
    exports: tuple[str, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Readable texts about the code. A cubin that was compiled here has `ptx`, `sass` (`nvdisasm -g -hex -c`) and `log`
    (the compiler's).
    """
    searched: Mapping[str, str] | None = field(default_factory=dict, repr=False)
    """Places where the compiler looked for files, and what was there (see `toolchain.searched`); `None` if unknown."""

    def _line(self) -> str:
        return f"{self.kernel} for {self.target}: {self.kind} of {len(self.code):,} bytes by {self.compiler}"

    def _view(self) -> View:
        resources = grid(("resource", ""), self.resources.items())
        texts = tuple((name, text) for name, text in self.texts.items() if text)
        return View(self._line(), grids=(resources,), folded=texts)


@dataclass(frozen=True, slots=True)
class Launch:
    """One call of a loaded artifact, with `grid` blocks of `threads` threads by dimension.

    On a CPU, `grid` is (1, 1, 1) and `threads[0]` workers run. `smem_bytes` are the bytes of dynamic shared memory of a
    block.
    """

    args: tuple[Any, ...]
    """NumPy scalars (exact C types) and device buffers, in the order of the entry's signature."""
    grid: tuple[int, int, int] = (1, 1, 1)
    threads: tuple[int, int, int] = (1, 1, 1)
    smem_bytes: int = 0
    _: KW_ONLY
    cluster: tuple[int, int, int] | None = None
    """Blocks of a cluster by dimension; `None`: as the kernel was compiled."""
    early: bool = False
    """True if blocks may begin before the previous launch on the stream has ended. The kernel then waits for the data
    of that launch itself (`griddepcontrol.wait`).
    """
    wide_clusters: bool = False
    """True if clusters of more than 8 blocks are allowed, which not every GPU can run."""
    cooperative: bool = False
    """True if all blocks must be resident together, as `cooperative_groups::this_grid().sync()` requires."""
