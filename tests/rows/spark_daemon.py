"""The process that Spark forks its Python workers from, with our modules loaded once instead of in every worker."""

from pyspark.daemon import manager

import dpsparse.rows.spark  # noqa: F401

if __name__ == "__main__":
    manager()
