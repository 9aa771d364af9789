"""`gemmlab.explain`: say what limits a GPU kernel, from its code and counters, and what to try next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gemmlab.analysis.explanation import Explanation
from gemmlab.analysis.explanation import explain as explain_kernel
from gemmlab.analysis.model.quoted_prediction import QuotedPrediction, modelled, quote, with_predicted_gains
from gemmlab.analysis.subject import machine
from gemmlab.core.errors import GemmlabError, TimeLimitError, UsageError
from gemmlab.core.gpu import GpuModel
from gemmlab.core.time_limit import require_seconds, time_limit
from gemmlab.instruments.call_arguments import (
    Facts,
    KernelName,
    OpName,
    Sizes,
    kernel_names,
    operation_argument,
    size_text,
    stated_facts,
)
from gemmlab.instruments.explain_result import ExplainResult, Quotes
from gemmlab.kernels.by_name import kernel_named
from gemmlab.kernels.kernel import Kernel


def explain(
    kernel: KernelName,
    other: KernelName | None = None,
    *,
    op: OpName | None = None,
    gpu: str = "",
    arch: str = "",
    sizes: Sizes | None = None,
    config: Mapping[str, int] | None = None,
    facts: Facts | None = None,
    timeout_s: float | None = None,
) -> ExplainResult:
    """Say what limits a kernel, from its machine code and its counters on the emulator; no GPU is needed.

    `kernel` is the id of a GPU kernel, the path of a `.cu` file, or CUDA C++ as text; with `other`, the result has
    both. `op` is the operation of a `.cu` file if it is not a product: a name, a Python file or an `Operation`. `gpu`
    is the GPU to explain for (`"H200"`, `"A100"`, `"L4"`), `arch` the architecture of the code (`"sm_90"`); each
    determines the other, and the default is H200. `sizes` is the one size to count at, as 256, (M, N, K) or text, by
    default 256, 2^22 elements to reduce, or sums of 256x4096x1 (64x16x3 for a kernel that takes only short ones); times
    are predicted for it and for a large one.
    `config` sets parameters. `facts` about a `.cu` file are the keys of its `/* gemmlab` comment as a dictionary, or a
    `.toml` file's path. `timeout_s` limits the whole call, in seconds.

    A wrong result or a hazard raises nothing: `sound` of the result is then false. To explain a cubin, PTX, or a kernel
    that is no product and no sum, `launch` it and call `explain` of the result.

    Raises `ArgumentTypeError`, `UsageError` (an unknown kernel, GPU, architecture, size or parameter; a kernel for a
    CPU), `CompileError`, `MemoryError` and `TimeLimitError`.
    """
    require_seconds("explain: timeout_s", timeout_s)
    names = kernel_names([kernel] if other is None else [kernel, other])
    _, stated = operation_argument(op, names, stated_facts(facts, names))
    named = [kernel_named(name, stated) for name in names]
    chosen, model = machine(arch, gpu)
    with time_limit(timeout_s):
        return explain_kernels(named, chosen, model, config or {}, size_text(sizes) or "")


def explain_kernels(
    kernels: Sequence[Kernel], arch: str, model: GpuModel, config: Mapping[str, int], sizes: str
) -> ExplainResult:
    """Explain kernels and predict their times; `arch` and `model` are those of `analysis.subject.machine`.

    An empty `sizes` stands for the default size. Of several kernels each takes the parameters of `config` that it has.
    Raises as `explain`.
    """
    explanations = []
    for kernel in kernels:
        own = {name: value for name, value in config.items() if name in kernel.params} if len(kernels) > 1 else config
        explanations.append(explain_kernel(kernel, arch, model, own, sizes))
    if unknown := [name for name in config if not any(name in kernel.params for kernel in kernels)]:
        raise UsageError(f"--config: neither kernel has a parameter {unknown[0]}")
    quoted = [_quoted(one, model, sizes) for one in explanations]
    return ExplainResult(tuple(one for one, _ in quoted), tuple(quotes for _, quotes in quoted))


def _quoted(explained: Explanation, model: GpuModel, sizes: str) -> tuple[Explanation, Quotes]:
    """Return the explanation with the predicted gains of its advice, and the predicted times (`Quotes`)."""
    subject = explained.subject
    if subject.kernel is None:
        return explained, ()
    if subject.wrong:
        return explained, (f"its result is wrong at {subject.size.label}",)
    try:
        known = modelled(subject.kernel, subject.arch, model, subject.config)
    except TimeLimitError:
        raise
    except GemmlabError as error:
        return explained, (str(error),)
    found: list[QuotedPrediction | str] = []
    for size in ("", sizes) if sizes and subject.size != subject.scaled else ("",):
        try:
            found.append(quote(known, subject.kernel, subject.config, size))
        except TimeLimitError:
            raise
        except GemmlabError as error:
            found.append(str(error))
    if isinstance(found[0], QuotedPrediction):
        explained = with_predicted_gains(explained, known)
    return explained, tuple(found)
