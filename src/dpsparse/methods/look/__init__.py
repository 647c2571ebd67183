"""What a method may want to know before it fits, released privately: one implementation for all methods.

    targets.py   class counts, or mean and spread of numbers; the offset of the final model; the mean alone;
                 the search for quantiles behind every length and spread
    rows.py      wide tables: masses of the columns, and the length of scaled rows; narrow tables: centre, scales and
                 axes of the columns, and the length of standardised rows

Every release has a phase of its own name; its share of the budget stands in `LOOKS` of targets.py.
"""
