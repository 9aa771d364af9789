"""`gemmlab.tune`: search the configurations of one kernel within a budget."""

from __future__ import annotations

from collections.abc import Callable

from gemmlab.core.errors import UsageError
from gemmlab.instruments.call_arguments import Facts, KernelName, Sizes, kernel_names, size_text, stated_facts
from gemmlab.instruments.tune_request import TuneRequest
from gemmlab.instruments.tune_result import TuneResult

Progress = Callable[[str, int, int], object]


def tune(
    kernel: KernelName,
    *,
    sizes: Sizes | None = None,
    budget_s: float = 60.0,
    device: str = "cpu",
    mode: str | None = None,
    threads: int | None = None,
    seed: int = 0,
    fresh: bool = False,
    counters: bool = True,
    facts: Facts | None = None,
    progress: Progress | None = None,
) -> TuneResult:
    """Search the configurations in the space that a kernel's file states; each is verified before it is timed.

    `kernel` is the id of a kernel, the path of a `.cu` file or CUDA C++ as text; `facts` are as for `check`. `sizes`
    are 2048, (M, N, K), a list of such, or the text of `--sizes`; each is tuned by itself with an equal part of
    `budget_s` seconds, which include compilation. `device` is `"cpu"`, `"cuda[:N]"`, or `"emulated[:sm_XX]"`, where
    times are predicted. `mode` is the state of the caches, `"cold"` or `"warm"`; `threads` the number for a CPU kernel,
    by default 1. Outcomes are stored in a journal of this user: the same call continues where it was stopped, unless
    `fresh` is set. `seed` determines the search's random choices. With `counters` the emulator reports which counters
    change with each parameter of a GPU kernel. `progress(text, tried, legal)` is called when configurations are
    submitted and after each turn.

    Raises `ArgumentTypeError`, `UsageError` (nothing to tune, an unknown kernel or size, a budget that ends before the
    first time, a search that another process runs, a folder that cannot be written), `CompileError` if no configuration
    compiles, `WrongResultError` if none is right, `DeviceError`, `RecordError` for a damaged journal, and
    `MemoryError`. Compilers are new processes, which import the script that was started: its calls stand under
    `if __name__ == "__main__":`.
    """
    if not 0.0 < budget_s < float("inf"):
        raise UsageError(f"tune: budget_s is {budget_s}; it must be a number of seconds above 0")
    (name,) = kernel_names([kernel])
    request = TuneRequest(
        name, stated_facts(facts, [name]), device=device, mode=mode, sizes=size_text(sizes), budget_s=budget_s,
        threads=threads or 1, seed=seed, fresh=fresh, counters=counters,
    )  # fmt: skip
    return TuneResult(tuple(found for found, _ in request.run(progress or (lambda _text, _tried, _legal: None))))
