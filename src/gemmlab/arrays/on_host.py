"""Arrays of other packages in this machine's memory (torch, JAX, anything with DLPack), converted to NumPy and back.

Both ways share the memory. No package is imported: the package of an existing array is imported already.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.arrays.on_gpu import is_device_array, is_tensor, refusal
from gemmlab.arrays.packages import package_of
from gemmlab.core.argument_checks import dtype_error
from gemmlab.core.errors import ArgumentTypeError

_DLPACK_HOST = (1, 3)
"""DLPack's device types of arrays in the host's memory: `kDLCPU`, and `kDLCUDAHost` for pinned memory."""


def is_host_array(value: Any) -> bool:
    """Return whether `value` is an array of another package than NumPy that lies in this machine's memory.

    Also true for torch's tensors without memory or on a device other than an NVIDIA GPU: `host_view` refuses them.
    """
    if value is None or isinstance(value, np.ndarray | np.generic):
        return False
    if is_tensor(value):
        return not value.is_cuda
    if not hasattr(value, "__dlpack__"):
        return False
    where: Any = getattr(value, "__dlpack_device__", None)
    return where is not None and int(where()[0]) in _DLPACK_HOST


def host_view(call: str, name: str, value: Any) -> npt.NDArray[Any]:
    """Return the operand `name` of a `call` as a NumPy array over the same memory; `ArgumentTypeError` if that is
    impossible.
    """
    torch = _torch_of(value)
    if torch is not None and value.dtype != torch.float32:
        package = package_of(value)
        raise dtype_error(call, name, value.dtype, package.to_float32 if package else "")
    try:
        array: npt.NDArray[Any] = np.from_dlpack(value) if torch is None else value.numpy()
    except Exception as error:
        known = refusal(name, value, call) if torch is not None else None
        raise ArgumentTypeError(f"{call}: {name} {known or f'does not show its memory: {error}'}") from error
    if name == "out" and not array.flags.writeable:
        # JAX's arrays are never writeable. DLPack before 1.0 (NumPy before 2.1) does not report it: NumPy assumes
        # read-only.
        raise ArgumentTypeError(f"{call}: out is {_kind(value)}, which cannot be written to by DLPack")
    return array


def host_views(call: str, operands: Mapping[str, Any]) -> dict[str, Any]:
    """Return `host_view` of all operands except `None`; an array given twice gives one view.

    Raises `ArgumentTypeError`, also for operands that are not all of one package.
    """
    one_package(call, operands)
    views: dict[int, Any] = {id(None): None}
    for name in ("out", *operands):
        if (value := operands.get(name)) is not None and id(value) not in views:
            views[id(value)] = host_view(call, name, value)
    return {name: views[id(value)] for name, value in operands.items()}


def one_package(call: str, operands: Mapping[str, Any]) -> None:
    """Raise `ArgumentTypeError` if arrays of another package are mixed with NumPy's or with those of a third."""
    present = {name: value for name, value in operands.items() if value is not None}
    if len({type(value) for value in present.values()}) < 2:
        return
    alien = next((name for name, value in present.items() if is_host_array(value) or is_device_array(value)), None)
    if alien is None:
        return
    for name, value in present.items():
        if _top(value) != _top(present[alien]):
            raise ArgumentTypeError(
                f"{call}: {name} is {_kind(value)} and {alien} is {_kind(present[alien])}; "
                "all arrays of a call must be of one package"
            )


def like(value: Any, array: npt.ArrayLike) -> Any:
    """Return a NumPy array or scalar as an array of the package of `value`, over the same memory.

    A package without `from_dlpack`, by the array API standard or at its top level, gets the NumPy array.
    """
    shared = np.asarray(array)
    torch = _torch_of(value)
    if torch is not None:
        return torch.from_numpy(shared)
    namespace = getattr(value, "__array_namespace__", None)
    make = getattr(sys.modules.get(_top(value)) if namespace is None else namespace(), "from_dlpack", None)
    return shared if make is None else make(shared)


def _torch_of(value: object) -> Any:
    """Return the module `torch` if `value` is a tensor of torch; else `None`."""
    package = package_of(value)
    return sys.modules["torch"] if package is not None and package.name == "torch" else None


def _top(value: object) -> str:
    """Return the name of the package an array belongs to; a subclass of a tensor belongs to torch, too."""
    package = package_of(value)
    if package is not None:
        return package.name
    return "numpy" if isinstance(value, np.ndarray) else type(value).__module__.partition(".")[0]


def _kind(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}" + (" on a GPU" if is_device_array(value) else "")
