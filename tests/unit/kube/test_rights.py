"""Whether an account has the rights of a mode, as `doctor` asks the API server."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from forecaster.kube.client import ApiClient
from forecaster.kube.rights import SELF_REVIEWS, SERVICE, missing, rights_of
from tests.support.review_server import ReviewServer

if TYPE_CHECKING:
    from pathlib import Path


class RoleServer(ReviewServer):
    """An API server whose only role grants the resources of `rule`; it matches them as RBAC does."""

    rule: frozenset[str] = frozenset()

    def answer(self, path: str, body: Any) -> Any:
        if path != SELF_REVIEWS:
            return super().answer(path, body)
        attributes = body["spec"]["resourceAttributes"]
        resource, part = attributes["resource"], attributes.get("subresource", "")
        named = {f"{resource}/{part}", f"*/{part}"} if part else {resource}
        return {"status": {"allowed": bool(named & self.rule)}}


def test_a_role_that_grants_a_subresource_of_every_resource_is_enough(tmp_path: Path) -> None:
    needed = [right for right in rights_of(SERVICE, ["scale"]) if right.resource.endswith("/scale")]
    with RoleServer(tmp_path / "cluster") as server, closing(ApiClient(server.config)) as client:
        assert [str(line) for line in missing(client, needed[:1])] == [
            "patch deployments/scale.apps is not allowed: no count is changed or put back"
        ]
        server.rule = frozenset({"*/scale"})
        assert missing(client, needed) == []
