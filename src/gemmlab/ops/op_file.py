"""Operations as the command line names them: by name, or by a Python file that states one.

Such a file is run, so only the user can name it, on the command line or in Python. A file is never run because it lies
beside a kernel, or because a header, a record or a cache names it.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from gemmlab.core.errors import UsageError
from gemmlab.ops.catalog import declare, find_op
from gemmlab.ops.declared import DeclaredOp
from gemmlab.ops.op import Op
from gemmlab.ops.operation import Operation

SUFFIX = ".py"


def op_named(source: str | Operation) -> Op:
    """Return the operation that a name, a Python file (`.py`, which is run) or an object states.

    A file's or object's operation becomes known to `find_op`. Raises `UsageError` for an unknown name or a wrong file.
    """
    if isinstance(source, Operation):
        return declared(source)
    return load_operation(Path(source)) if source.endswith(SUFFIX) else find_op(source)


def declared(stated: Operation, file: str | None = None) -> Op:
    """Return the operation that `stated` describes, and make it known to `find_op`. `file` is the file that states
    it.
    """
    op = DeclaredOp(stated, file=file)
    declare(op)
    return op


def load_operation(path: Path) -> Op:
    """Run a Python file, and return the operation that it states after making it known to `find_op`.

    Raises `UsageError` with the file's name if it fails, or states no operation or several.
    """
    path = path.resolve()
    if not path.is_file():
        raise UsageError(f"{path}: no such file")
    spec = importlib.util.spec_from_file_location(f"gemmlab_operation_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    # As a script does, the file may import modules of its folder.
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UsageError(f"{path}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(path.parent))
    found = {id(value): value for value in vars(module).values() if isinstance(value, Operation)}
    if len(found) != 1:
        raise UsageError(f"{path}: states {len(found)} operations (`gemmlab.Operation`); it must state one")
    (stated,) = found.values()
    return declared(stated, str(path))
