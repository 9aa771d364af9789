"""The code of a function with its main loop written anew."""

from __future__ import annotations

from collections.abc import Iterator

from gemmlab.core.errors import UsageError
from gemmlab.sass.checking.register_room import RESERVE
from gemmlab.sass.instruction import SassFunction
from gemmlab.sass.writing.cubin_code import with_words
from gemmlab.sass.writing.register_count import with_register_count
from peak_loop.compiled import COLUMNS, DEPTH, ROWS, CompiledLoop, compiled_loop
from peak_loop.places import EVEN, EVEN_REST, ODD, ODD_REST, STEP, Places, address_word, placed
from peak_loop.registers import LIMIT, Registers, planned
from peak_loop.variants import Variant
from peak_loop.words import NO_BARRIER, RZ, branch, ffma, load, mov, nop

A_APART, B_APART = 4 * 132, 4 * 260
"""Bytes between steps of k in a stage."""
_ALL = 0x3F
_LOADS = (("b", 0), ("a", 0), ("b", 1), ("a", 1), ("a", 2), ("a", 3))
"""Operand and part of each load; after three of them the first four rows have come."""
_ROOM = "PMTRIG"
"""What the source reserves words with behind the loop: `pmevent`."""


def rewritten(cubin: bytes, function: SassFunction, variant: Variant, name: str = "cubin") -> bytes:
    """Return the cubin with the loop of a variant. Raises `UsageError` if the loop is not of that kind."""
    code = with_words(cubin, function, written(function, variant), name=name)
    return with_register_count(code, function.name, LIMIT + RESERVE, name)


def written(function: SassFunction, variant: Variant) -> list[int]:
    """Return all words of the function."""
    loop = compiled_loop(function)
    plan = planned(loop, variant)
    places = placed(loop, plan)
    _put_loads(loop, plan, variant, places)
    body = [*_body(plan, variant, places)]
    entry = [address_word(plan.address_a, plan.base_a), address_word(plan.address_b, plan.base_b)]
    entry[0] |= _ALL << 116
    entry += [mov(register, RZ) for register in plan.zeroed]
    room = loop.stop - loop.start
    if len(body) + len(entry) > room:
        raise UsageError(
            f"{function.name}: the loop takes {len(body) + len(entry)} instructions, and there is room for {room}"
        )
    body[-1] = branch(body[-1], -16 * len(body))
    words = [one.encoding for one in function.instructions]
    words[loop.start : loop.stop] = [*entry, *[nop()] * (room - len(body) - len(entry)), *body]
    for index in range(loop.start):
        if function.instructions[index].opcode == _ROOM:
            words[index] = nop()
    _put_moves(loop, plan, words)
    return words


def _put_loads(loop: CompiledLoop, plan: Registers, variant: Variant, places: Places) -> None:
    for step in range(DEPTH):
        following, odd = (step + 1) % DEPTH, (step + 1) % 2
        at = variant.last_loads if step == DEPTH - 1 else variant.loads
        for number, (operand, part) in enumerate(_LOADS):
            if operand == "a":
                base, offset = plan.base_a, loop.a_from + A_APART * following + 64 * part
                register = plan.a[odd][4 * part]
            else:
                base, offset = plan.base_b, loop.b_from + B_APART * following + 128 * part
                register = plan.b[odd][4 * part]
            barrier = NO_BARRIER
            if number == (2 if variant.halves else len(_LOADS) - 1):
                barrier = ODD if odd else EVEN
            elif number == len(_LOADS) - 1:
                barrier = ODD_REST if odd else EVEN_REST
            places.put(STEP * step + at[number], load(loop.loads[0], register, base, offset, barrier))


def _products(variant: Variant) -> Iterator[tuple[int, int, int]]:
    """Step, row and column of each FFMA."""
    lines, length = (COLUMNS, ROWS) if variant.by_columns else (ROWS, COLUMNS)
    for step in range(DEPTH):
        for line in range(lines):
            for number in range(length):
                along = length - 1 - number if line % 2 else number
                yield (step, along, line) if variant.by_columns else (step, line, along)


def _body(plan: Registers, variant: Variant, places: Places) -> Iterator[int]:
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
        yield ffma(total, plan.a[step % 2][row], plan.b[step % 2][column], total, reuse=reuse, wait=wait)
    yield from places.words.get(len(products), ())


def _put_moves(loop: CompiledLoop, plan: Registers, words: list[int]) -> None:
    """Behind the loop: each sum back to where the compiler has it."""
    spots = [index for index in range(loop.stop, len(words)) if loop.function.instructions[index].opcode == _ROOM]
    moves = [*_moves({home: plan.sums[at] for at, home in loop.sums.items() if plan.sums[at] != home}, plan.base_a)]
    if spots != [*range(loop.stop, loop.stop + len(spots))] or len(moves) + 2 > len(spots):
        raise UsageError(
            f"{loop.function.name}: {len(moves) + 2} words are needed right behind the loop, and pmevent reserves "
            f"{len(spots)}"
        )
    tail = [nop(wait=_ALL), *(mov(result, source, 5) for result, source in moves)]
    tail += [nop()] * (len(spots) - len(tail))
    tail[-1] = nop(8)
    words[loop.stop : loop.stop + len(spots)] = tail


def _moves(pending: dict[int, int], spare: int) -> Iterator[tuple[int, int]]:
    """Copies one after another that act as all at once, circles through a spare register."""
    while pending:
        ready = [result for result in pending if result not in pending.values()]
        for result in ready:
            yield result, pending.pop(result)
        if not ready:
            result, source = next(iter(pending.items()))
            yield spare, source
            pending = {to: spare if held == source else held for to, held in pending.items()}
