"""A linear layer whose three products are gemmlab's, trained beside torch's own, on a GPU where there is one.

Tensors are taken as they are, without copies, on torch's current stream where they lie on a GPU.
"""

import torch

import gemmlab


class Linear(torch.autograd.Function):
    """y = x @ weight.T + bias, as `torch.nn.functional.linear`."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return gemmlab.gemm(x.detach(), weight.detach(), trans_b=True, beta=1.0, c=bias.detach())

    @staticmethod
    def backward(ctx, grad):
        x, weight = (tensor.detach() for tensor in ctx.saved_tensors)
        return gemmlab.gemm(grad, weight), gemmlab.gemm(grad, x, trans_a=True), grad.sum(0)


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
