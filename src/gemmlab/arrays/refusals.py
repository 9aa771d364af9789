"""Why a tensor of torch does not show its memory, and what to do about it: in place of what torch says of `numpy()`."""

from __future__ import annotations

from typing import Any


def refusal(name: str, tensor: Any, call: str = "") -> str | None:
    """What is said of the operand `name` of a `call`, behind its name; `None` where nothing here is known of it."""
    kind = "cuda" if tensor.is_cuda else tensor.device.type
    if kind == "meta":
        return "is a meta tensor: it has a shape and no data"
    if kind not in ("cpu", "cuda"):
        return f"lies on {tensor.device}; tensors must lie on the CPU or an NVIDIA GPU"
    layout = str(getattr(tensor, "layout", "torch.strided"))
    if layout != "torch.strided":
        return f"has layout {layout}, not strided; {name}.to_dense() converts it"
    if tensor.requires_grad:
        # The operator has neither out nor sums.
        learns = ", and gemmlab.torch.gemm has gradients" if call == "gemm" and name != "out" else ""
        return f"requires a gradient, which would be lost; {name}.detach() goes without{learns}"
    if hasattr(tensor, "is_neg") and tensor.is_neg():
        # The imaginary part of a conjugate: memory holds the opposite.
        return f"is negated only when torch reads it; {name}.resolve_neg() does it now"
    return None
