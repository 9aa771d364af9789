"""A function under construction: instructions, control flow as `with` blocks, memory, vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

from gemmlab.codegen.probe import Probe
from gemmlab.codegen.types import F32, F64, I1, I8, I32, I64, VOID, Type, pointer, vector
from gemmlab.codegen.values import Operand, Value, Var, literal

ATOMIC = "seq_cst"


class Function:
    """Emits the body of one LLVM function. Obtain it from `Module.function`."""

    def __init__(
        self,
        name: str,
        params: Sequence[tuple[str, Type]],
        returns: Type,
        header: str,
        *,
        arm: bool,
        fused: bool,
        probe: Probe | None = None,
    ) -> None:
        self.name = name
        self.arm = arm
        self.fused = fused
        self.returns = returns
        self.signature = tuple(type_ for _name, type_ in params)
        self.args = tuple(Value(self, type_, f"%{label}") for label, type_ in params)
        self.declared: dict[str, str] = {}
        self._probe = probe
        self._private: set[str] = set()
        self._header = header
        self._slots: list[str] = []
        self._body: list[str] = []
        self._count = 0

    # -- text ---------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        """Append one instruction that has no result."""
        self._body.append("  " + text)

    def emit(self, type_: Type, text: str) -> Value:
        """Append one instruction and name its result."""
        self._count += 1
        name = f"%v{self._count}"
        self._body.append(f"  {name} = {text}")
        return Value(self, type_, name)

    def _label(self, hint: str) -> str:
        self._count += 1
        return f"{hint}{self._count}"

    def open_block(self, label: str) -> None:
        """What follows is reached by branching to `label`."""
        self._body.append(f"{label}:")

    def text(self) -> str:
        """The function as LLVM IR."""
        return "\n".join([self._header + " {", "entry:", *self._slots, *self._body, "}"])

    # -- values -------------------------------------------------------------------------------------

    def constant(self, item: Operand, type_: Type) -> Value:
        """`item` as a value of `type_`: Python numbers become constants, scalars fill vectors."""
        if isinstance(item, Var):
            item = item.read()
        if isinstance(item, Value):
            if type_.lanes > 1 and item.type.name == type_.scalar.name:
                return self.splat(item, type_.lanes)
            if item.type.name != type_.name:
                raise TypeError(f"{self.name}: {item.type} where {type_} is needed")
            return item
        if type_.lanes > 1:
            each = f"{type_.scalar} {literal(item, type_.scalar)}"
            return Value(self, type_, "<" + ", ".join([each] * type_.lanes) + ">")
        return Value(self, type_, literal(item, type_))

    def index(self, item: Operand) -> Value:
        """`item` as a 64-bit integer."""
        return self.constant(item, I64)

    def binary(self, word: str, left: Value, right: Operand) -> Value:
        """Apply a two-operand instruction; a scalar meets a vector as its splat."""
        other = right.read() if isinstance(right, Var) else right
        type_ = other.type if isinstance(other, Value) and other.type.lanes > left.type.lanes else left.type
        first, second = self.constant(left, type_), self.constant(other, type_)
        return self.emit(type_, f"{word} {type_} {first.name}, {second.name}")

    def var(self, type_: Type, initial: Operand | None = None) -> Var:
        """A mutable local."""
        self._count += 1
        slot = f"%s{self._count}"
        self._slots.append(f"  {slot} = alloca {type_}")
        variable = Var(self, type_, slot)
        if initial is not None:
            variable.set(initial)
        return variable

    def scratch(self, element: Type, count: int, align: int = 64) -> Value:
        """Uninitialised stack memory for `count` elements."""
        self._count += 1
        name = f"%s{self._count}"
        self._slots.append(f"  {name} = alloca [{count} x {element}], align {align}")
        self._private.add(name)
        return Value(self, pointer(element), name)

    def select(self, condition: Value, yes: Operand, no: Operand, type_: Type = I64) -> Value:
        """`yes` where the condition holds, else `no`; both are evaluated."""
        first, second = self.constant(yes, type_), self.constant(no, type_)
        text = f"select {condition.type} {condition.name}, {type_} {first.name}, {type_} {second.name}"
        return self.emit(type_, text)

    def minimum(self, left: Operand, right: Operand) -> Value:
        """The smaller of two integers."""
        first, second = self.index(left), self.index(right)
        return self.select(first < second, first, second)

    def maximum(self, left: Operand, right: Operand) -> Value:
        """The larger of two integers."""
        first, second = self.index(left), self.index(right)
        return self.select(first > second, first, second)

    def ceil_div(self, value: Operand, divisor: Operand) -> Value:
        """Quotient rounded up, of non-negative integers."""
        return (self.index(value) + (self.index(divisor) - 1)) // divisor

    def convert(self, value: Value, type_: Type) -> Value:
        """Between integer widths (sign-extending) and between float and double."""
        if value.type.name == type_.name:
            return value
        if value.type.is_float:
            word = "fpext" if type_ == F64 else "fptrunc"
        else:
            word = "sext" if type_.bits > value.type.bits else "trunc"
        return self.emit(type_, f"{word} {value.type} {value.name} to {type_}")

    def zero_extend(self, value: Value, type_: Type = I64) -> Value:
        """An unsigned integer (or truth value) in a wider type."""
        return self.emit(type_, f"zext {value.type} {value.name} to {type_}")

    def address(self, value: Value) -> Value:
        """A pointer's address as an integer."""
        return self.emit(I64, f"ptrtoint ptr {value.name} to i64")

    def cast(self, value: Value, element: Type) -> Value:
        """The same address seen as a pointer to `element`, from a pointer or an integer."""
        if value.type.is_pointer:
            return Value(self, pointer(element), value.name)
        return self.emit(pointer(element), f"inttoptr i64 {value.name} to ptr")

    # -- memory -------------------------------------------------------------------------------------

    def offset(self, base: Value, index: Operand) -> Value:
        """`base + index`, counted in elements."""
        element = base.type.element or I8
        where = self.index(index)
        moved = self.emit(base.type, f"getelementptr {element}, ptr {base.name}, i64 {where.name}")
        if base.name in self._private:
            self._private.add(moved.name)
        return moved

    def _probed(self, address: Value, type_: Type, mask: Value | None, *, write: bool) -> None:
        if self._probe is not None and type_.is_float and address.name not in self._private:
            self._probe.access(self, address, type_, mask, write=write)

    def load(self, address: Value, lanes: int = 1, mask: Value | None = None) -> Value:
        """Read an element or a vector; a float may lie at any address. Masked-off lanes are 0."""
        element = address.type.element or I8
        type_ = vector(element, lanes)
        align = _alignment(element)
        self._probed(address, type_, mask if lanes > 1 else None, write=False)
        if mask is None or lanes == 1:
            return self.emit(type_, f"load {type_}, ptr {address.name}, align {align}")
        name = f"llvm.masked.load.v{lanes}f32.p0"
        self.declare(name, f"declare {type_} @{name}(ptr, <{lanes} x i1>, {type_})")
        return self.emit(
            type_,
            f"call {type_} @{name}(ptr align {align} {address.name}, {mask.type} {mask.name}, {type_} zeroinitializer)",
        )

    def store(self, address: Value, item: Operand, mask: Value | None = None) -> None:
        """Write an element or a vector (`item`'s own type); masked-off lanes are left alone."""
        element = address.type.element or I8
        value = item.read() if isinstance(item, Var) else item
        if not isinstance(value, Value):
            value = self.constant(value, element)
        align = _alignment(element)
        type_ = value.type
        self._probed(address, type_, mask if type_.lanes > 1 else None, write=True)
        if mask is None or type_.lanes == 1:
            self.line(f"store {type_} {value.name}, ptr {address.name}, align {align}")
            return
        name = f"llvm.masked.store.v{type_.lanes}f32.p0"
        self.declare(name, f"declare void @{name}({type_}, ptr, {mask.type})")
        self.line(f"call void @{name}({type_} {value.name}, ptr align {align} {address.name}, {mask.type} {mask.name})")

    def prefetch(self, address: Value, locality: int = 3, *, write: bool = False) -> None:
        """Ask for a cache line: locality 3 all levels, 2 from L2 on, 1 from L3 on. Never faults."""
        self.declare("llvm.prefetch.p0", "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        self.line(f"call void @llvm.prefetch.p0(ptr {address.name}, i32 {int(write)}, i32 {locality}, i32 1)")

    def atomic_load(self, address: Value) -> Value:
        """Sequentially consistent read of a 64-bit word."""
        return self.emit(I64, f"load atomic i64, ptr {address.name} {ATOMIC}, align 8")

    def atomic_store(self, address: Value, item: Operand) -> None:
        """Sequentially consistent write of a 64-bit word."""
        self.line(f"store atomic i64 {self.index(item).name}, ptr {address.name} {ATOMIC}, align 8")

    def atomic_add(self, address: Value, item: Operand) -> Value:
        """Fetch and add on a 64-bit word; the old value."""
        return self._read_modify_write("add", address, item)

    def atomic_and(self, address: Value, item: Operand) -> Value:
        """Fetch and and on a 64-bit word; the old value."""
        return self._read_modify_write("and", address, item)

    def _read_modify_write(self, word: str, address: Value, item: Operand) -> Value:
        return self.emit(I64, f"atomicrmw {word} ptr {address.name}, i64 {self.index(item).name} {ATOMIC}, align 8")

    def compare_exchange(self, address: Value, expected: Operand, desired: Operand) -> Value:
        """Replace a 64-bit word if it holds `expected`; whether it did."""
        pair = Type("{i64, i1}")
        old, new = self.index(expected), self.index(desired)
        result = self.emit(
            pair, f"cmpxchg ptr {address.name}, i64 {old.name}, i64 {new.name} {ATOMIC} {ATOMIC}, align 8"
        )
        return self.emit(I1, f"extractvalue {{i64, i1}} {result.name}, 1")

    def symbol(self, name: str, element: Type) -> Value:
        """The address of a global of the module."""
        return Value(self, pointer(element), name)

    def function_address(self, callee: Function) -> Value:
        """A pointer to a function of the module."""
        return Value(self, pointer(I8), f"@{callee.name}")

    def table_entry(self, table: str, index: Operand) -> Value:
        """A function pointer from a table of the module."""
        where = self.emit(pointer(I64), f"getelementptr ptr, ptr {table}, i64 {self.index(index).name}")
        return self.emit(pointer(I8), f"load ptr, ptr {where.name}, align 8")

    # -- vectors ------------------------------------------------------------------------------------

    def splat(self, value: Value, lanes: int) -> Value:
        """A vector with `value` in every lane."""
        type_ = vector(value.type, lanes)
        if lanes == 1:
            return value
        first = self.emit(type_, f"insertelement {type_} poison, {value.type} {value.name}, i64 0")
        return self.emit(type_, f"shufflevector {type_} {first.name}, {type_} poison, <{lanes} x i32> zeroinitializer")

    def shuffle(self, left: Value, right: Value, pattern: Sequence[int]) -> Value:
        """Lanes picked from `left` (0 .. lanes-1) and `right` (lanes .. 2*lanes-1)."""
        if len(pattern) == 1:
            return self.emit(left.type.scalar, f"extractelement {left.type} {left.name}, i64 {pattern[0]}")
        picks = ", ".join(f"i32 {lane}" for lane in pattern)
        type_ = vector(left.type.scalar, len(pattern))
        return self.emit(
            type_,
            f"shufflevector {left.type} {left.name}, {right.type} {right.name}, <{len(pattern)} x i32> <{picks}>",
        )

    def first_lanes(self, count: Operand, lanes: int) -> Value:
        """A mask whose first `count` lanes are on; all of them when `count >= lanes`."""
        limit = self.convert(self.minimum(count, lanes), I32)
        steps = ", ".join(f"i32 {lane}" for lane in range(lanes))
        wide = self.splat(limit, lanes)
        return self.emit(vector(I1, lanes), f"icmp slt <{lanes} x i32> <{steps}>, {wide.name}")

    def lane_sum(self, value: Value) -> Value:
        """The sum of a vector's lanes, halves first: always the same order."""
        while value.type.lanes > 1:
            half = value.type.lanes // 2
            low = self.shuffle(value, value, range(half))
            high = self.shuffle(value, value, range(half, 2 * half))
            value = low + high
        return value

    def fma(self, left: Operand, right: Operand, addend: Value) -> Value:
        """`left * right + addend`, rounded once (twice on a processor that has no fused instruction)."""
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

    # -- keeping LLVM's hands off ---------------------------------------------------------------------

    def pin(self, variables: Sequence[Var]) -> None:
        """Hold these vector variables in registers here, and memory accesses on their side of this point.

        Costs no instruction. LLVM's scheduler otherwise gathers the loads of several steps and spills
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
        """The same pointer with its origin hidden, so that it keeps a register of its own."""
        return self.emit(value.type, f'call ptr asm "", "=r,0"(ptr {value.name})')

    def pause(self) -> None:
        """Tell the processor that this is a spin loop."""
        if self.arm:
            self.declare("llvm.aarch64.hint", "declare void @llvm.aarch64.hint(i32)")
            self.line("call void @llvm.aarch64.hint(i32 1)")
        else:
            self.declare("llvm.x86.sse2.pause", "declare void @llvm.x86.sse2.pause()")
            self.line("call void @llvm.x86.sse2.pause()")

    # -- control ------------------------------------------------------------------------------------

    def _branch(self, condition: Value, yes: str, no: str) -> None:
        self.line(f"br i1 {condition.name}, label %{yes}, label %{no}")

    @contextmanager
    def range(self, start: Operand, stop: Operand | None = None, step: Operand = 1) -> Iterator[Value]:
        """`for i in range(start, stop, step)` for a positive step; `range(stop)` starts at 0."""
        first, last = (0, start) if stop is None else (start, stop)
        limit, stride = self.index(last), self.index(step)
        counter = self.var(I64, first)
        head, body, tail, done = (self._label(hint) for hint in ("head", "body", "next", "done"))
        self._branch(counter < limit, body, done)
        self.open_block(body)
        here = counter.read()
        yield here
        self.line(f"br label %{tail}")
        self.open_block(tail)
        following = here + stride
        counter.set(following)
        self.line(f"br label %{head}")
        self.open_block(head)
        self._branch(following < limit, body, done)
        self.open_block(done)

    @contextmanager
    def loop(self) -> Iterator[str]:
        """An endless loop; leave it with `leave_if(label, condition)` on the label it yields."""
        body, done = self._label("body"), self._label("done")
        self.line(f"br label %{body}")
        self.open_block(body)
        yield done
        self.line(f"br label %{body}")
        self.open_block(done)

    def leave_if(self, label: str, condition: Value) -> None:
        """Leave the loop whose label this is when the condition holds."""
        stay = self._label("stay")
        self._branch(condition, label, stay)
        self.open_block(stay)

    @contextmanager
    def when(self, condition: Value) -> Iterator[None]:
        """Run the block when the condition holds."""
        body, done = self._label("then"), self._label("done")
        self._branch(condition, body, done)
        self.open_block(body)
        yield
        self.line(f"br label %{done}")
        self.open_block(done)

    @contextmanager
    def choose(self, condition: Value) -> Iterator[Choice]:
        """Two-way choice: `with fn.choose(c) as choice: with choice.yes(): ...; with choice.no(): ...`."""
        choice = Choice(self, self._label("yes"), self._label("no"), self._label("done"))
        self._branch(condition, choice.yes_label, choice.no_label)
        yield choice
        self.open_block(choice.done_label)

    def ret(self, item: Operand | None = None) -> None:
        """Return; code after it in the same block is unreachable."""
        if item is None:
            self.line("ret void")
        else:
            self.line(f"ret {self.returns} {self.constant(item, self.returns).name}")
        self.open_block(self._label("dead"))

    def finish(self, item: Operand | None = None) -> None:
        """The last return of a function."""
        if item is None:
            self.line("ret void")
        else:
            self.line(f"ret {self.returns} {self.constant(item, self.returns).name}")

    # -- calls --------------------------------------------------------------------------------------

    def declare(self, name: str, text: str) -> None:
        """Note an external function that this one calls."""
        self.declared[name] = text

    def call(self, callee: Function, *args: Operand) -> Value:
        """Call a function of the same module."""
        with nullcontext() if self._probe is None else self._probe.around(self, callee):
            return self._call(f"@{callee.name}", callee.returns, callee.signature, args)

    def call_external(self, name: str, returns: Type, signature: Sequence[Type], *args: Operand) -> Value:
        """Call a C function found in the process when the code is loaded."""
        self.declare(name, f"declare {returns} @{name}({', '.join(map(str, signature))})")
        return self._call(f"@{name}", returns, signature, args)

    def call_pointer(self, target: Value, returns: Type, signature: Sequence[Type], *args: Operand) -> Value:
        """Call through a function pointer."""
        return self._call(target.name, returns, signature, args)

    def _call(self, target: str, returns: Type, signature: Sequence[Type], args: Sequence[Operand]) -> Value:
        if len(args) != len(signature):
            raise TypeError(f"{self.name}: {target} takes {len(signature)} arguments, got {len(args)}")
        passed = [self.constant(arg, type_) for arg, type_ in zip(args, signature, strict=True)]
        listing = ", ".join(f"{type_} {value.name}" for type_, value in zip(signature, passed, strict=True))
        if returns == VOID:
            self.line(f"call void {target}({listing})")
            return Value(self, VOID, "")
        return self.emit(returns, f"call {returns} {target}({listing})")


def _alignment(element: Type) -> int:
    """Bytes an element's address is known to be a multiple of: users' floats may be unaligned."""
    return 1 if element.is_float else max(1, element.bits // 8)


class Choice:
    """The two arms of `Function.choose`."""

    def __init__(self, fn: Function, yes_label: str, no_label: str, done_label: str) -> None:
        self._fn = fn
        self.yes_label = yes_label
        self.no_label = no_label
        self.done_label = done_label

    @contextmanager
    def yes(self) -> Iterator[None]:
        """What happens when the condition holds."""
        yield from self._arm(self.yes_label)

    @contextmanager
    def no(self) -> Iterator[None]:
        """What happens when it does not."""
        yield from self._arm(self.no_label)

    def _arm(self, label: str) -> Iterator[None]:
        self._fn.open_block(label)
        yield
        self._fn.line(f"br label %{self.done_label}")
