"""A linear layer with gemmlab's product and its gradients, trained beside torch's own layer, on a GPU if there is one.

`import gemmlab.torch` makes the product an operator of torch: it has gradients and is compiled with the code around
it.
"""

import torch

import gemmlab.torch


class Linear(torch.nn.Linear):
    def forward(self, x):
        return gemmlab.torch.gemm(x, self.weight, self.bias, beta=1.0, trans_b=True)


def train(layer, x, target, steps=50):
    """Return the loss after each step of gradient descent, from the same initial weights."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(layer(x.shape[1], target.shape[1]), torch.nn.Tanh()).to(x.device)
    # torch's default backend does more, and needs a C++ compiler.
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=4.0)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(compiled(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses)


device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(1)
x = torch.randn(512, 64, device=device)
target = torch.tanh(x @ torch.randn(64, 16, device=device) / 8)
ours, theirs = train(Linear, x, target), train(torch.nn.Linear, x, target)
print(f"on {device}: loss {ours[0]:.4f}, after {len(ours)} steps {ours[-1]:.4f}; torch's own layer {theirs[-1]:.4f}")
assert ours[-1] < ours[0] / 10
torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-6)
