"""Find and compile the code that `gemmlab sass` lists: of a kernel, of a user's source, of a cubin or of PTX."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gemmlab.core.errors import UsageError
from gemmlab.instruments.random_launch import CODE

if TYPE_CHECKING:
    from gemmlab.analysis.listing.code import Code
    from gemmlab.analysis.listing.kernel_listing import Listing
    from gemmlab.analysis.listing.samples import Samples
    from gemmlab.kernels.kernel import Kernel

_DIFFERENCE = "write NAME=VALUE for a parameter, arch=sm_80, or kernel=NAME, as in --diff STAGES=4"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A description of code to list; a comparison (`--diff`) has two."""

    name: str
    """A kernel's id, or a file."""
    arch: str = ""
    """An architecture, as `sm_90`; empty for that of a cubin, for the newest that `gpu` runs, or else for `sm_90`."""
    config: Mapping[str, int] = field(default_factory=dict)
    function: str | None = None
    """The function in a file; `None` if the file has only one."""
    flags: Mapping[str, Any] = field(default_factory=dict)
    """Facts about a user's `.cu` file that its text does not state (`own_flags`)."""
    options: tuple[str, ...] = ()
    """Compiler options for a user's file."""
    gpu: str = ""
    sizes: str = ""

    def other(self, differences: Sequence[str]) -> Wanted:
        """Return this description with changes such as `["STAGES=4", "arch=sm_80"]` made. Raises `UsageError`."""
        found = self
        for text in differences:
            name, equals, value = (part.strip() for part in text.partition("="))
            if not equals or not value:
                raise UsageError(f"--diff {text!r}: {_DIFFERENCE}")
            if name in ("arch", "kernel"):
                found = replace(found, arch=value) if name == "arch" else replace(found, name=value)
            elif re.fullmatch(r"[A-Z][A-Z0-9_]*", name) and re.fullmatch(r"-?[0-9]{1,9}", value):
                found = replace(found, config={**found.config, name: int(value)})
            else:
                raise UsageError(f"--diff {text!r}: {_DIFFERENCE}")
        return found


def listed(wanted: Wanted, samples: Sequence[Samples], *, counts: bool) -> Listing:
    """Return the listing of `wanted` with the samples of a profiler; with `counts`, also with the emulator's counts.

    Raises `CompileError`, `UsageError`, `NoCompilerError`, `TimeLimitError`.
    """
    from gemmlab.analysis.explanation import explain
    from gemmlab.analysis.listing.kernel_listing import explained_listing, static_listing
    from gemmlab.analysis.subject import machine
    from gemmlab.kernels.fitting import factor_notes
    from gemmlab.ops.catalog import find_op

    kernel = _kernel(wanted)
    if not counts:
        notes = [] if kernel is None else [f"it {note}" for note in factor_notes(kernel, find_op(kernel.op))]
        return static_listing(static_code(wanted), samples=samples, notes=notes)
    if kernel is None:
        raise UsageError(
            f"--counts: {wanted.name} does not say how it is launched; state --grid and --threads, "
            f"or explain a launch: gemmlab explain {wanted.name} --args ... --html page.html"
        )
    arch, model = machine(wanted.arch, wanted.gpu)
    return explained_listing(explain(kernel, arch, model, wanted.config, wanted.sizes), samples=samples)


def static_code(wanted: Wanted) -> Code:
    """Return the compiled code of `wanted`, read or compiled but not run. Raises as `listed` does."""
    from gemmlab.analysis.listing.code import code_of
    from gemmlab.toolchain import build_cuda

    arch = wanted.arch or "sm_90"
    if not re.fullmatch(r"sm_\d{2,3}[af]?", arch):
        raise UsageError(f"--arch {arch}: write an architecture, as sm_80, sm_89, sm_90 or sm_90a")
    if wanted.name.endswith(CODE):
        return _code_of_binary(wanted, arch)
    kernel = _kernel(wanted)
    if kernel is None:
        return _code_of_source(wanted, arch)
    if kernel.device != "cuda":
        raise UsageError(f"{kernel.id} is a kernel for {kernel.device}; only GPU kernels have this machine code")
    config = kernel.configure(wanted.config)
    artifact = build_cuda.build(kernel.program(config, arch))
    return code_of(artifact, config, kernel.id)


def _kernel(wanted: Wanted) -> Kernel | None:
    """Return the kernel that `wanted` names; `None` for a cubin, PTX, or a `.cu` file that states no launch."""
    from gemmlab.kernels.by_name import is_own, kernel_named
    from gemmlab.kernels.user_kernel import stated_kernel

    if wanted.name.endswith(CODE):
        return None
    if not is_own(wanted.name) or wanted.flags.get("grid") or wanted.flags.get("facts"):
        return kernel_named(wanted.name, wanted.flags)
    return stated_kernel(Path(wanted.name), **wanted.flags)


def _code_of_binary(wanted: Wanted, arch: str) -> Code:
    """Return the code of a function in a cubin, or in PTX, which is assembled for `arch`. Raises `UsageError`."""
    from gemmlab.analysis.listing.code import code_of
    from gemmlab.launching.source import PtxText, ReadyCubin, plain, read_source

    source = read_source(Path(wanted.name))
    ready = source.assembled(arch) if isinstance(source, PtxText) else source
    if not isinstance(ready, ReadyCubin):
        raise UsageError(f"{wanted.name} is no cubin and no PTX")
    if wanted.arch and wanted.name.endswith(".cubin") and wanted.arch != ready.cubin.arch:
        raise UsageError(f"{wanted.name} is code for {ready.cubin.arch}, not for {wanted.arch}")
    names = ready.kernels
    if wanted.function is None and len(names) != 1:
        raise UsageError(f"{wanted.name} has {len(names)} kernels; say which with --kernel: "
                         f"{', '.join(plain(name) for name in names)}")  # fmt: skip
    artifact = ready.artifact(wanted.function or names[0], disassembled=True)
    registers = ready.cubin.functions[artifact.entry].registers
    return code_of(replace(artifact, resources={"registers": registers}))


def _code_of_source(wanted: Wanted, arch: str) -> Code:
    """Return the code of a kernel in a `.cu` file that does not state its launch: a listing needs none."""
    from gemmlab.analysis.listing.code import code_of
    from gemmlab.kernels.cuda_file.file_kernels import only_kernels
    from gemmlab.launching.source import CudaText, plain, read_source
    from gemmlab.toolchain import build_cuda

    source = read_source(Path(wanted.name))
    if not isinstance(source, CudaText):
        raise UsageError(f"{wanted.name} is no CUDA C++")
    if wanted.config:
        raise UsageError(f"{wanted.name} states no parameters for --config; name an instance: --kernel 'tile<32>'")
    found = only_kernels(source.text, source.path, wanted.options)
    if wanted.function is None and (len(found) != 1 or found[0].template):
        names = ", ".join(f"{one.name}<...>" if one.template else one.name for one in found) or "none"
        raise UsageError(f"{wanted.name}: say which kernel with --kernel; there are {names}")
    artifact = build_cuda.build(source.program(wanted.function or found[0].name, arch, wanted.options))
    return code_of(artifact, title=plain(artifact.kernel))
