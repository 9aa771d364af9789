"""Groups of multiplications in PTX: those that nothing closes, and results that are used in flight."""

from __future__ import annotations

from gemmlab.emulator.ptx_groups import InFlight, Open, groups_of

MULTIPLY = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd1, 1, 1, 1, 0, 0;"
COMMIT, STORE = "wgmma.commit_group.sync.aligned;", "st.global.f32 [%rd2], %f3;"


def wait(left: int) -> str:
    return f"wgmma.wait_group.sync.aligned {left};"


def groups(*lines: str) -> tuple[tuple[Open, ...], tuple[InFlight, ...]]:
    """Return the findings in a function whose first statement is in line 2."""
    found = groups_of("\n".join((".visible .entry k(.param .u64 p) {", *lines, "ret;", "}")), "k")
    return found.open, found.in_flight


def test_right_code_has_nothing() -> None:
    assert groups(MULTIPLY, COMMIT, wait(0), STORE) == ((), ())
    assert groups(MULTIPLY + COMMIT + wait(0) + STORE) == ((), ())
    split = MULTIPLY.replace(" {", "\n{").replace(", %rd1,", ',\n\t.pragma "x";\n %rd1,', 1)
    assert groups("{", ".reg .pred p;", "setp.ne.b32 p, %r1, 0;", split, "}", COMMIT, wait(0), STORE) == ((), ())


def test_a_group_that_nothing_closes() -> None:
    assert groups(MULTIPLY, wait(0))[0] == (Open(3, 2),)
    assert groups(MULTIPLY, COMMIT, MULTIPLY, wait(1))[0] == (Open(5, 4),)


def test_a_function_that_is_called_may_close_it() -> None:
    assert groups(MULTIPLY, "call.uni close, ();", wait(0))[0] == ()


def test_a_loop_whose_wait_stands_before_its_multiplication() -> None:
    loop = ("$L_1:", wait(0), MULTIPLY, COMMIT, "@%p1 bra $L_1;")
    assert groups(*loop, wait(0), STORE) == ((), ())
    assert groups(*(line for line in loop if line != COMMIT))[0] == (Open(3, 4),)


def test_code_that_nothing_leads_to_is_not_looked_at() -> None:
    assert groups("bra.uni $L_2;", MULTIPLY, "$L_2:", wait(0)) == ((), ())


def test_a_wait_that_leaves_a_group_in_flight() -> None:
    (found,) = groups(MULTIPLY, COMMIT, wait(1), STORE)[1]
    assert found == InFlight(use=5, multiplication=2, wait=4, left=1, closed=1)
    (found,) = groups(MULTIPLY, COMMIT, "mov.f32 %f9, %f3;", "st.global.f32 [%rd2], %f9;")[1]
    assert found == InFlight(use=5, multiplication=2, wait=0, left=0, closed=1)
    assert groups(MULTIPLY, COMMIT, "mov.f32 %f3, 0f00000000;", STORE)[1] == ()


def test_a_multiplication_uses_a_result_as_a_or_as_another_shapes_accumulator() -> None:
    left = MULTIPLY.replace("%rd1, %rd1", "{%r1, %r2, %f3, %r4}, %rd1").replace("{%f1, %f2, %f3, %f4}", "{%f9, %f8}")
    (found,) = groups(MULTIPLY, COMMIT, left, COMMIT, wait(0))[1]
    assert found == InFlight(use=4, multiplication=2, wait=0, left=0, closed=1)
    wide = MULTIPLY.replace("%f4}", "%f4, %f5, %f6, %f7, %f8}")
    assert [(each.use, each.multiplication) for each in groups(MULTIPLY, wide, COMMIT, wait(0))[1]] == [(3, 2)]
    assert groups(MULTIPLY, "mov.f32 %f5, %f3;", MULTIPLY, COMMIT, wait(0))[1] == ()
    assert groups(MULTIPLY, COMMIT, wait(0), left, COMMIT, wait(0), wide, COMMIT, wait(0))[1] == ()


def test_what_is_in_flight_at_a_line() -> None:
    split = MULTIPLY.replace(" {", "\n{")
    ptx = (".entry k(.param .u64 p) {", split, COMMIT, "mov.f32 %f9, %f3;", wait(0), "ret;", "}")
    found = groups_of("\n".join(ptx), "k")
    assert [found.statement(line) for line in (1, 2, 3, 5)] == [0, 2, 2, 5]
    assert found.multiplications == {2}
    assert [found.flying[line] for line in (2, 4, 5, 6, 7)] == [0, 2, 2, 2, 0]


def test_a_register_of_a_that_is_written_in_flight() -> None:
    left = MULTIPLY.replace("%rd1, %rd1", "{%r1, %r2, %r3, a}, %rd1")
    load, own = "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r2, %r3}, [%r9];", "add.u32 a, a, 1;"
    assert groups(load, own, left, COMMIT, wait(0), load, own) == ((), ())
    assert groups(left, COMMIT, "mov.u32 %r2, %r7;", wait(0))[1] == ()
    found = groups(left, COMMIT, own, wait(1), load)[1]
    assert [(each.use, each.wait, each.left, each.writes_input) for each in found] == [(4, 0, 0, True), (6, 5, 1, True)]


def test_registers_of_braces_are_their_own() -> None:
    left = MULTIPLY.replace("%rd1, %rd1", "{a0, a1, b, %r4}, %rd1")
    own = ("{", ".reg .b32 a<2>, b;", "add.u32 a0, %r1, 1;", "add.u32 b, %r1, 2;", left + "}", COMMIT)
    assert groups(*own, *own, wait(0)) == ((), ())
    inner = ("{ .reg .b32 a0; add.u32 a0, %r1, 3; { .reg .b32 b; add.u32 b, a0, 1; } }",)
    assert groups(*own[:-2], left, *inner, "}", COMMIT, wait(0)) == ((), ())
    outer = (".reg .b32 a<2>, b;", left, COMMIT, "{ .reg .b32 a0;", "add.u32 a0, %r1, 1;", "add.u32 b, a0, 1;", "}")
    (found,) = groups(*outer, wait(0))[1]
    assert (found.use, found.multiplication, found.writes_input) == (7, 3, True)


def test_labels_of_inline_assembly_may_repeat() -> None:
    poll = "{.reg .pred done; again: mbarrier.try_wait.b64 done, [%r1], %r2; @!done bra again;}"
    assert groups(poll, MULTIPLY, COMMIT, poll, wait(0), poll, STORE) == ((), ())
