"""Reproducible train-test splits."""

import numpy as np


def split_rows(num_rows: int, split: int, seed: int = 0, test_size: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    """Training and test rows of split ``split``: the two parts of ``default_rng([seed, split]).permutation``."""
    order = np.random.default_rng([seed, split]).permutation(num_rows)
    cut = int((1.0 - test_size) * num_rows)
    return order[:cut], order[cut:]


def split_by_group(groups: np.ndarray, seed: int = 0, test_size: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    """One split that keeps the rows of a group together: ``default_rng(seed)`` permutes the sorted groups, and the
    first part of them trains."""
    distinct = np.unique(groups)
    order = np.random.default_rng(seed).permutation(len(distinct))
    training = distinct[order[: int((1.0 - test_size) * len(distinct))]]
    trains = np.isin(groups, training)
    return np.flatnonzero(trains), np.flatnonzero(~trains)
