"""Machine code of a function with its main loops rewritten."""

from __future__ import annotations

from collections.abc import Iterator

from gemmlab.core.errors import UsageError
from gemmlab.sass.checking.register_room import RESERVE
from gemmlab.sass.instruction import SassFunction
from gemmlab.sass.rewriting.compiled_loop import (
    COLUMNS,
    DEPTH,
    LOADS,
    ROWS,
    CompiledLoop,
    compiled_loops,
)
from gemmlab.sass.rewriting.loop_words import (
    NO_BARRIER,
    RZ,
    Word,
    added,
    branch,
    control,
    ffma,
    load,
    mov,
    nop,
    with_registers,
)
from gemmlab.sass.rewriting.placement import (
    EVEN,
    EVEN_REST,
    ODD,
    ODD_REST,
    STEP,
    Places,
    placed,
)
from gemmlab.sass.rewriting.register_plan import LIMIT, Registers, planned
from gemmlab.sass.rewriting.stage_address import StageAddress
from gemmlab.sass.rewriting.variant import FASTEST, Variant
from gemmlab.sass.writing.cubin_code import with_words
from gemmlab.sass.writing.register_count import with_register_count

_ALL = 0x3F
_ORDER = (("b", 0), ("a", 0), ("b", 1), ("a", 1), ("a", 2), ("a", 3))
"""Operand and part of each load of a step, in order; the first four rows need only the first three loads."""
_LATENCY = 6
"""Cycles until the result of integer arithmetic or of a MOV can be read."""


def rewritten(cubin: bytes, function: SassFunction, variant: Variant = FASTEST, name: str = "cubin") -> bytes:
    """Return the cubin with the main loops of one function rewritten, and 254 as its number of registers a thread.

    Raises `UsageError` if the function has no loop of 16 x 8 results a thread and 8 steps of k an iteration, if one of
    them has another form than the rewriting knows, or if the new code does not fit. Messages about the file begin with
    `name`.
    """
    words, lines = written(function, variant)
    code = with_words(cubin, function, words, lines=lines, name=name)
    return with_register_count(code, function.name, LIMIT + RESERVE, name)


def written(function: SassFunction, variant: Variant = FASTEST) -> tuple[list[int], list[int]]:
    """Return all instruction words of the function, with its main loops rewritten, and their source lines.

    A line is stated by the index of an instruction of `function` that has it. Raises as `rewritten` does.
    """
    words = [one.encoding for one in function.instructions]
    lines = [*range(len(words))]
    for loop in compiled_loops(function):
        made = _words(loop, variant)
        room = loop.stop + loop.room - loop.start
        if len(made) > room:
            raise UsageError(
                f"{function.name}: the rewritten loop with its entry and exit takes {len(made)} words; the compiler's "
                f"loop has {loop.stop - loop.start}, and pmevent reserves {loop.room}"
            )
        made += [Word(nop())] * (room - len(made))
        line = loop.start
        for place, word in enumerate(made, loop.start):
            line = line if word.line_of is None else word.line_of.address // 16
            words[place], lines[place] = word.bits, line
    return words, lines


def _words(loop: CompiledLoop, variant: Variant) -> list[Word]:
    plan = planned(loop, variant)
    places = placed(loop, plan)
    _put_loads(loop, plan, variant, places)
    body = [*_body(loop, plan, variant, places)]
    body[-1] = body[-1]._replace(bits=branch(body[-1].bits, -16 * len(body)))
    return [*_entry(loop, plan), *body, *_tail(loop, plan)]


def _entry(loop: CompiledLoop, plan: Registers) -> Iterator[Word]:
    """Yield the words before the loop: the first stage's addresses, and zeros in `Registers.zeroed`."""
    wait = _ALL
    for address, base in ((loop.of_a, plan.base_a), (loop.of_b, plan.base_b)):
        for word in _first_address(address, base):
            yield word._replace(bits=word.bits | control(_LATENCY, wait=wait))
            wait = 0
    for register in plan.zeroed:
        yield Word(mov(register, RZ), loop.product)
    yield Word(nop(_LATENCY))


def _first_address(address: StageAddress, base: int) -> Iterator[Word]:
    (register,) = {operand.index for one in address.entry for operand in one.operands[:1]}
    known = False
    for one in address.entry:
        yield Word(with_registers(one, {register: base} if known else {}, {register: base}), one)
        known = True
    if address.more:
        yield Word(added(base, base, address.more))


def _put_loads(loop: CompiledLoop, plan: Registers, variant: Variant, places: Places) -> None:
    for step in range(DEPTH):
        following, odd = (step + 1) % DEPTH, (step + 1) % 2
        at = variant.last_loads if step == DEPTH - 1 else variant.loads
        load_a, load_b = loop.next_loads if step == DEPTH - 1 else loop.loads
        for number, (operand, part) in enumerate(_ORDER):
            if operand == "a":
                base, offset = plan.base_a, loop.of_a.offset + loop.apart[0] * following + 64 * part
                register, like = plan.a[odd][4 * part], load_a
            else:
                base, offset = plan.base_b, loop.of_b.offset + loop.apart[1] * following + 128 * part
                register, like = plan.b[odd][4 * part], load_b
            barrier = NO_BARRIER
            if number == (2 if variant.halves else LOADS - 1):
                barrier = ODD if odd else EVEN
            elif number == LOADS - 1:
                barrier = ODD_REST if odd else EVEN_REST
            places.put(STEP * step + at[number], Word(load(like, register, base, offset, barrier), like))


def _products(variant: Variant) -> Iterator[tuple[int, int, int]]:
    """Yield (step, row, column) of each FFMA of an iteration, in order."""
    lines, length = (COLUMNS, ROWS) if variant.by_columns else (ROWS, COLUMNS)
    for step in range(DEPTH):
        for line in range(lines):
            for number in range(length):
                along = length - 1 - number if line % 2 else number
                yield (step, along, line) if variant.by_columns else (step, line, along)


def _body(loop: CompiledLoop, plan: Registers, variant: Variant, places: Places) -> Iterator[Word]:
    products = [*_products(variant)]
    for number, (step, row, column) in enumerate(products):
        yield from places.words.get(number, ())
        reuse = wait = 0
        if number + 1 < len(products) and number + 1 not in places.emptied:
            following = products[number + 1]
            reuse = (following[:2] == (step, row)) | (following[::2] == (step, column)) << 1
        if (row, column) == (0, 0):
            wait = 1 << (ODD if step % 2 else EVEN)
        elif variant.halves and (row, column) == (4, 0):
            wait = 1 << (ODD_REST if step % 2 else EVEN_REST)
        total = plan.sums[row, column]
        bits = ffma(total, plan.a[step % 2][row], plan.b[step % 2][column], total, reuse=reuse, wait=wait)
        yield Word(bits, loop.product)
    yield from places.words.get(len(products), ())


def _tail(loop: CompiledLoop, plan: Registers) -> Iterator[Word]:
    """Yield the words after the loop: copies of moved sums into the registers that the compiler's code reads."""
    yield Word(nop(wait=_ALL))
    moved = {home: plan.sums[at] for at, home in loop.sums.items() if plan.sums[at] != home}
    for result, source in _moves(moved, plan.base_a):
        yield Word(mov(result, source, 5))
    yield Word(nop(8))


def _moves(pending: dict[int, int], spare: int) -> Iterator[tuple[int, int]]:
    """Yield (result, source) of copies, one after another, with the effect of all copies of `pending` at once.

    `pending` maps results to sources; it is emptied. Register `spare` keeps a value of each cycle.
    """
    while pending:
        ready = [result for result in pending if result not in pending.values()]
        for result in ready:
            yield result, pending.pop(result)
        if not ready:
            result, source = next(iter(pending.items()))
            yield spare, source
            pending = {to: spare if at == source else at for to, at in pending.items()}
