"""The papers: every table and figure is a chapter of the book, and a chapter is configurations, a trial and its words.

    chapters.toml    what a paper says, how it was run, why a number differs
    chapter.py       a chapter, its trials as cells of the engine
    summary.py       rows beside the published numbers (published/*.json)
    book.py          the book, experiments/book/reproduction.md
    claims.py        our defaults at the papers' own epsilon and delta, a suite; the second page of the book

screening.py (000 and 001), frank_wolfe.py (002), transfer.py (003), sparsifier*.py (004) and leaks.py hold the trials.
"""
