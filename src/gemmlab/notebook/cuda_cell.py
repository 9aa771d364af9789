"""`%%cuda`: compile a cell, check it, count it on the emulator, and explain it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from gemmlab.core.errors import CompileError, UsageError
from gemmlab.devices.select import open_device
from gemmlab.instruments.checking import check
from gemmlab.instruments.compile_flags import compile_flags
from gemmlab.instruments.explain_result import ExplainResult
from gemmlab.instruments.explaining import explain
from gemmlab.instruments.random_launch import launched
from gemmlab.instruments.source_file import source_file
from gemmlab.kernels.cuda_file.header import read_header
from gemmlab.kernels.cuda_file.signature import signatures
from gemmlab.launching.source import CudaText
from gemmlab.notebook.cell_options import parse, parser
from gemmlab.notebook.cell_result import CellResult

CELL = "cell"
_FACTS = ("op", "kernel", "grid", "threads", "args", "smem_bytes", "require")
_Answer = TypeVar("_Answer")
_HOW_TO_LAUNCH = (
    "compiled only. To check a kernel of an operation, state --grid and --threads, or write them into a `/* gemmlab` "
    'comment; to launch any kernel, state --grid 4 --threads 64 --args "float32[256], 256".'
)


def run_cell(line: str, cell: str, values: Mapping[str, Any]) -> CellResult | None:
    """Compile the CUDA C++ of a cell, check it, count it on the emulator, and explain it; no GPU is needed.

    A kernel of an operation (a product, a sum) states its launch in a `/* gemmlab` comment or by --grid and --threads;
    it is checked against the float64 reference and explained. With arrays in --args, written as `float32[64x64]`, any
    kernel is launched on the emulator and explained; with --launch, --args may also name `values`, the notebook's
    variables. Any other cell is only compiled. Line numbers in messages are those of the cell. `%%cuda -h` prints the
    options and returns `None`.

    Raises as `gemmlab.check`, `explain` and `launch`; `CompileError` for a cell that does not compile.
    """
    options = parse(line)
    if options.help:
        print(parser().format_help())  # noqa: T201 - the answer of -h
        return None
    # The magic's own line is the cell's first.
    text = f"\n{cell}"
    path = source_file(text)
    return _in_the_cell(path, lambda: _run(options, text, path, values))


def _run(options: Any, text: str, path: Path, values: Mapping[str, Any]) -> CellResult:
    flags = compile_flags(options.include, options.define, options.option)
    if options.launch or "[" in (options.args or ""):
        kernel = options.kernel or _only_kernel(text)
        done = launched(
            str(path), kernel, options.grid, options.threads, options.args, options.smem_bytes, options.arch,
            options.gpu, flags, values,
        )  # fmt: skip
        reasons = None if options.no_explain else ExplainResult((done.explain(options.gpu),), ((),))
        return CellResult(launched=done, explanation=reasons)
    stated = {**{name: getattr(options, name) for name in _FACTS}, "options": flags}
    facts = {name: value for name, value in stated.items() if value}
    if read_header(path.name, text) is None and not (options.grid and options.threads):
        return _compiled(options, text, path, flags)
    checked = explained = None
    if not options.no_check:
        checked = check(
            path, op=options.op, sizes=options.sizes, device=options.device, full=options.full, facts=facts,
            timeout_s=options.timeout,
        )  # fmt: skip
        if failures := [error for error in checked.errors.values() if isinstance(error, CompileError)]:
            raise failures[0]
    if not options.no_explain:
        first = (options.sizes or "").partition(",")[0]
        explained = explain(
            path, gpu=options.gpu, arch=options.arch, sizes=first or None, facts=facts, timeout_s=options.timeout
        )
    return CellResult(check=checked, explanation=explained)


def _compiled(options: Any, text: str, path: Path, flags: list[str]) -> CellResult:
    """Compile the kernel that `options` names, or every kernel of the cell that is no template.

    Raises `UsageError` if there is none.
    """
    device = open_device(options.device or (f"emulated:{options.arch}" if options.arch else "emulated"))
    code = CudaText(text, str(path))
    names = [options.kernel] if options.kernel else [found.name for found in signatures(text) if not found.template]
    if not names:
        raise UsageError("%%cuda: the cell has no kernel to compile; name an instance of a template with --kernel")
    made = (device.build(code.program(name, options.arch or device.target({}), flags)) for name in names)
    return CellResult(artifacts=tuple(made), note=_HOW_TO_LAUNCH)


def _only_kernel(text: str) -> str:
    names = [found.name for found in signatures(text)]
    if len(names) != 1:
        raise UsageError(f"%%cuda: name one of the kernels with --kernel: {', '.join(names) or 'there is none'}")
    return names[0]


def _in_the_cell(path: Path, run: Callable[[], _Answer]) -> _Answer:
    """Call `run`; in the compiler's messages, name the cell instead of its file."""
    try:
        return run()
    except CompileError as error:
        raise type(error)(str(error).replace(str(path), CELL).replace(f"{path.name}:", f"{CELL}:")) from error
