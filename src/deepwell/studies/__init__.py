"""The studies of the paper, run by ``deepwell reproduce``."""
