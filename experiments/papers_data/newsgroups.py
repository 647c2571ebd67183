"""A reconstruction of news20.binary from the raw 20 Newsgroups articles. Not the original file.

Header lines are dropped (`Newsgroups:` names the class); lower-case alphabetic words and pairs of
neighbouring words are the features, binary, rows of L2 norm 1. Class 1: sci.*, comp.* and misc.forsale
(10,000 articles); class 0: the other ten groups (9,997). The original has 19,996 rows and 1,355,191
columns; this one has 19,997 rows and about 1.39 million.

The vocabulary is read off the articles, so it is a fact about the data: public in these experiments by
declaration. With private text hash the words instead.
"""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from papers_data.loaders import cache_folder, find_file, save_arrays
from papers_data.registry import info

_WORD = re.compile(r"[a-z]+")
_VERSION = 1  # of the recipe; part of the cache file's name


def load_newsgroups_bigrams(*, cache: bool = True) -> tuple[sp.csr_array, np.ndarray]:
    """Features and labels 0/1 of the reconstruction; kept in the cache folder after the first call."""
    path = cache_folder() / f"newsgroups-bigrams-v{_VERSION}.npz"
    if cache and path.is_file():
        with np.load(path) as saved:
            X = _binary_rows(saved["indices"], saved["indptr"], int(saved["width"]))
            return X, saved["y"]
    source = find_file(info("20newsgroups-raw"))
    with lzma.open(source, "rt", encoding="utf-8") as lines:
        X, y = bigram_features(json.loads(line) for line in lines)
    if cache:
        save_arrays(path, indices=X.indices, indptr=X.indptr, width=np.array(X.shape[1]), y=y)
    return X, y


def bigram_features(articles: Iterable[dict[str, str]]) -> tuple[sp.csr_array, np.ndarray]:
    """Words and word pairs of `articles` (keys group, text) as unit rows, and the class of each."""
    vocabulary: dict[str, int] = {}
    indices: list[np.ndarray] = []
    lengths: list[int] = []
    labels: list[int] = []
    for article in articles:
        terms = {vocabulary.setdefault(term, len(vocabulary)) for term in _terms(article["text"])}
        indices.append(np.sort(np.fromiter(terms, np.int32, len(terms))))
        lengths.append(len(terms))
        labels.append(_is_positive(article["group"]))
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    flat = np.concatenate(indices) if indices else np.zeros(0, np.int32)
    return _binary_rows(flat, indptr, len(vocabulary)), np.array(labels, np.int64)


def _terms(text: str) -> Iterator[str]:
    """Words and neighbouring pairs of the body: what follows the first empty line."""
    head, blank, body = text.partition("\n\n")
    words = _WORD.findall((body if blank else head).lower())
    yield from words
    for first, second in pairwise(words):
        yield f"{first} {second}"


def _is_positive(group: str) -> int:
    return int(group.startswith(("sci.", "comp.")) or group == "misc.forsale")


def _binary_rows(indices: np.ndarray, indptr: np.ndarray, width: int) -> sp.csr_array:
    lengths = np.diff(indptr)
    data = np.repeat(1.0 / np.sqrt(np.maximum(lengths, 1)), lengths)
    X = sp.csr_array((data, indices, indptr), shape=(len(lengths), width))
    X.has_canonical_format = True
    return X
