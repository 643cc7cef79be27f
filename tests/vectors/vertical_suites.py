"""Every suite of the vertical vectors and who answers it. A `random-` suite is answered like the one it extends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.vectors import vertical_k8s, vertical_krr, vertical_vpa, vertical_vpa_pods

if TYPE_CHECKING:
    from tests.vectors.vertical_comparison import Suite

SUITES: dict[str, Suite] = {
    **vertical_k8s.SUITES,
    **vertical_krr.SUITES,
    **vertical_vpa.SUITES,
    **vertical_vpa_pods.SUITES,
}
