"""A real llama.cpp server with a tiny language model of random weights: `python -m tests.support.tiny_llama FILE`.

The model has one layer of 64 and a vocabulary of bytes, so its answers are noise; the server around it is the one that
people use.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import gguf
import numpy as np
import xllamacpp

WIDTH, HEADS, HIDDEN, LAYERS, CONTEXT = 16, 1, 32, 1, 65536


def write(path: Path, seed: int = 0) -> None:
    """Writes the model: about 0.5 MB of GGUF."""
    words = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL, *[gguf.TokenType.BYTE] * 256]
    random = np.random.default_rng(seed)
    made = gguf.GGUFWriter(path, "llama")
    made.add_context_length(CONTEXT)
    made.add_embedding_length(WIDTH)
    made.add_block_count(LAYERS)
    made.add_feed_forward_length(HIDDEN)
    made.add_head_count(HEADS)
    made.add_head_count_kv(HEADS)
    made.add_rope_dimension_count(WIDTH // HEADS)
    made.add_layer_norm_rms_eps(1e-5)
    made.add_tokenizer_model("llama")
    made.add_token_list(words)
    made.add_token_scores([0.0] * len(words))
    made.add_token_types(kinds)
    made.add_bos_token_id(1)
    made.add_eos_token_id(2)
    made.add_unk_token_id(0)
    made.add_chat_template("{% for message in messages %}{{ message['content'] }}\n{% endfor %}")

    def tensor(name: str, *shape: int) -> None:
        ones = "norm" in name
        values = np.ones(shape) if ones else random.standard_normal(shape) / shape[-1]
        made.add_tensor(f"{name}.weight", values.astype(np.float32))

    tensor("token_embd", len(words), WIDTH)
    tensor("output", len(words), WIDTH)
    tensor("output_norm", WIDTH)
    for layer in range(LAYERS):
        at = f"blk.{layer}"
        for name in ("attn_norm", "ffn_norm"):
            tensor(f"{at}.{name}", WIDTH)
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            tensor(f"{at}.{name}", WIDTH, WIDTH)
        tensor(f"{at}.ffn_gate", HIDDEN, WIDTH)
        tensor(f"{at}.ffn_up", HIDDEN, WIDTH)
        tensor(f"{at}.ffn_down", WIDTH, HIDDEN)
    made.write_header_to_file()
    made.write_kv_data_to_file()
    made.write_tensors_to_file()
    made.close()


def serve(path: Path) -> None:
    """Serves until this process ends; prints the address when it is ready."""
    wanted = xllamacpp.CommonParams()
    wanted.model.path = str(path)
    wanted.hostnames = ["127.0.0.1"]
    wanted.port = 0  # any that is free
    wanted.n_ctx = CONTEXT
    wanted.n_parallel = 1
    wanted.warmup = False
    wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = 1  # several wait for each other on a busy machine
    # each token is as likely as any other, the end of the answer too
    wanted.sampling.top_k, wanted.sampling.top_p, wanted.sampling.min_p = 0, 1.0, 0.0
    server = xllamacpp.Server(wanted)
    print(server.listening_address, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
