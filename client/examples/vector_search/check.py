#!/usr/bin/env python3
"""check.py ADDRESS: the examples of this folder find what NumPy finds, and the closest in meaning."""

import sys

import minilm
import numpy as np
from vector_search import Library, load

import warpline

SENTENCES = ["The daemon encrypts connections with TLS certificates.", "A transpose swaps the axes of a matrix.",
             "Tensors stay on the server until their lease ends.", "Each client has a fair share of the memory.",
             "The cat sat on the mat."]
QUESTIONS = {"How do I secure the network?": 0, "Who gets how much RAM?": 3, "A kitten on a rug": 4}


def check_searches(client):
    random = np.random.default_rng(0)
    vectors = random.standard_normal((20000, 64), dtype="f4")
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    queries = vectors[random.permutation(20000)[:33]] + np.float32(0.02) * random.standard_normal((33, 64), dtype="f4")
    want = queries @ vectors.T
    for half in (False, True):
        with load(client, vectors, half) as kept:
            scores, places = Library(client, kept, k=5).find(queries)
            assert scores.shape == places.shape == (33, 5)
            assert (places[:, 0] == want.argmax(1)).all()
            np.testing.assert_allclose(scores, np.sort(want)[:, :-6:-1], atol=2.0**-7 if half else 2.0**-20)


def check_sentences(client):
    encoder = minilm.Encoder(client)
    vectors = encoder.encode(SENTENCES, batch=2)
    assert vectors.shape == (5, 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    # A batch of other lengths gives the same: padding takes no part.
    np.testing.assert_allclose(encoder.encode(SENTENCES), vectors, atol=1e-5)
    with load(client, vectors) as kept:
        _, places = Library(client, kept, k=1).find(encoder.encode(list(QUESTIONS)))
    assert places[:, 0].tolist() == list(QUESTIONS.values()), places


with warpline.connect(sys.argv[1]) as connected:
    check_searches(connected)
    check_sentences(connected)
print("ok")
