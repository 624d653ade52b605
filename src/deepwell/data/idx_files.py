"""The idx format of the MNIST files."""

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np

from deepwell.errors import InputError

UNSIGNED_BYTE = 8


def read_idx(path: Path) -> np.ndarray:
    """An array of bytes. The header is two zeros, the type, the number of dimensions and each of them as a big-endian
    integer; the data follow."""
    try:
        with gzip.open(path) as file:
            raw = file.read()
    except FileNotFoundError as error:
        raise InputError(f"no such file: {path}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] != UNSIGNED_BYTE or len(raw) < 4 + 4 * raw[3]:
        raise InputError(f"{path} is not an idx file of bytes")
    shape = struct.unpack(f">{raw[3]}I", raw[4 : 4 + 4 * raw[3]])
    data = np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3])
    if len(data) != math.prod(shape):
        raise InputError(f"{path} is cut off: it holds {len(data)} of {math.prod(shape)} bytes")
    return data.reshape(shape)
