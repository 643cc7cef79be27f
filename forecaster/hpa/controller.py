"""Flags and feature gates of kube-controller-manager that the arithmetic reads (HPA rules §12)."""

from dataclasses import dataclass
from datetime import timedelta

from forecaster.hpa.limits import DOUBLING, DOWNSCALE_STABILIZATION, Growth
from forecaster.hpa.rules import Behavior
from forecaster.hpa.tolerance import Tolerance


@dataclass(frozen=True, slots=True)
class FeatureGates:
    """Gates of Kubernetes 1.36 at their defaults."""

    scale_to_zero: bool = False
    configurable_tolerance: bool = True
    pod_level_resources: bool = True


@dataclass(frozen=True, slots=True)
class Controller:
    """One controller's settings, at the shipped defaults. `tolerance` is a ratio."""

    tolerance: float = 0.1
    downscale_stabilization: timedelta = DOWNSCALE_STABILIZATION
    cpu_initialization_period: timedelta = timedelta(minutes=5)
    initial_readiness_delay: timedelta = timedelta(seconds=30)
    sync_period: timedelta = timedelta(seconds=15)
    growth: Growth = DOUBLING
    gates: FeatureGates = FeatureGates()


SHIPPED = Controller()


def tolerance_of(behavior: Behavior | None, controller: Controller) -> Tolerance:
    """HPA rules §8: each direction's own tolerance where set and the gate allows it, else the controller's flag."""
    up = down = controller.tolerance
    if behavior is not None and controller.gates.configurable_tolerance:
        up = up if behavior.scale_up.tolerance is None else behavior.scale_up.tolerance
        down = down if behavior.scale_down.tolerance is None else behavior.scale_down.tolerance
    return Tolerance(up, down)
