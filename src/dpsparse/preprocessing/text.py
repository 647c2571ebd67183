"""`DPVectorizer`: texts to rows of length one, by a public hash (free) or by a vocabulary that is paid for.

    hash         words -> |hash| mod n_features, with a sign. Nothing is learnt, columns have no names
    vocabulary   the words that enough texts have, by a threshold release: named weights (docs/proofs/preparation.md).
                 At most 100 different words of a text (or person) count. Words such as "the" and "of" are left out,
                 by scikit-learn's public list: they would take the place of more useful ones

Cutting a text into words, lower case and the length of a row are maps of one row. What scikit-learn's vectorizers learn
from all rows (the vocabulary, `min_df`, `max_df`, inverse document frequencies) is not, and has no place here.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from dpsparse._checks import check_choice, check_count
from dpsparse.exceptions import ParameterError
from dpsparse.preprocessing._step import STEP_SHARE, PrivateStep, Want
from dpsparse.preprocessing._tables import LONGEST_NAME, Table, documents
from dpsparse.release import Releases
from dpsparse.rows import RawRows


@dataclass(eq=False, repr=False)
class DPVectorizer(PrivateStep):
    """Texts as rows of word weights of length one.

    **When to use.** For texts, as the first step of a `DPPipeline`. The hash is free and more accurate; take a
    vocabulary only if the weights must have names.

    Parameters
    ----------
    mode : {"hash", "vocabulary"}, default="hash"
        "hash" costs nothing. "vocabulary" pays for the words, and weights then have names.
    n_features : int, default=2**18
        Number of columns in mode "hash"; free. With fewer, more words share a column.
    max_features : int, default=2**14
        Largest number of words in mode "vocabulary", those of the largest released weights; costs nothing.
    epsilon, delta, adjacency, ledger, random_state : as in every estimator
        For mode "vocabulary" outside a `DPPipeline`, which pays for all of its steps.

    Attributes
    ----------
    vocabulary_ : tuple of str
        The released words, sorted; of mode "vocabulary".

    Examples
    --------
    >>> from dpsparse.preprocessing import DPVectorizer
    >>> rows = DPVectorizer(n_features=16).fit_transform(["one two two", "three"])
    >>> rows.shape
    (2, 16)
    """

    mode: str = "hash"
    _: KW_ONLY
    n_features: int = 2**18
    max_features: int = 2**14
    vocabulary_: tuple[str, ...] = field(init=False)

    def _check(self) -> None:
        super()._check()
        check_choice("mode", self.mode, ("hash", "vocabulary"))
        for name in ("n_features", "max_features"):
            check_count(name, getattr(self, name))
        if self.n_features >= 2**31:
            raise ParameterError("n_features must be below 2**31.")

    @property
    def _hashes(self) -> bool:
        return self.mode == "hash"

    def _wants(self, n_columns: int) -> list[Want]:
        note = "words that enough rows have"
        return [] if self._hashes else [Want("vocabulary", STEP_SHARE, 1, note, names=True)]

    def _width(self, n_columns: int) -> int:
        return self.n_features if self._hashes else self.max_features

    def _norm(self, n_columns: int) -> float:
        return 1.0

    def _read(self, X: Any) -> Table:
        return documents(X)

    def _vectorizer(self) -> Any:
        """scikit-learn's own, with everything that it could learn switched off or filled in."""
        from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer

        if self._hashes:
            return HashingVectorizer(n_features=self.n_features, norm="l2")
        words = {word: j for j, word in enumerate(self.vocabulary_)}
        # Never an empty vocabulary, which scikit-learn refuses: a word that no text can have.
        words = words or {"\0": 0}
        vectorizer = TfidfVectorizer(
            vocabulary=words, stop_words="english", use_idf=False, sublinear_tf=True, norm="l2"
        )
        return vectorizer.fit([""])  # an example: there is nothing to learn

    def _words(self, read: Table) -> list[list[str]]:
        """The different words of every text."""
        from sklearn.feature_extraction.text import HashingVectorizer

        cut = HashingVectorizer(stop_words="english").build_analyzer()
        texts = read.columns[0].tolist()
        return [[word for word in set(cut(text)) if len(word) <= LONGEST_NAME] for text in texts]

    def _learn(self, raw: RawRows, releases: Releases, prefix: str) -> None:
        if self._hashes:
            return
        names = raw.names(self._words, 100)  # different words of a text, or a person, that count
        found, weights = releases.names(prefix + "vocabulary", names)
        best = np.lexsort((np.arange(len(found)), -weights))[: self.max_features]
        self.vocabulary_ = tuple(sorted(found[j] for j in best))
        if not self.vocabulary_:
            self.weak_ = (
                "No word is known to enough rows at this price. Hash the words, which is free, or raise epsilon.",
            )

    def _map(self, read: Table) -> sp.csr_array:
        return sp.csr_array(self._vectorizer().transform(read.columns[0]))

    def _names_out(self) -> list[str]:
        if self._hashes:
            return [f"# {j}" for j in range(self.n_features)]
        return list(self.vocabulary_) or ["(no word)"]

    def _fate(self, j: int) -> str:
        return (
            super()._fate(j)
            if self._hashes
            else f"released vocabulary of {len(self.vocabulary_)} words"
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = tags.input_tags.sparse = False
        return tags
