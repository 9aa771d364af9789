"""All entries of an object that computes products: for C, for stacks, for Python."""

from __future__ import annotations

from gemmlab.codegen.blocking import Blocks
from gemmlab.codegen.entry import emit_c_entry, emit_python_entry, emit_stack_entry
from gemmlab.codegen.product import SERIAL_WORK
from gemmlab.codegen.stack_entry import emit_python_stack
from gemmlab.codegen.stacks import emit_stack
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module

C_ENTRY, STACK_ENTRY, PYTHON_ENTRY = "gemmlab_sgemm", "gemmlab_sgemm_stack", "gemmlab_python"
EXPORTS = ("gemmlab_pool_init", "gemmlab_worker", C_ENTRY, STACK_ENTRY, PYTHON_ENTRY)


def emit_entries(
    module: Module, blocks: Blocks, product: Function, serial_work: int = SERIAL_WORK, *, small: bool = True
) -> Function:
    """Emit the exported entries for `product`, a function with the arguments `product.PRODUCT`; return the one for C.

    With `small`, small products of a stack have separate loops, which compute the same bits as `product`.
    """
    stack = emit_stack(module, blocks, product, serial_work, small=small)
    entry = emit_c_entry(module, product, C_ENTRY)
    emit_stack_entry(module, stack, STACK_ENTRY)
    emit_python_entry(module, product, emit_python_stack(module, stack, "python_stack"), PYTHON_ENTRY)
    return entry
