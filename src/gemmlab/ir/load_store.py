"""Memory for a function under construction: loads, stores, prefetches, atomics, symbols."""

from __future__ import annotations

from abc import abstractmethod

from gemmlab.ir.emitter import Emitter
from gemmlab.ir.types import I1, I8, I64, Type, pointer, vector
from gemmlab.ir.values import Operand, Value, Var

ATOMIC = "seq_cst"


class Memory(Emitter):
    """A function under construction that also has the methods for addresses and accesses to memory."""

    def offset(self, base: Value, index: Operand) -> Value:
        """Emit the address `index` elements after `base`, and return it; elements of unknown type count as bytes."""
        element = base.type.element or I8
        where = self.index(index)
        moved = self.emit(base.type, f"getelementptr {element}, ptr {base.name}, i64 {where.name}")
        if base.name in self._private:
            self._private.add(moved.name)
        return moved

    @abstractmethod
    def watch(self, address: Value, type_: Type, mask: Value | None, *, write: bool) -> None:
        """Hook that `load` and `store` call first, unless the address is on the function's own stack.

        `type_` is the type of the whole access; `mask` is None if all lanes are accessed.
        """

    def _watched(self, address: Value, type_: Type, mask: Value | None, *, write: bool) -> None:
        if address.name not in self._private:
            self.watch(address, type_, mask, write=write)

    def load(self, address: Value, lanes: int = 1, mask: Value | None = None) -> Value:
        """Emit a load, and return the element, or vector of `lanes` elements, at `address`; floats need no alignment.

        A mask is for vectors of float32, and is ignored for one lane. Lanes that it excludes are not read, and are 0.
        """
        element = address.type.element or I8
        type_ = vector(element, lanes)
        align = _alignment(element)
        self._watched(address, type_, mask if lanes > 1 else None, write=False)
        if mask is None or lanes == 1:
            return self.emit(type_, f"load {type_}, ptr {address.name}, align {align}")
        name = f"llvm.masked.load.v{lanes}f32.p0"
        # The alignment is an operand, as in LLVM up to 21; newer versions accept and convert it.
        self.declare(name, f"declare {type_} @{name}(ptr, i32, {mask.type}, {type_})")
        operands = f"ptr {address.name}, i32 {align}, {mask.type} {mask.name}, {type_} zeroinitializer"
        return self.emit(type_, f"call {type_} @{name}({operands})")

    def store(self, address: Value, item: Operand, mask: Value | None = None) -> None:
        """Emit a store of `item` at `address`: a Python number as one element, a value or a vector as it is.

        A mask is for vectors of float32, and is ignored for one lane. Lanes that it excludes are not written.
        """
        element = address.type.element or I8
        value = item.read() if isinstance(item, Var) else item
        if not isinstance(value, Value):
            value = self.constant(value, element)
        align = _alignment(element)
        type_ = value.type
        self._watched(address, type_, mask if type_.lanes > 1 else None, write=True)
        if mask is None or type_.lanes == 1:
            self.line(f"store {type_} {value.name}, ptr {address.name}, align {align}")
            return
        name = f"llvm.masked.store.v{type_.lanes}f32.p0"
        self.declare(name, f"declare void @{name}({type_}, ptr, i32, {mask.type})")
        operands = f"{type_} {value.name}, ptr {address.name}, i32 {align}, {mask.type} {mask.name}"
        self.line(f"call void @{name}({operands})")

    def prefetch(self, address: Value, locality: int = 3, *, write: bool = False) -> None:
        """Emit a prefetch of the cache line at `address`, which need not be mapped, to read it or to `write` it.

        Locality 3 brings it into all cache levels, 2 into L2 and L3, 1 into L3.
        """
        self.declare("llvm.prefetch.p0", "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        self.line(f"call void @llvm.prefetch.p0(ptr {address.name}, i32 {int(write)}, i32 {locality}, i32 1)")

    def atomic_load(self, address: Value) -> Value:
        """Emit an atomic load of a 64-bit word, and return it. All atomic operations are sequentially consistent."""
        return self.emit(I64, f"load atomic i64, ptr {address.name} {ATOMIC}, align 8")

    def atomic_store(self, address: Value, item: Operand) -> None:
        """Emit an atomic store of a 64-bit word."""
        self.line(f"store atomic i64 {self.index(item).name}, ptr {address.name} {ATOMIC}, align 8")

    def atomic_add(self, address: Value, item: Operand) -> Value:
        """Emit an atomic addition to the 64-bit word at `address`; return the old value."""
        return self._read_modify_write("add", address, item)

    def atomic_and(self, address: Value, item: Operand) -> Value:
        """Emit an atomic replacement of a 64-bit word by its bitwise `and` with `item`; return the old value."""
        return self._read_modify_write("and", address, item)

    def _read_modify_write(self, word: str, address: Value, item: Operand) -> Value:
        return self.emit(I64, f"atomicrmw {word} ptr {address.name}, i64 {self.index(item).name} {ATOMIC}, align 8")

    def compare_exchange(self, address: Value, expected: Operand, desired: Operand) -> Value:
        """Emit an atomic replacement of a 64-bit word by `desired` if it is `expected`; return one bit.

        The bit is true if the word was `expected`.
        """
        pair = Type("{i64, i1}")
        old, new = self.index(expected), self.index(desired)
        result = self.emit(
            pair, f"cmpxchg ptr {address.name}, i64 {old.name}, i64 {new.name} {ATOMIC} {ATOMIC}, align 8"
        )
        return self.emit(I1, f"extractvalue {{i64, i1}} {result.name}, 1")

    def symbol(self, name: str, element: Type) -> Value:
        """Return the address of a global of the module, `name` with its `@`, as a pointer to `element`."""
        return self.value(pointer(element), name)

    def table_entry(self, table: str, index: Operand) -> Value:
        """Emit the load of function pointer number `index` of a table, and return it.

        `table` is the symbol that `Module.table` returned.
        """
        where = self.emit(pointer(I64), f"getelementptr ptr, ptr {table}, i64 {self.index(index).name}")
        return self.emit(pointer(I8), f"load ptr, ptr {where.name}, align 8")


def _alignment(element: Type) -> int:
    """Return the alignment in bytes that LLVM may assume of an element's address: 1 for floats, as arrays of users may
    be unaligned.
    """
    return 1 if element.is_float else max(1, element.bits // 8)
