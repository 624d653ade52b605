"""Made-up tables that stand in for benchmark sets in smoke runs, small and all of one shape."""

import numpy as np

from deepwell.data.benchmarks import Dataset

ROWS, COLUMNS, NUM_CLASSES = 64, 8, 3


def synthetic_table(name: str, rows: int = ROWS) -> Dataset:
    """A smooth function of two columns with a little noise; for mnist, three classes cut from it. The name is the
    seed."""
    import pandas as pd

    rng = np.random.default_rng(list(name.encode()))
    X = rng.standard_normal((rows, COLUMNS))
    if name == "flights":
        X[:, :2] = np.stack([np.repeat(1, rows), np.arange(rows) // 2 + 1], 1)  # the month, and two flights a day
    y = np.sin(2 * X[:, 2]) + X[:, 3] + 0.1 * rng.standard_normal(rows)
    names = ["month", "day", *[f"x{i}" for i in range(COLUMNS - 2)]]
    frame = pd.DataFrame(X, columns=names)
    if name != "mnist":
        return Dataset(name, frame, pd.Series(y, name="y"))
    digits = np.digitize(y, np.quantile(y, np.arange(1, NUM_CLASSES) / NUM_CLASSES))
    return Dataset(name, frame, pd.Series(digits, name="y"), num_train=int(0.8 * rows), is_class=True)
