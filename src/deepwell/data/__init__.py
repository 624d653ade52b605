"""Tables in, arrays out."""

from deepwell.data.benchmarks import Dataset, load
from deepwell.data.splits import split_rows

__all__ = ["Dataset", "load", "split_rows"]
