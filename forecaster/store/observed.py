"""What the service has seen of its workloads, on disk: some hundred bytes for each workload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from forecaster.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

    from forecaster.cycle.observed import Observed


@dataclass(frozen=True, slots=True)
class ObservedFile:
    """Saves it to one JSON file and reads it back."""

    path: Path
    observed: Observed

    def save(self) -> None:
        """Replace the file; call it between cycles.

        Raises:
            StoreError: it cannot be written; the previous one is still there.
        """
        temporary = self.path.with_name(f".{self.path.name}.new")
        try:
            temporary.write_bytes(self.observed.kept())
            temporary.replace(self.path)
        except OSError as error:
            raise StoreError(
                f"{self.path}: cannot be saved ({error.strerror}); a restart measures and judges anew. Make its "
                "directory writable and free some space."
            ) from error

    def load(self) -> bool:
        """Take over what was kept; whether there was anything.

        Raises:
            StoreError: it cannot be read, or is damaged; nothing was taken over.
        """
        try:
            self.observed.restore(self.path.read_bytes())
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StoreError(f"{self.path}: cannot be read ({error.strerror}); measuring and judging anew") from error
        except msgspec.MsgspecError as error:
            raise StoreError(f"{self.path}: damaged ({error}); measuring and judging anew") from error
        return True
