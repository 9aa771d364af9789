"""A linear layer whose three products are gemmlab's, trained beside torch's own, on a GPU where there is one.

CUDA tensors are taken as they are, on torch's current stream. CPU tensors are handed over as NumPy arrays, which share
their memory: nothing is copied.
"""

import torch

import gemmlab


def product(a, b, **options):
    """`gemmlab.gemm` of tensors that are no part of a graph."""
    if a.is_cuda:
        return gemmlab.gemm(a, b, **options)
    arrays = {name: value.numpy() if isinstance(value, torch.Tensor) else value for name, value in options.items()}
    return torch.from_numpy(gemmlab.gemm(a.numpy(), b.numpy(), **arrays))


class Linear(torch.autograd.Function):
    """y = x @ weight.T + bias, as `torch.nn.functional.linear`."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return product(x.detach(), weight.detach(), trans_b=True, beta=1.0, c=bias.detach())

    @staticmethod
    def backward(ctx, grad):
        x, weight = (tensor.detach() for tensor in ctx.saved_tensors)
        return product(grad, weight), product(grad, x, trans_a=True), grad.sum(0)


def train(linear, x, target, steps=50):
    """The loss after each step of gradient descent, from the same start."""
    torch.manual_seed(0)
    device, (features, classes) = x.device, (x.shape[1], target.shape[1])
    weight = (torch.randn(classes, features) / features**0.5).to(device).requires_grad_()
    bias = torch.zeros(classes, device=device, requires_grad=True)
    optimizer = torch.optim.SGD([weight, bias], lr=4.0)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(torch.tanh(linear(x, weight, bias)), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses)


device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(1)
x = torch.randn(512, 64, device=device)
target = torch.tanh(x @ torch.randn(64, 16, device=device) / 8)
ours, theirs = train(Linear.apply, x, target), train(torch.nn.functional.linear, x, target)
print(f"on {device}: loss {ours[0]:.4f}, after {len(ours)} steps {ours[-1]:.4f}; torch's own layer {theirs[-1]:.4f}")
assert ours[-1] < ours[0] / 10
torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-6)
