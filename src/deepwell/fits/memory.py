"""Out of memory: an error that suggests settings which need less."""

from collections.abc import Iterator
from contextlib import contextmanager

import jax

from deepwell.fits.settings import Settings


class OutOfMemory(MemoryError):  # noqa: N818
    """The device has too little memory for this fit."""


@contextmanager
def memory_advice(settings: Settings, num_rows: int, tables: int = 1) -> Iterator[None]:
    """Turn XLA's error into one that names a batch size and a number of chains which need about half as much.

    With several tables fitted as one program it first suggests fewer of them, which changes no result.
    """
    try:
        yield
    except (jax.errors.JaxRuntimeError, MemoryError) as error:
        if "RESOURCE_EXHAUSTED" not in str(error) and not isinstance(error, MemoryError):
            raise
        batch, chains = min(settings.batch_size, num_rows), settings.num_chains
        fewer = f" and num_chains={max(1, chains // 2)} (it was {chains})" if chains > 1 else ""
        together = f"fewer tables or splits at once (they were {tables}), or " if tables > 1 else ""
        raise OutOfMemory(
            f"the device ran out of memory: try {together}batch_size={max(1, batch // 2)} (it was {batch}){fewer}"
        ) from error
