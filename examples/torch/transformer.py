"""A small transformer computes with torch's attention, then with a library's, and compares the results:

python transformer.py build/attention-native
"""

import sys

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

import tensorop

WIDTH, HEADS, LAYERS = 256, 4, 3


class Block(nn.Module):
    """Causal self-attention and a multi-layer perceptron, each with a residual connection."""

    attention = staticmethod(scaled_dot_product_attention)

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        wide = 4 * WIDTH
        self.mlp = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, wide), nn.GELU(), nn.Linear(wide, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """x: (batch, rows, WIDTH)"""
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)  # views, nothing is moved
        x = x + self.out(self.attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.mlp(x)


def main(product: str) -> None:
    torch.manual_seed(0)
    model, x = nn.Sequential(*(Block() for _ in range(LAYERS))).eval(), torch.randn(2, 100, WIDTH)
    ours = tensorop.load(product).attention.torch()
    with torch.no_grad():
        expected = model(x)
        Block.attention = staticmethod(ours)
        got = model(x)
    print(f"largest difference: {(got - expected).abs().max():.1e}")
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    main(sys.argv[1])
