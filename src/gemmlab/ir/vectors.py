"""Vectors for a function under construction: lanes, masks, fused multiply-add, and register hints."""

from __future__ import annotations

from collections.abc import Sequence

from gemmlab.ir.load_store import Memory
from gemmlab.ir.types import F32, I1, I32, Type, vector
from gemmlab.ir.values import Operand, Value, Var


class Vectors(Memory):
    """A function under construction that also has the methods for vectors."""

    def shuffle(self, left: Value, right: Value, pattern: Sequence[int]) -> Value:
        """Emit a vector of the lanes in `pattern`: 0 .. lanes-1 are those of `left`, lanes .. 2*lanes-1 of `right`.

        A pattern of one lane gives a scalar, and that lane must be one of `left`.
        """
        if len(pattern) == 1:
            return self.emit(left.type.scalar, f"extractelement {left.type} {left.name}, i64 {pattern[0]}")
        picks = ", ".join(f"i32 {lane}" for lane in pattern)
        type_ = vector(left.type.scalar, len(pattern))
        return self.emit(
            type_,
            f"shufflevector {left.type} {left.name}, {right.type} {right.name}, <{len(pattern)} x i32> <{picks}>",
        )

    def first_lanes(self, count: Operand, lanes: int) -> Value:
        """Emit a mask of `lanes` lanes that includes the first `count`, or all if `count >= lanes`; return it."""
        limit = self.convert(self.minimum(count, lanes), I32)
        steps = ", ".join(f"i32 {lane}" for lane in range(lanes))
        wide = self.splat(limit, lanes)
        return self.emit(vector(I1, lanes), f"icmp slt <{lanes} x i32> <{steps}>, {wide.name}")

    def lane_sum(self, value: Value) -> Value:
        """Emit the sum of a vector's lanes, and return it: lower and upper half are added until one lane is left."""
        while value.type.lanes > 1:
            half = value.type.lanes // 2
            low = self.shuffle(value, value, range(half))
            high = self.shuffle(value, value, range(half, 2 * half))
            value = low + high
        return value

    def fma(self, left: Operand, right: Operand, addend: Value) -> Value:
        """Emit `left * right + addend`, and return it, rounded once; twice on a processor without a fused instruction.

        `addend` has the type of all three, float or double or a vector of them; scalars fill vectors.
        """
        type_ = addend.type
        if not self.fused:
            return self.constant(left, type_) * right + addend
        suffix = "f32" if type_.scalar == F32 else "f64"
        name = f"llvm.fma.v{type_.lanes}{suffix}" if type_.lanes > 1 else f"llvm.fma.{suffix}"
        self.declare(name, f"declare {type_} @{name}({type_}, {type_}, {type_})")
        first, second = self.constant(left, type_), self.constant(right, type_)
        return self.emit(
            type_, f"call {type_} @{name}({type_} {first.name}, {type_} {second.name}, {type_} {addend.name})"
        )

    def pin(self, variables: Sequence[Var]) -> None:
        """Make LLVM keep these vector variables in registers here, and move no access to memory across this point.

        This adds no instruction. Otherwise LLVM's scheduler gathers the loads of several steps and spills
        accumulators to make room for them.
        """
        values = [variable.read() for variable in variables]
        register = "w" if self.arm else "v"
        outputs = ",".join([f"={register}"] * len(values))
        inputs = ",".join(str(index) for index in range(len(values)))
        passed = ", ".join(f"{value.type} {value.name}" for value in values)
        shape = Type("{" + ", ".join(str(value.type) for value in values) + "}")
        single = len(values) == 1
        text = f'asm sideeffect "", "{outputs},{inputs},~{{memory}}"({passed})'
        result = self.emit(values[0].type if single else shape, f"call {values[0].type if single else shape} {text}")
        for index, variable in enumerate(variables):
            part = result if single else self.emit(variable.type, f"extractvalue {shape} {result.name}, {index}")
            variable.set(part)

    def opaque(self, value: Value) -> Value:
        """Return the same pointer with its origin hidden from LLVM, so that it gets a separate register."""
        return self.emit(value.type, f'call ptr asm "", "=r,0"(ptr {value.name})')

    def pause(self) -> None:
        """Emit the instruction that tells the processor that it is in a spin loop."""
        if self.arm:
            self.declare("llvm.aarch64.hint", "declare void @llvm.aarch64.hint(i32)")
            self.line("call void @llvm.aarch64.hint(i32 1)")
        else:
            self.declare("llvm.x86.sse2.pause", "declare void @llvm.x86.sse2.pause()")
            self.line("call void @llvm.x86.sse2.pause()")
