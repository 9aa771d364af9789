"""Fill the cache of cubins ahead of time, for machines without a compiler."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from gemmlab.core.errors import DeviceError, GemmlabError, UsageError
from gemmlab.core.files import write_output
from gemmlab.core.program import Config, Program
from gemmlab.kernels.by_name import is_own
from gemmlab.kernels.catalog import all_kernels, find_kernel
from gemmlab.kernels.cuda_file.compile_options import compiler_options
from gemmlab.kernels.cuda_file.file_kernels import only_kernels
from gemmlab.kernels.cuda_file.header import read_text
from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.user_kernel import stated_kernel
from gemmlab.launching.source import CudaText
from gemmlab.toolchain.build_cuda import compile_here

Outcome = TypeVar("Outcome")
_WORTH_PROCESSES = 4


@dataclass(frozen=True, slots=True)
class Job:
    """One cubin to compile."""

    kernel: str
    config: Mapping[str, int]
    """Compile-time parameters by name; empty if the name expression contains them."""
    program: Program
    origin: str = ""
    """The name by which `find_kernel` finds the kernel in another process; empty if it cannot, for a function of a file
    without a kernel description and for a file with compiler options of the caller.
    """


@dataclass(frozen=True, slots=True)
class Compiled:
    """The outcome of a job; sizes in bytes, spills and stack in bytes a thread. `time_ms` is the time to compile, or to
    find the code in the cache if it was `cached`, and to disassemble it.
    """

    kernel: str
    config: Mapping[str, int]
    instance: str
    arch: str
    registers: int
    static_smem_bytes: int
    stack_bytes: int
    spill_stores: int
    spill_loads: int
    code_bytes: int
    time_ms: float
    cached: bool
    digest: str
    compiler: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def jobs(
    names: Sequence[str],
    archs: Sequence[str],
    config: Config,
    *,
    instance: str = "",
    every: bool = False,
    layouts: Sequence[str] = (),
    options: Sequence[str] = (),
) -> tuple[list[Job], list[str]]:
    """Return the jobs, and a sentence for each kernel that cannot be compiled for one of `archs`; if the caller named
    it, that is an error instead.

    `names` are kernels by id or `.cu` files; by default all CUDA kernels. `instance` is a name expression in the only
    file named; `every` compiles all configurations of the tuning space; operand layouts that are not among `layouts`
    are left out, unless there are no `layouts`. `options` are the compiler's, for files. Raises `UsageError`.
    """
    found: list[Job] = []
    skipped: list[str] = []
    for name in names or [kernel.id for kernel in all_kernels() if kernel.device == "cuda"]:
        kernel = _kernel(name, instance, options)
        if kernel is None:
            found += [job for arch in archs for job in _plain(Path(name), arch, config, instance, options)]
            continue
        if kernel.device != "cuda":
            raise UsageError(f"{name} is a kernel for {kernel.device}; those for cuda are compiled ahead of time")
        # Another process reads the file again, and has no options.
        origin = kernel.id if not is_own(name) else "" if options else name
        for arch in archs:
            try:
                chosen = replace(kernel, layouts=tuple(n for n in kernel.layouts if not layouts or n in layouts))
                found += _of_kernel(chosen, origin, arch, config, every=every)
            except DeviceError as error:
                if names:
                    raise UsageError(str(error)) from error
                skipped.append(str(error))
    return found, skipped


def run(job: Job) -> Compiled:
    """Compile the job's program, or find it in the cache. Raises `CompileError`.

    The cache then also has the disassembly, for machines without a disassembler.
    """
    start = time.perf_counter()
    artifact, cached = compile_here(job.program)
    artifact.texts.get("sass")
    elapsed = time.perf_counter() - start
    facts = artifact.resources
    return Compiled(
        kernel=job.kernel,
        config=job.config,
        instance=job.program.entry,
        arch=job.program.target,
        registers=facts["registers"],
        static_smem_bytes=facts["static_smem_bytes"],
        stack_bytes=facts["stack_bytes"],
        spill_stores=facts["spill_stores"],
        spill_loads=facts["spill_loads"],
        code_bytes=facts["code_bytes"],
        time_ms=elapsed * 1e3,
        cached=cached,
        digest=artifact.digest,
        compiler=artifact.compiler,
    )


def write_code(program: Program, file: Path) -> None:
    """Write a program's cubin, or its PTX into a file whose name ends in `.ptx`.

    Raises `CompileError`, and `UsageError` if the file cannot be written.
    """
    artifact, _ = compile_here(program)
    write_output(file, artifact.texts["ptx"].encode() if file.suffix == ".ptx" else artifact.code)


def run_all(
    planned: Sequence[Job], processes: int, make: Callable[[Job], Outcome]
) -> Iterator[tuple[Job, Outcome | GemmlabError]]:
    """Run `make` on every job and yield each job with its result, or with its `GemmlabError`, in order of completion.

    `make` is a function of a module, such as `run`, because other processes call it. The compiler uses only one core of
    a process, so `processes` are started if they are 2 or more, unless there are fewer than 4 jobs. Jobs without
    `origin` run in this process.
    """
    if processes < 2 or len(planned) < _WORTH_PROCESSES:
        for job in planned:
            yield job, _attempt(job, make)
        return
    # Spawned, because a process that has opened a GPU cannot be forked.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        apart = {
            pool.submit(_attempt_named, job.origin, dict(job.config), job.program.target, make): job
            for job in planned
            if job.origin
        }
        for job in planned:
            if not job.origin:
                yield job, _attempt(job, make)
        for done in as_completed(apart):
            yield apart[done], done.result()


def _attempt(job: Job, make: Callable[[Job], Outcome]) -> Outcome | GemmlabError:
    try:
        return make(job)
    except GemmlabError as error:
        return error


def _attempt_named(origin: str, instance: Config, arch: str, make: Callable[[Job], Outcome]) -> Outcome | GemmlabError:
    kernel = find_kernel(origin)
    return _attempt(Job(kernel.id, instance, kernel.program(instance, arch), origin), make)


def _of_kernel(kernel: Kernel, origin: str, arch: str, config: Config, *, every: bool) -> Iterator[Job]:
    for chosen in kernel.configurations() if every else [kernel.configure(config)]:
        for instance in kernel.instances(chosen):
            yield Job(kernel.id, instance, kernel.program(instance, arch), origin)


def _kernel(name: str, instance: str, options: Sequence[str]) -> Kernel | None:
    """Return the kernel of that id or file; `None` for a file without a kernel description, and for any file if an
    `instance` is named.
    """
    if not is_own(name):
        return find_kernel(name)
    return None if instance else stated_kernel(Path(name), options=[*options])


def _plain(path: Path, arch: str, config: Config, instance: str, options: Sequence[str]) -> Iterator[Job]:
    """Yield the jobs for a file without a kernel description: one for each kernel, or only the named `instance`.

    Raises `UsageError` for a file without a kernel, and without an `instance` for a template that needs arguments.
    """
    text = read_text(path)
    stated = compiler_options(options, Path.cwd())
    found = only_kernels(text, str(path), stated)
    if not found:
        raise UsageError(f"{path}: no __global__ function is defined there, nor in a header that it includes")
    open_ones = [signature.name for signature in found if any(not p.default for p in signature.template)]
    if open_ones and not instance:
        names = ", ".join(open_ones)
        raise UsageError(f"{path}: {names}: name an instance of a template, as in --kernel '{open_ones[0]}<32>'")
    whole = (*stated, *(f"-D{name}={value}" for name, value in config.items()))
    code = CudaText(text, str(path))
    for entry in [instance] if instance else [signature.name for signature in found]:
        yield Job(path.stem, config, code.program(entry, arch, whole))
