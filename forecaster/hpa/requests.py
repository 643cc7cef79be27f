"""What pods request (HPA rules §7); needed for utilisation only, and then from every matched pod."""

from collections.abc import Iterable

from forecaster.hpa.numbers import wrap_int64
from forecaster.hpa.pods import Container, Pod
from forecaster.hpa.unmeasured import Unmeasured


def requests_by_pod(
    pods: Iterable[Pod], resource: str, container: str = "", *, pod_level_resources: bool = True
) -> dict[str, int] | Unmeasured:
    """HPA rules §7: each pod's request in milli-units, ignored pods included; one pod without it fails the metric."""
    requests = {}
    for pod in pods:
        request = pod_request(pod, resource, container, pod_level_resources=pod_level_resources)
        if isinstance(request, Unmeasured):
            return request
        requests[pod.name] = request
    return requests


def pod_request(pod: Pod, resource: str, container: str = "", *, pod_level_resources: bool = True) -> int | Unmeasured:
    """HPA rules §7: a named container's request, else the pod-level one, else the sum over long-running containers."""
    if container:
        return _container_request(pod, resource, container)
    if pod_level_resources and pod.pod_requests_milli and _names_pod_level_resource(pod.pod_requests_milli):
        return _pod_level_request(pod, resource)
    total = 0
    for each in _long_running(pod):
        request = each.requests_milli.get(resource)
        if request is None:
            return _missing(resource, each, pod)
        total += request
    return wrap_int64(total)


def _container_request(pod: Pod, resource: str, name: str) -> int | Unmeasured:
    for container in _long_running(pod):
        if container.name == name:
            request = container.requests_milli.get(resource)
            return _missing(resource, container, pod) if request is None else request
    return Unmeasured("container_not_found", f"container {name} not found in Pod {pod.name}")


def _pod_level_request(pod: Pod, resource: str) -> int | Unmeasured:
    """The pod-level request or, where it lacks this resource, what the containers need; the overhead on top."""
    stated = pod.pod_requests_milli or {}
    request = stated.get(resource) if is_pod_level_resource(resource) else None
    if request is None:
        request = _aggregated_request(pod, resource)
    overhead = pod.overhead_milli.get(resource)
    if request is None and overhead is None:
        return Unmeasured("missing_request", f"missing pod-level request for {resource} in Pod {pod.name}")
    return wrap_int64((request or 0) + (overhead or 0))


def _aggregated_request(pod: Pod, resource: str) -> int | None:
    """The larger of the running containers' sum and the peak while init containers run; None where nobody asks."""
    running = [c.requests_milli[resource] for c in _long_running(pod) if resource in c.requests_milli]
    peak: int | None = None
    sidecars = 0
    for container in pod.init_containers:
        own = container.requests_milli.get(resource, 0)
        need = sidecars + own
        if container.restarts_always:
            sidecars = need
        if resource in container.requests_milli or sidecars:
            peak = max(peak or 0, need)
    if not running and peak is None:
        return None
    return max(sum(running), peak or 0)


def is_pod_level_resource(resource: str) -> bool:
    """Whether a pod-level request can name this resource: cpu, memory, or a size of hugepages."""
    return resource in {"cpu", "memory"} or resource.startswith("hugepages-")


def _names_pod_level_resource(requests_milli: Iterable[str]) -> bool:
    return any(is_pod_level_resource(resource) for resource in requests_milli)


def _long_running(pod: Pod) -> Iterable[Container]:
    """Containers that run as long as the pod: app containers, then init containers that restart always."""
    if not pod.init_containers:
        return pod.containers
    return [*pod.containers, *(c for c in pod.init_containers if c.restarts_always)]


def _missing(resource: str, container: Container, pod: Pod) -> Unmeasured:
    return Unmeasured(
        "missing_request", f"missing request for {resource} in container {container.name} of Pod {pod.name}"
    )
