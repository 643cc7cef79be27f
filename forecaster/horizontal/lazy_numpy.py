"""numpy as `np`, loaded when the first array is made: sentences stand beside rules on arrays, and need none.

The serving process explains decisions by the sentences of the clamps and never loads numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = ["np"]

if TYPE_CHECKING:
    import numpy as np
else:

    class _Numpy:
        """Numpy, of which each name is looked up once."""

        def __getattr__(self, name: str) -> object:
            attribute = getattr(import_module("numpy"), name)
            setattr(self, name, attribute)
            return attribute

    np = _Numpy()
