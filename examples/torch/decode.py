"""A small transformer writes tokens one by one. A library's attention reads the keys and values of earlier tokens in a
cache; torch's attention then reads the same tokens, and the program compares what both would write next:

python decode.py build/attention-native
python decode.py build/attention-cuda-sm90 --pages
"""

import sys
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.attention.bias import causal_lower_right
from torch.nn.functional import scaled_dot_product_attention

import tensorop

WIDTH, HEADS, KEY_HEADS, DIM, LAYERS, WORDS = 256, 8, 2, 32, 3, 1000
BATCH, PROMPT, WRITTEN, PAGE, MOST = 3, 21, 40, 16, 64  # MOST: tokens of a sequence, at most


class Dense:
    """The keys and values of one layer: (batch, heads, MOST, d), of which the first `rows` are there."""

    def __init__(self, like: Tensor) -> None:
        self.rows, (self.keys, self.values) = 0, like.new_zeros(2, BATCH, KEY_HEADS, MOST, DIM)

    def attend(self, attention: Callable[..., Tensor], q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Appends k and v, and lets the queries see all keys up to their own."""
        begin, self.rows = self.rows, self.rows + k.shape[2]
        self.keys[:, :, begin : self.rows], self.values[:, :, begin : self.rows] = k, v
        k, v = self.keys[:, :, : self.rows], self.values[:, :, : self.rows]  # views, nothing is moved
        return attention(q, k, v, attn_mask=causal_lower_right(q.shape[2], self.rows), enable_gqa=True)


class Paged:
    """The same in pages of all sequences, (pages, heads, PAGE, d), in any order."""

    def __init__(self, like: Tensor) -> None:
        count = BATCH * MOST // PAGE
        self.rows, (self.keys, self.values) = 0, like.new_zeros(2, count, KEY_HEADS, PAGE, DIM)
        self.pages = torch.randperm(count, device=like.device).view(BATCH, -1).int()  # of each sequence

    def attend(self, attention: Callable[..., Tensor], q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        own = torch.arange(self.rows, self.rows + k.shape[2], device=k.device)
        self.rows += k.shape[2]
        place = self.pages[:, own // PAGE].long(), slice(None), own % PAGE
        self.keys[place], self.values[place] = k.transpose(1, 2), v.transpose(1, 2)
        if not q.is_cuda:  # a processor's library has no pages: they are brought together first
            k, v = (one[self.pages.long()].transpose(1, 2).flatten(2, 3) for one in (self.keys, self.values))
            k, v = k[:, :, : self.rows], v[:, :, : self.rows]
            return attention(q, k, v, is_causal=True, align="end", enable_gqa=True)
        words = {"lengths": torch.full((BATCH,), self.rows, dtype=torch.int32, device=q.device), "pages": self.pages}
        return attention(q, self.keys, self.values, is_causal=True, align="end", enable_gqa=True, **words)


class Block(nn.Module):
    """Self-attention and a multi-layer perceptron, each with a residual connection."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.qkv = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, (HEADS + 2 * KEY_HEADS) * DIM)
        self.out, wide = nn.Linear(HEADS * DIM, WIDTH), 4 * WIDTH
        self.mlp = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, wide), nn.GELU(), nn.Linear(wide, WIDTH))

    def forward(self, x: Tensor, cache: Dense | Paged, attention: Callable[..., Tensor]) -> Tensor:
        """x: (batch, rows, WIDTH)"""
        heads = self.qkv(self.norm(x)).unflatten(-1, (-1, DIM)).transpose(1, 2)
        q, k, v = heads.split((HEADS, KEY_HEADS, KEY_HEADS), dim=1)
        x = x + self.out(cache.attend(attention, q, k, v).transpose(1, 2).flatten(2))
        return x + self.mlp(x)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.word, self.place = nn.Embedding(WORDS, WIDTH), nn.Embedding(MOST, WIDTH)
        self.blocks, self.out = nn.ModuleList(Block() for _ in range(LAYERS)), nn.Linear(WIDTH, WORDS)

    def forward(self, tokens: Tensor, caches: list[Dense] | list[Paged], attention: Callable[..., Tensor]) -> Tensor:
        """The logits of the next token, (batch, WORDS). tokens: (batch, rows), those that no cache has yet"""
        begin = caches[0].rows
        x = self.word(tokens) + self.place.weight[begin : begin + tokens.shape[1]]
        for block, cache in zip(self.blocks, caches, strict=True):
            x = block(x, cache, attention)
        return self.out(x[:, -1])


def main(product: str, paged: bool) -> None:
    library = tensorop.load(product)
    on, dtype = ("cpu", torch.float32) if "f32" in library.dtypes else ("cuda", torch.bfloat16)
    torch.manual_seed(0)
    model = Model().eval().to(on, dtype)
    tokens = torch.randint(WORDS, (BATCH, PROMPT), device=on)
    ours, like = library.attention.torch(), model.out.weight
    caches = [Paged(like) for _ in range(LAYERS)] if paged else [Dense(like) for _ in range(LAYERS)]
    reference, same, below = [Dense(like) for _ in range(LAYERS)], 0, 0.0
    with torch.no_grad():
        fresh = tokens
        for _ in range(WRITTEN):
            got = model(fresh, caches, ours)
            want = model(fresh, reference, scaled_dot_product_attention)
            fresh = got.argmax(1, keepdim=True)
            same += int((fresh == want.argmax(1, keepdim=True)).sum())
            below = max(below, float((want.amax(1) - want.gather(1, fresh)[:, 0]).max()))
    print(f"{same} of {BATCH * WRITTEN} tokens are torch's; the others' logits are at most {below:.1e} below its best")
    if below > (1e-4 if dtype == torch.float32 else 0.1):
        raise SystemExit("the results differ by more than rounding")


if __name__ == "__main__":
    main(sys.argv[1], "--pages" in sys.argv[2:])
