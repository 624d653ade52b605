"""Fingerprint bits of molecules by RDKit, cached in a file that a machine without RDKit can read."""

import hashlib
import os
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from deepwell.errors import InputError, require

BITS, RADIUS = 512, 2
FILE = "cep_bits.npz"


def fingerprints(smiles: Sequence[str], folder: Path) -> np.ndarray:
    """Morgan fingerprints, (molecules, 512) of 0 and 1. They are cached in ``folder``, or else in the cache folder."""
    digest = hashlib.sha256("\n".join(smiles).encode()).hexdigest()
    places = [folder / FILE, _cache_folder() / FILE]
    for place in places:
        cached = _read(place, digest, len(smiles))
        if cached is not None:
            return cached
    bits = _compute(smiles)
    for place in places:
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            partial = place.with_name(f"{os.getpid()}.{FILE}")  # numpy adds .npz to names without it
            np.savez_compressed(partial, packed=np.packbits(bits, axis=1), digest=np.asarray(digest))
            partial.replace(place)
            break
        except OSError:  # not writable: try the next folder
            continue
    return bits


def _cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "deepwell"


def _read(path: Path, digest: str, count: int) -> np.ndarray | None:
    """The cached bits, if they are those of these molecules."""
    if not path.is_file():
        return None
    try:
        with np.load(path, allow_pickle=False) as cached:
            if str(cached["digest"]) != digest or cached["packed"].shape != (count, BITS // 8):
                return None
            return np.unpackbits(cached["packed"], axis=1)
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error):
        return None


def _compute(smiles: Sequence[str]) -> np.ndarray:
    remedy = f"copy {FILE}, which a machine with RDKit writes beside cep.csv.gz or to its cache folder"
    require("rdkit", "computing molecular fingerprints", otherwise=remedy)
    from rdkit import Chem
    from rdkit.Chem import rdFingerprintGenerator

    generator = rdFingerprintGenerator.GetMorganGenerator(radius=RADIUS, fpSize=BITS)
    bits = np.zeros((len(smiles), BITS), np.uint8)
    for row, text in enumerate(smiles):
        molecule = Chem.MolFromSmiles(text)
        if molecule is None:
            raise InputError(f"row {row} holds {text!r}, which is not a molecule")
        bits[row] = generator.GetFingerprintAsNumPy(molecule)
    return bits
