"""The roles of our accounts, and what binds them: from the table of rights, one file for each part of deploy/."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from deploy.generate.kustomized import DEPLOY
from forecaster.kube.rights import CERTIFICATES, NAMESPACE, RELEASE, RIGHTS, SERVICE, Right, rights_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

MADE = "# Made by `python -m deploy.generate` of forecaster/kube/rights.py; change it there."
IN_THE_BASE = ("observe", "publish", "state")
CORE = '""'
GROUP = "rbac.authorization.k8s.io"


def files() -> dict[Path, str]:
    """All files of rights, with their text."""
    base = {
        "base/rights.yaml": [account(SERVICE), *roles(SERVICE, SERVICE, IN_THE_BASE)],
        "base/certificates-rights.yaml": [account(CERTIFICATES), *roles(CERTIFICATES, CERTIFICATES, IN_THE_BASE)],
    }
    return {DEPLOY / name: "---\n".join([f"{MADE}\n", *parts]) for name, parts in (base | dict(of_modes())).items()}


def of_modes() -> Iterator[tuple[str, list[str]]]:
    """The rights of each mode that is a component of its own."""
    for mode in dict.fromkeys(one.mode for one in RIGHTS if one.mode not in IN_THE_BASE):
        service = roles(f"{SERVICE}-{mode}", SERVICE, (mode,))
        yield f"components/{mode}/rights.yaml", [*service, *roles(RELEASE, RELEASE, (mode,))]


def account(name: str) -> str:
    """A service account."""
    return f"apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {name}\n  namespace: {NAMESPACE}\n"


def roles(name: str, account: str, modes: Sequence[str]) -> Iterator[str]:
    """Roles of one name, each with its binding: for each namespace, for the cluster, and those of Kubernetes itself."""
    found = sorted(rights_of(account, modes), key=lambda one: (one.through, one.namespace))
    for (through, namespace), rights in groupby(found, key=lambda one: (one.through, one.namespace)):
        kept = list(rights)
        if not through:
            yield role(name, namespace, kept)
        bound = f"{SERVICE}-{through.removeprefix('system:').removeprefix('extension-apiserver-')}" if through else name
        yield comment(kept if through else (), "") + binding(bound, through or name, account, namespace)


def role(name: str, namespace: str, rights: Iterable[Right]) -> str:
    """A Role, or a ClusterRole where it counts in all namespaces."""
    head = (
        f"apiVersion: {GROUP}/v1\nkind: {'Role' if namespace else 'ClusterRole'}\n{metadata(name, namespace)}rules:\n"
    )
    alike = groupby(rights, key=lambda one: (one.group, one.verbs, one.names, one.needed_for))
    return head + "".join(rule(list(same)) for _, same in alike)


def rule(alike: list[Right]) -> str:
    """One rule: rights that differ in their resource only."""
    one = alike[0]
    names = f"    resourceNames: [{', '.join(one.names)}]\n" if one.names else ""
    return (
        f"{comment([one], '  ')}  - apiGroups: [{one.group or CORE}]\n"
        f"    resources: [{', '.join(each.resource for each in alike)}]\n{names}    verbs: [{', '.join(one.verbs)}]\n"
    )


def comment(rights: Iterable[Right], space: str) -> str:
    """What is not done without them."""
    return "".join(f"{space}# Without it {one.needed_for}.\n" for one in rights)


def binding(name: str, role_name: str, account: str, namespace: str) -> str:
    """What gives a role to an account."""
    kind = "Role" if namespace else "ClusterRole"
    return (
        f"apiVersion: {GROUP}/v1\nkind: {kind}Binding\n{metadata(name, namespace)}"
        f'roleRef: {{apiGroup: {GROUP}, kind: {kind}, name: "{role_name}"}}\n'
        f"subjects:\n  - {{kind: ServiceAccount, name: {account}, namespace: {NAMESPACE}}}\n"
    )


def metadata(name: str, namespace: str) -> str:
    """Name and place."""
    return f"metadata:\n  name: {name}\n" + (f"  namespace: {namespace}\n" if namespace else "")
