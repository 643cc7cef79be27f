"""Publishers: several receivers of one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from forecaster.domain.decision import Recommendation
    from forecaster.ports import Publisher


class Publishers:
    """`Publisher` to each of them in turn; one that fails keeps it from no other."""

    def __init__(self, *publishers: Publisher) -> None:
        self._publishers = publishers

    def publish(self, at: datetime, recommendations: Sequence[Recommendation]) -> None:
        """To all of them.

        Raises:
            StoreError: with what each one says that failed.
        """
        faults = []
        for publisher in self._publishers:
            try:
                publisher.publish(at, recommendations)
            except StoreError as error:
                faults.append(str(error))
        if faults:
            raise StoreError("; ".join(faults))
