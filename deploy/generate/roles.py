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
    for mode in dict.fromkeys(right.mode for right in RIGHTS if right.mode not in IN_THE_BASE):
        service = roles(f"{SERVICE}-{mode}", SERVICE, (mode,))
        yield f"components/{mode}/rights.yaml", [*service, *roles(RELEASE, RELEASE, (mode,))]


def account(name: str) -> str:
    """A service account."""
    return f"apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {name}\n  namespace: {NAMESPACE}\n"


def roles(name: str, account: str, modes: Sequence[str]) -> Iterator[str]:
    """Roles of one name, each with its binding: for each namespace, for the cluster, and roles of Kubernetes itself."""
    sorted_rights = sorted(rights_of(account, modes), key=lambda right: (right.through, right.namespace))
    for (through, namespace), rights in groupby(sorted_rights, key=lambda right: (right.through, right.namespace)):
        granted = list(rights)
        if not through:
            yield role(name, namespace, granted)
        bound = f"{SERVICE}-{through.removeprefix('system:').removeprefix('extension-apiserver-')}" if through else name
        yield comment(granted if through else (), "") + binding(bound, through or name, account, namespace)


def role(name: str, namespace: str, rights: Iterable[Right]) -> str:
    """A Role, or a ClusterRole where it counts in all namespaces."""
    head = (
        f"apiVersion: {GROUP}/v1\nkind: {'Role' if namespace else 'ClusterRole'}\n{metadata(name, namespace)}rules:\n"
    )
    alike = groupby(rights, key=lambda right: (right.group, right.verbs, right.names, right.needed_for))
    return head + "".join(rule(list(same)) for _, same in alike)


def rule(alike: list[Right]) -> str:
    """One rule: rights that differ in their resource only."""
    first = alike[0]
    names = f"    resourceNames: [{', '.join(first.names)}]\n" if first.names else ""
    return (
        f"{comment([first], '  ')}  - apiGroups: [{first.group or CORE}]\n"
        f"    resources: [{', '.join(each.resource for each in alike)}]\n{names}    verbs: [{', '.join(first.verbs)}]\n"
    )


def comment(rights: Iterable[Right], space: str) -> str:
    """Comments that name what is not done without these rights."""
    return "".join(f"{space}# Without it {right.needed_for}.\n" for right in rights)


def binding(name: str, role_name: str, account: str, namespace: str) -> str:
    """Binding of a role to an account."""
    kind = "Role" if namespace else "ClusterRole"
    return (
        f"apiVersion: {GROUP}/v1\nkind: {kind}Binding\n{metadata(name, namespace)}"
        f'roleRef: {{apiGroup: {GROUP}, kind: {kind}, name: "{role_name}"}}\n'
        f"subjects:\n  - {{kind: ServiceAccount, name: {account}, namespace: {NAMESPACE}}}\n"
    )


def metadata(name: str, namespace: str) -> str:
    """Name and place."""
    return f"metadata:\n  name: {name}\n" + (f"  namespace: {namespace}\n" if namespace else "")
