"""A user's own `.cu` file as a kernel, with facts from its header, a `.toml` beside it, or flags. The compiler gets its
text without host code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gemmlab.core.errors import UsageError
from gemmlab.core.warning import warn_once
from gemmlab.kernels.cuda_file.compile_options import compiler_options
from gemmlab.kernels.cuda_file.device_code import LIKE_NVCC, included
from gemmlab.kernels.cuda_file.file_kernels import FileKernel, kernels_of, named, own
from gemmlab.kernels.cuda_file.header import HeaderValues, Statement, from_flags, read_header, read_text, read_toml
from gemmlab.kernels.cuda_file.header_facts import Facts, read_facts
from gemmlab.kernels.cuda_file.signature import Signature
from gemmlab.kernels.cuda_kernel import cuda_kernel
from gemmlab.kernels.exercise import find_exercise, with_checks
from gemmlab.kernels.kernel import Kernel

DEFAULT_OP = "gemm"
_STARTING_FILE = Path(__file__).parent / "new_kernel.cu"
_RESERVED = frozenset(("main", "template", "auto", "int", "float", "double", "char", "void", "new", "delete", "this"))
"""Reserved words of C++, and names in the drafted file, that a user might choose as the name of a file."""
_EXAMPLES: Mapping[str, str] = {
    "grid": '--grid "ceil_div(N, 32), ceil_div(M, 32)"',
    "threads": '--threads "32, 32"',
}


def user_kernel(path: Path, *, facts: str | Path | None = None, **flags: Any) -> Kernel:
    """Return the kernel in the file `path`; its id is the file's name without suffix.

    Facts (the keys of `header.KEYS`) come from the `/* gemmlab` comment in the file, then from the file `facts` (by
    default the `.toml` file of the same name, if there is one), then from `flags`; for each key the last value counts,
    but of `options` all do.
    `kernel` names the function if the file has several. Without `args`, arguments are matched by their names.
    `UsageError` names the missing or wrong fact and its place, and how to state it.
    """
    text = read_text(path)
    return _kernel(path, text, read_header(path.name, text), facts, flags)


def stated_kernel(path: Path, **flags: Any) -> Kernel | None:
    """Return the kernel in a file with a `/* gemmlab` comment or a `.toml` file beside it; else `None`.

    `flags` and `UsageError` as in `user_kernel`.
    """
    text = read_text(path)
    header = read_header(path.name, text)
    return (
        _kernel(path, text, header, None, flags) if header is not None or path.with_suffix(".toml").is_file() else None
    )


def _kernel(
    path: Path, text: str, header: Statement | None, toml: str | Path | None = None,
    flags: Mapping[str, Any] | None = None,
) -> Kernel:  # fmt: skip
    beside = path.with_suffix(".toml")
    layers = [header] if header is not None else []
    if toml is not None or beside.is_file():
        layers.append(read_toml(Path(toml or beside)))
    stated = HeaderValues(path.name, (*layers, from_flags(flags or {})))
    if stated.get("step") is not None:
        warn_once(
            f"{stated.where('step')}: rungs are not numbered any more, and the key is ignored: take it out, or name "
            'the rung that the kernel improves on, `after = "naive"`; the next version refuses it'
        )
    facts = read_facts(stated, DEFAULT_OP, text)
    options: list[str] = []
    for statement, texts in facts.options:
        try:
            options += compiler_options(texts, path.parent)
        except UsageError as error:
            raise statement.error("options", str(error)) from None
    headers = included(text, str(path), options)
    signature = _chosen(path, facts, kernels_of(text, headers))
    missing = [key for key, value in (("grid", facts.grid), ("threads", facts.threads)) if not value]
    if missing:
        raise UsageError(
            f"{path.name}: {' and '.join(missing)} of the launch of {signature.name} are not stated; pass "
            f"{' '.join(_EXAMPLES[key] for key in missing)} (for example, for blocks of 32 x 32), or write "
            f"{' and '.join(f'`{key} = ...`' for key in missing)} into {beside.name} or into a `/* gemmlab` comment"
        )
    inside = [header.code.text for header in headers]
    kernel = cuda_kernel(path, text, facts, signature, (*options, *LIKE_NVCC), inside)
    return with_checks(kernel, facts.exercise) if facts.exercise else kernel


def starting_text(path: Path, exercise: str | None = None) -> str:
    """Return the text of a working, commented kernel to start from, which is named after the file `path`.

    With `exercise`, the id of a rung, it is the text to start that rung's exercise from. Raises `UsageError` for an
    impossible kernel name, and for a rung without an exercise in CUDA C++.
    """
    name = path.stem
    if path.suffix != ".cu" or not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) or name in _RESERVED:
        raise UsageError(f"{path}: the file is named after the kernel, as my_kernel.cu: letters, digits and _")
    if exercise is not None:
        return find_exercise(exercise).text(name)
    return _STARTING_FILE.read_text(encoding="utf-8").replace("my_kernel", name)


def _chosen(path: Path, facts: Facts, every: Sequence[FileKernel]) -> Signature:
    """Return the kernel that is meant: one of the file's own, or, if none fits, one of its headers."""
    if not every:
        raise UsageError(f"{path.name}: no __global__ function is defined there, nor in a header that it includes")
    wanted = facts.kernel.partition("<")[0].strip()
    if wanted:
        found = named(every, wanted)
        if not found:
            raise facts.stated.error("kernel", f"no kernel named {wanted!r} in {path.name} ({_listed(every)})")
    else:
        found = named(own(every), path.stem) or own(every)
    if len(found) > 1:
        what = f"{path.name}: several kernels; name one with --kernel or `kernel = ...`"
        raise UsageError(f"{what} ({_listed(own(every))})")
    return found[0].signature


def _listed(kernels: Sequence[FileKernel]) -> str:
    return "; ".join(map(str, kernels))
