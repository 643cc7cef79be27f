"""`admitted`: the sizes that the cluster takes of a pod, running or new, by the admission proof. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.vertical.admission.context import AdmissionContext, Rollout
from forecaster.vertical.admission.proof import prove

if TYPE_CHECKING:
    from forecaster.actuators.resize import Sizes, Surroundings
    from forecaster.vertical.cluster_rules.pod import Pod


def admitted(
    pod: Pod,
    wanted: Sizes,
    around: Surroundings,
    *,
    running: tuple[tuple[Pod, str], ...] = (),
    replicas: int = 1,
) -> tuple[Sizes, str]:
    """The sizes that the cluster takes, the nearest to those that are wanted; none where none are. And its refusals.

    Of a pod that is `running` on a node; else of one that is made, of `replicas` which are all to have this size.
    """
    context = AdmissionContext(
        template=pod,
        rollout=Rollout(replicas=replicas),
        limit_ranges=around.limit_ranges,
        quotas=around.quotas,
        occupancy=around.nodes,
        server=around.server,
        running=running,
        in_place=bool(running),
    )
    names = {one.name for one in pod.every_container()}
    proof = prove({name: size for name, size in wanted.items() if name in names}, context)
    return proof.nearest or {}, "; ".join(map(str, proof.refusals))
