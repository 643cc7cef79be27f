"""The reason why a metric has no proposal: a value, never an exception and never a zero."""

from typing import Literal, NamedTuple

Cause = Literal[
    "api_failed",  # the metrics API did not answer
    "no_samples",  # it answered with an empty list (HPA rules §5)
    "no_pods",  # the selector matches no pod (§6)
    "no_samples_left",  # none after dropping ignored and unready pods (§6)
    "missing_request",  # a matched pod lacks the request (§7)
    "container_not_found",  # a matched pod lacks the named container (§7)
    "no_request_for_sampled_pods",  # the requests of the sampled pods sum to zero (§8.1)
    "invalid_target",  # the target fits no computation of its source (§4)
    "invalid_source",  # the source type is unknown (§4)
]


class Unmeasured(NamedTuple):
    """Why nothing can be said about a metric: a stable cause and a sentence that names the object."""

    cause: Cause
    message: str
