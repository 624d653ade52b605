"""A pytree as one vector and back: one fused update instead of one a leaf compiles several times faster."""

from typing import Generic, TypeVar

from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

Flat = Float[Array, " k"]
"""The arrays of a pytree, one after the other."""
Tree = TypeVar("Tree")


class Packing(Generic[Tree]):
    """Packs pytrees shaped like ``example`` into vectors, and unpacks them."""

    def __init__(self, example: Tree) -> None:
        self.example, self._unravel = ravel_pytree(example)

    @property
    def size(self) -> int:
        """Length of the vector."""
        return self.example.size

    def unpack(self, vector: Flat) -> Tree:
        """The pytree whose arrays stand in ``vector``."""
        return self._unravel(vector)

    @staticmethod
    def pack(tree: Tree) -> Flat:
        """All arrays of a pytree as one vector."""
        return ravel_pytree(tree)[0]
