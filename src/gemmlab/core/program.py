"""The neutral values every layer speaks: what to build, what was built, what to run.

Kernels make `Program`s and `Launch`es without knowing a device; devices load `Artifact`s and run
`Launch`es without knowing kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Config = Mapping[str, int]
"""A kernel configuration: upper-case compile-time parameter name -> value."""


@dataclass(frozen=True, slots=True)
class Program:
    """Source that is yet to be compiled.

    `fingerprint` covers everything that `emit` depends on (source files, configuration, compiler
    version), so that a cached artifact is found without calling `emit`. Empty: build it anew and cache nothing.
    CUDA C++ is at hand as text: the cache's keys are made of the text, and nobody asks for a fingerprint.
    """

    kernel: str
    language: str
    """`"llvm"` (textual LLVM IR) or `"cuda"` (CUDA C++)."""
    target: str
    """What the code is for: `"x86_64:16:sapphirerapids"`, `"sm_90a"`."""
    entry: str
    """Symbol (LLVM) or name expression (CUDA) that a launch calls."""
    fingerprint: str
    emit: Callable[[], str] = field(repr=False, compare=False)
    exports: tuple[str, ...] = ()
    """Further symbols of the code that a device may hand out."""
    vectorize: bool = False
    """Whether the compiler may widen and unroll scalar loops by itself."""
    resources: Mapping[str, int] = field(default_factory=dict)
    """What the code needs that only its author knows, such as `workspace_bytes` a thread."""
    path: str = ""
    """The source's file, as compile errors and line information name it."""
    options: tuple[str, ...] = ()
    """Compiler options beside the toolchain's own; one of the same name replaces it."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Text of each header by the name that `#include` calls it."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """Compiled code, ready for a device to load."""

    kernel: str
    kind: str
    """`"object"` (relocatable object code) or `"cubin"`."""
    target: str
    entry: str
    """The symbol to call: for a cubin the lowered (mangled) name."""
    code: bytes = field(repr=False)
    digest: str
    """SHA-256 in hexadecimal; what records keep to name the exact code that ran. Of a cubin without what is not run."""
    compiler: str
    resources: Mapping[str, int] = field(default_factory=dict)
    """For a cubin `registers`, `barriers`, `static_smem_bytes`, `code_bytes`; bytes a thread `local_bytes` (its own
    stack frame), `stack_bytes` (with all calls), `spill_stores`, `spill_loads`; `max_threads` if it has a limit."""
    exports: tuple[str, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What people read of it. A cubin has `ptx`, `sass` (`nvdisasm -g -hex -c`) and `log` (of the compiler)."""
    searched: Mapping[str, str] | None = field(default_factory=dict, repr=False)
    """What the compiler looked for on disk and found (see `toolchain.searched`); `None` when that is not known."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One call of a loaded artifact. On a CPU the grid is (1, 1, 1) and `threads[0]` workers run."""

    args: tuple[Any, ...]
    """NumPy scalars (exact C types) and device buffers, in the order of the entry's signature."""
    grid: tuple[int, int, int] = (1, 1, 1)
    threads: tuple[int, int, int] = (1, 1, 1)
    smem_bytes: int = 0
