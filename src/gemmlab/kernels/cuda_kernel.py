"""A CUDA source file and the facts stated about it, as a `Kernel`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from gemmlab.core.errors import UsageError
from gemmlab.core.expr import Expression, parse
from gemmlab.core.program import Config
from gemmlab.kernels.claims import Restriction, always_read_words
from gemmlab.kernels.cuda_file.arguments import (
    ArgumentMatch,
    check_types,
    match_by_name,
    match_in_order,
    operand_types,
)
from gemmlab.kernels.cuda_file.c_types import MAP_TYPES, is_whole
from gemmlab.kernels.cuda_file.header import HeaderValues, read_header, read_text
from gemmlab.kernels.cuda_file.header_facts import PHASE, Facts, read_facts
from gemmlab.kernels.cuda_file.instance import find_instances
from gemmlab.kernels.cuda_file.passes import Passes, single_roundings, stated_size
from gemmlab.kernels.cuda_file.signature import Signature, signatures
from gemmlab.kernels.cuda_file.stated_constants import stated_constants
from gemmlab.kernels.cuda_file.type_names import type_names, with_types
from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.names import map_over, shown
from gemmlab.kernels.stated_launches import dimensions, launcher
from gemmlab.ops.catalog import find_op
from gemmlab.ops.op import Op, Operand

MOST_CONFIGURATIONS = 96
"""The most configurations that `tune` of a shipped kernel may have, because tests run all of them."""
MOST_THREADS = 1024
"""The most threads of a block, on every architecture."""
_REQUIRED = ("summary", "idea", "source", "op", "grid", "threads")


def shipped_kernel(path: Path) -> Kernel:
    """Return the kernel of a file in an `OP_cuda` folder, whose header states all facts.

    `UsageError` names the file, and line and key of a statement that is at fault.
    """
    origin, text = f"{path.parent.name}/{path.name}", read_text(path)
    header = read_header(origin, text)
    if header is None:
        raise UsageError(f"{origin}: no `/* gemmlab` comment that states what the kernel is")
    stated = HeaderValues(origin, (header,))
    if missing := [key for key in _REQUIRED if stated.get(key) is None]:
        raise UsageError(f"{origin}: {missing[0]} is not stated")
    if stated.get("step") is not None:
        raise stated.error("step", 'rungs are not numbered; `after = "ID"` names the rung that this one comes after')
    if stated.get("always_reads") is not None:
        raise stated.error("always_reads", "a rung must keep the contract: an operand is not read if its factor is 0")
    if stated.get("options") is not None:
        raise stated.error("options", "every rung is compiled with the same options")
    for key in ("cooperative", "constants"):
        if stated.get(key) is not None:
            raise stated.error(key, "a library call can neither launch blocks together nor set constants")
    facts = read_facts(stated, "")
    folder = path.parent.name.removesuffix("_cuda")
    if facts.op != folder:
        raise stated.error("op", f"{facts.op!r}, in the folder of {folder!r}")
    found = [signature for signature in signatures(text) if signature.name == path.stem]
    if len(found) != 1:
        raise UsageError(f"{origin}: {len(found)} kernels named {path.stem}, as the file is; there must be one")
    kernel = cuda_kernel(path, text, facts, found[0])
    if len(list(islice(kernel.configurations(), MOST_CONFIGURATIONS + 1))) > MOST_CONFIGURATIONS:
        raise stated.error("tune", f"more than {MOST_CONFIGURATIONS} legal configurations; others belong to `search`")
    return kernel


def cuda_kernel(
    path: Path, text: str, facts: Facts, signature: Signature, options: tuple[str, ...] = (),
    headers: Sequence[str] = (),
) -> Kernel:  # fmt: skip
    """Return the descriptor of the kernel `signature` in the file `path`, whose text is `text`, or in one of its
    headers, whose texts are `headers`.

    The file's name without suffix is the kernel's id; `options` are for the compiler. `UsageError` names file, line and
    key if facts and code contradict each other.
    """
    instances = find_instances(path, text, facts, signature, options, headers)
    names = type_names((text, *headers), options) if options else {}
    signature = with_types(instances.signature, names)
    matched = _match_arguments(facts, signature, instances.flags)
    op = _typed_op(facts, signature, matched)
    _check_maps(facts, signature, matched)
    _check_layouts(facts, matched, instances.flags)
    on_config = [expression for expression in facts.require if expression.names <= set(facts.params)]

    def objection(config: Config) -> str:
        return _objection(facts, on_config, config)

    launches = launcher(path.stem, facts, signature, matched)
    passes = Passes(facts, launches) if facts.again else None
    kernel = Kernel(
        id=path.stem,
        op=op.name,
        device="cuda",
        after=facts.after,
        branch=facts.branch,
        aliases=facts.aliases,
        summary=facts.summary,
        idea=facts.idea,
        source=facts.source,
        params=facts.params,
        args=matched.names,
        make_program=instances.program,
        path=path,
        precision=_precision(facts, op),
        layouts=facts.layouts,
        tune=facts.tune,
        search=facts.search,
        objection=objection,
        phased=facts.stated.get("phases") is not None,
        grid=tuple(expression.text for expression in facts.grid),
        steps=facts.steps.text,
        tiles=tuple(expression.text for expression in ([facts.tiles] if facts.tiles else facts.grid)),
        make_launches=passes.launches if passes else launches,
        workspace_bytes=passes.workspace_bytes if passes else stated_size(facts, facts.workspace),
        zeroed_workspace=facts.workspace is not None and facts.tickets is None,
        tickets=stated_size(facts, facts.tickets),
        roundings=passes.roundings if passes else single_roundings(facts),
        in_order=lambda config: bool(facts.in_order(config)),
        from_problem=instances.flags,
        arch=facts.arch,
        align=facts.align or min(operand.element.nbytes for operand in _operands(op)),
        constants=stated_constants(facts, (text, *headers), names),
        always_reads=facts.always_reads,
        restrictions=_restrictions(facts, op, signature, matched, instances.flags),
        expect=facts.expect,
    )
    _check_configurations(kernel, facts)
    return kernel


def _match_arguments(facts: Facts, signature: Signature, flags: Sequence[str]) -> ArgumentMatch:
    try:
        check_types(signature, facts.names)
        launch = {name for expression in (*facts.grid, *facts.threads) for name in expression.names}
        launch |= facts.constant_names
        if facts.args is None:
            return match_by_name(signature, facts.names, [flag.lower() for flag in flags], launch)
        return match_in_order(signature, facts.names, facts.args, (*facts.params, PHASE), launch)
    except UsageError as error:
        raise facts.stated.error("args", str(error)) from None


def _typed_op(facts: Facts, signature: Signature, matched: ArgumentMatch) -> Op:
    """Return the stated operation for operands of the types that the signature has."""
    try:
        op = find_op(facts.op)
        stated = {operand.name: operand.element for operand in _operands(op)}
        return op.typed(operand_types(signature, matched, facts.names, stated))
    except UsageError as error:
        raise facts.stated.error("args", str(error)) from None


def _precision(facts: Facts, op: Op) -> str:
    if facts.precision and facts.precision not in op.precisions:
        known = ", ".join(op.precisions)
        hint = _eight_bits(op) if op.name != facts.op else ""
        raise facts.stated.error("precision", f"{facts.precision!r} is none of {known}, which {op.name} has{hint}")
    return facts.precision or op.precisions[0]


def _eight_bits(op: Op) -> str:
    """Return advice if `unsigned char` in the signature may stand for 8-bit floats; else an empty text."""
    kinds = {one.element.name: one.element.whole for one in _operands(op)}
    if "uint8" not in kinds or any(whole for name, whole in kinds.items() if name != "uint8"):
        return ""
    floats = op.name.replace("uint8", "float8_e4m3fn")
    return (
        f"; unsigned char is read as uint8, whose precision is {op.precisions[0]}; "
        f'for 8-bit floats write op = "{floats}" (or float8_e5m2)'
    )


def _operands(op: Op) -> Sequence[Operand]:
    return op.operands(op.parse_sizes("1")[0])


def _check_maps(facts: Facts, signature: Signature, matched: ArgumentMatch) -> None:
    taken = {name for name in matched.names if name in map(map_over, facts.names.operands)}
    stated = {map_over(one.operand) for one in facts.maps}
    if lacking := sorted(taken - stated):
        raise facts.stated.error("maps", f'no box of {lacking[0]}: state maps = {{ A = {{ box = "ROWS, COLUMNS" }} }}')
    if unused := sorted(stated - taken):
        raise facts.stated.error("maps", f"no argument is {unused[0]}")
    classes = {map_over(one.operand): one.classes for one in facts.maps}
    for argument, name in zip(signature.args, matched.names, strict=True):
        if name in classes and MAP_TYPES[argument.type] != classes[name]:
            right = next(kind for kind, count in MAP_TYPES.items() if count == classes[name])
            why = f"{name} has classes = {classes[name]}, so {str(argument)!r} must be a {right}"
            raise facts.stated.error("maps", f"{why}; a FourMaps has classes = 4")


def _check_layouts(facts: Facts, matched: ArgumentMatch, flags: Sequence[str]) -> None:
    for index, flag in enumerate(("TRANS_A", "TRANS_B")):
        both = len({layout[index] for layout in facts.layouts}) == 2
        if both and flag not in flags and flag.lower() not in matched.values:
            raise facts.stated.error("transposes", f"needs a template parameter or an argument {flag}")


def _restrictions(
    facts: Facts, op: Op, signature: Signature, matched: ArgumentMatch, flags: Sequence[str]
) -> tuple[Restriction, ...]:
    """Return the kernel's restrictions on problems: those stated by `require`, then those that its signature and other
    statements of its file imply.

    By the signature: an argument that is lacking has a fixed value, such as `beta == 0` (1 if the kernel always reads
    C), unless `require` or a value of `constants` mentions its name; extents are equal if one argument stands for all;
    a real scalar is whole if its argument is of an integer type. By other statements: rows are aligned (`align`, and
    `maps` with one map of an operand), and the factor of an operand in `always_reads` is not 0.
    """
    required = [expression for expression in facts.require if not expression.names <= set(facts.params)]
    spoken_of = facts.constant_names.union(*(expression.names for expression in required))
    mapped = [f"ld{one.operand}" for one in facts.maps]
    elsewhere = [*flags, *spoken_of, *mapped]
    implied = matched.restrictions(facts.names, elsewhere, facts.layouts, facts.always_reads)
    wide = [one for one in _operands(op) if facts.aligned_rows and facts.align > one.element.nbytes]
    rows = {f"ld{one.name}": one.element.nbytes for one in wide}
    aligned = [
        (one.aligned_rows, "rows of a tensor map are aligned to 16 bytes") for one in facts.maps if one.classes == 1
    ]
    aligned += [(f"{ld} * {nbytes} % {facts.align} == 0", f"rows are aligned to {facts.align} bytes")
                for ld, nbytes in rows.items() if ld in facts.names.whole]  # fmt: skip
    aligned += [(f"{shown(name)} % 1 == 0", f"{argument} takes only whole numbers")
                for argument, name in zip(signature.args, matched.values, strict=True)
                if name in facts.names.real and is_whole(argument)]  # fmt: skip
    return (
        *(Restriction(expression) for expression in required),
        *(Restriction(parse(that), why) for that, why in (*implied, *aligned, *_nonzero_factors(facts))),
    )


def _nonzero_factors(facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield, for each factor of operands that are always read, the condition that it is not 0, and the reason."""
    factors = facts.names.factors
    for factor in dict.fromkeys(factors[name] for name in facts.always_reads):
        yield f"{factor} != 0", always_read_words(facts.always_reads, factors, factor)


def _objection(facts: Facts, on_config: Sequence[Expression], config: Config) -> str:
    """Return the reason that a configuration is not legal; empty if it is legal.

    It is legal if it meets the conditions `on_config`, and if its threads fit a block. Threads that depend on the
    problem are not checked.
    """
    try:
        broken = next((expression.text for expression in on_config if not expression(config)), "")
        known = {PHASE: 0, **config}
        if broken or not all(expression.names <= set(known) for expression in facts.threads):
            return broken
        x, y, z = dimensions(facts.threads, known)
    except UsageError as error:
        return str(error)
    possible = min(x, y, z) >= 1 and x * y * z <= MOST_THREADS
    return "" if possible else f"{x} x {y} x {z} threads a block; 1 to {MOST_THREADS} are possible"


def _check_configurations(kernel: Kernel, facts: Facts) -> None:
    if why := kernel.objection(kernel.params):
        raise facts.stated.error("params", f"the default configuration {dict(kernel.params)} is not legal: {why}")
    for expectation in facts.expect:
        try:
            kernel.configure(expectation.config)
        except UsageError as error:
            raise UsageError(f"{expectation.where}: {error}") from None
