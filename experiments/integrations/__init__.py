"""What other tools do with our estimators: every integration is a short function in an environment of its own.

    python -m integrations                 all of them; run it in the folder experiments
    python -m integrations polars mlflow   those whose name holds one of these words
    python -m integrations --write         and the table of docs/other_tools.md

A function that returns has passed; what it returns is printed beside its name. Recipes are the blocks of
Python in docs/other_tools.md, run as they stand.
"""
