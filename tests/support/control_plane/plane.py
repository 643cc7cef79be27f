"""ControlPlane: a real API server with its controllers on loopback, and nodes whose pods only pretend to run.

Pods are kwok's: they become Ready half a second after they were scheduled and nothing runs in them. Their annotations
say otherwise where a test wants it: `pod-ready.stage.kwok.x-k8s.io/delay: 12s`, `kwok.x-k8s.io/usage-cpu: 90m`,
`kwok.x-k8s.io/usage-memory: 1Gi`, `resize.test/verdict: Deferred | Infeasible` (stages.yaml).
"""

from __future__ import annotations

import json
import os
import ssl
import subprocess
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import httpx

from tests.support.control_plane import commands
from tests.support.control_plane.api import Api, Document
from tests.support.control_plane.authority import Authority, KeyPair, kubeconfig, signing_keys
from tests.support.control_plane.binaries import find
from tests.support.control_plane.commands import Identities, Ports
from tests.support.control_plane.objects import api_service, loopback_service, node
from tests.support.control_plane.processes import Programs
from tests.support.ports import free_ports
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from types import TracebackType

NODES = 2
STAGES = Path(__file__).with_name("stages.yaml")


class ControlPlane:
    """Runs while the `with` block lasts; its processes do not outlive this one, however it ends.

    `services` are the first two numbers of the addresses that its Services get; two control planes at the same time
    need different ones.
    """

    def __init__(self, folder: Path, *, services: str = "127.96") -> None:
        self.folder = folder
        self.services = services
        self._ports = Ports(*free_ports(6))
        self.server = f"https://127.0.0.1:{self._ports.api}"
        self.programs = Programs(folder)
        self.authority = Authority(folder / "pki", "test-ca")
        """Signs the certificates of clients; every user of the API server is known by one of these, or by a token."""
        self.front_proxy = Authority(folder / "pki-front-proxy", "test-front-proxy-ca")
        """Signs the certificate with which the API server comes to aggregated servers."""
        self.kubeconfig = self.user("admin", "system:masters")
        self.api = self.client(KeyPair(folder / "pki" / "admin.crt", folder / "pki" / "admin.key"))

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def user(self, name: str, *groups: str) -> Path:
        """Client configuration of a user with a certificate of the cluster's authority; one group at most."""
        identity = self.authority.issue(name, common_name=name, organization=next(iter(groups), None))
        return kubeconfig(self.folder / f"{name}.kubeconfig", self.server, self.authority, identity)

    def client(self, identity: KeyPair | None = None, *, token: str | None = None) -> Api:
        """A client with a certificate, with a token, or without any name."""
        tls = ssl.create_default_context(cafile=str(self.authority.certificate))
        if identity:
            tls.load_cert_chain(identity.certificate, identity.key)
        return Api(self.server, tls, token=token)

    def restart_api_server(self) -> None:
        """Stop it and start it again; what it had in memory of older versions of objects is gone."""
        with self.programs.away("kube-apiserver"):
            pass
        self.until_answering()

    def until_answering(self) -> None:
        """Wait for the API server and its store."""
        self._wait(self._answers, "the API server")

    def kubectl(self, *arguments: str, given: str | None = None) -> str:
        """Output of kubectl as the administrator; `given` is its standard input.

        Raises:
            AssertionError: it failed, with its standard error.
        """
        program = find("kubectl")
        assert program, "kubectl is absent; ask binaries.why_not before starting"
        command = [program, f"--kubeconfig={self.kubeconfig}", *arguments]
        # Its discovery cache lies below HOME; kept in our folder it cannot meet that of another cluster.
        environment = {**os.environ, "HOME": str(self.folder)}
        done = subprocess.run(command, input=given, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr.strip()}"
        return done.stdout

    def audited(self, account: str) -> list[Document]:
        """Requests that one of our accounts has made so far, from the API server's audit log."""
        lines = (self.folder / commands.AUDIT_LOG).read_text(encoding="utf-8").splitlines()
        user = f"system:serviceaccount:forecaster:{account}"
        return [event for event in map(json.loads, lines) if event["user"]["username"] == user]

    def install(self, definitions: Path) -> None:
        """Custom resources from a folder, ready to be used."""
        self.kubectl("apply", "--server-side", "-f", str(definitions))

        def established() -> bool:
            resources = self.api.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"]
            return all(_established(each) and self._serves(each) for each in resources)

        wait_until(established, goal="the custom resources")

    def uninstall(self, definitions: Path) -> None:
        """Takes back what `install` put there, with the objects of these kinds."""
        self.kubectl("delete", "--ignore-not-found", "-f", str(definitions))

    def account(self, name: str, namespace: str) -> Path:
        """Client configuration with a token of a service account."""
        file = self.folder / f"{namespace}-{name}.kubeconfig"
        cluster = {"server": self.server, "certificate-authority": str(self.authority.certificate)}
        document = {
            "kind": "Config",
            "current-context": name,
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": name, "user": {"token": self.token(name, namespace)}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        }
        file.write_text(json.dumps(document))
        return file

    def token(self, account: str, namespace: str = "default") -> str:
        """A token of a service account, as its pods get one; a new namespace gets its `default` a moment later."""
        wait_until(lambda: self.api.has("ServiceAccount", account, namespace), goal=f"account {namespace}/{account}")
        return self.kubectl("create", "token", account, f"--namespace={namespace}").strip()

    def aggregate(self, port: int, bundle: str, *, group: str = "external.metrics.k8s.io") -> str:
        """Let the API server fetch a group from a port of this machine; the TLS name under which it comes there."""
        version = "v1beta2" if group == "custom.metrics.k8s.io" else "v1beta1"
        service = f"aggregated-{group.split('.', 1)[0]}"
        self.api.put(loopback_service(service))
        self.api.put(api_service(group, version, service, port, bundle))
        return f"{service}.default.svc"

    def until_available(self, group: str = "external.metrics.k8s.io", version: str = "v1beta1") -> None:
        """Wait for the APIService to be answered: its condition is there before the API server passes requests on."""
        name = f"{version}.{group}"

        def available() -> bool:
            stated = self.api.condition("APIService", name, "Available").get("status") == "True"
            return stated and self.api.ask("GET", f"/apis/{group}/{version}").status_code == HTTPStatus.OK

        wait_until(available, goal=f"APIService {name}")

    def until_allowed(
        self, user: str, verb: str, resource: str, *, namespace: str = "", name: str = "", expected: bool = True
    ) -> None:
        """Wait for a right that has been bound, or taken away: the API server learns of it a moment after storing it.

        `user` is `namespace/account` or the name of a user; `resource` is `resource.group`, or a resource of the core.
        """
        plural, _, group = resource.partition(".")
        attributes = {"verb": verb, "group": group, "resource": plural, "namespace": namespace, "name": name}
        review = {"spec": {**_subject(user), "resourceAttributes": attributes}}
        kind = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}

        def allowed() -> bool:
            answer = self.api.ask("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {**kind, **review})
            return bool(answer.json()["status"]["allowed"]) is expected

        wait_until(allowed, goal=f"the right of {user} to {verb} {resource}")

    def _start(self) -> None:
        programs, ports = self.programs, self._ports
        who = self._identities()
        programs.start("etcd", *commands.etcd(self.folder, ports))
        programs.start("kube-apiserver", *commands.api_server(self.folder, ports, who, f"{self.services}.0.0/16"))
        self.until_answering()
        controllers = self.user("system:kube-controller-manager")
        programs.start("kube-controller-manager", *commands.controller_manager(ports, who, controllers))
        programs.start("kube-scheduler", *commands.scheduler(ports, self.user("system:kube-scheduler")))
        self._start_nodes()
        self._wait(self._ready, "nodes and the default service account")

    def _identities(self) -> Identities:
        names = ("localhost", "kubernetes.default.svc", "127.0.0.1", f"{self.services}.0.1")
        return Identities(
            authority=self.authority,
            front_proxy=self.front_proxy,
            server=self.authority.issue("kube-apiserver", *names),
            proxy_client=self.front_proxy.issue("front-proxy-client", common_name="front-proxy-client"),
            tokens=signing_keys(self.folder),
        )

    def _start_nodes(self) -> None:
        stages = self.folder / "stages.yaml"
        text = STAGES.read_text(encoding="utf-8")
        text = text.replace("@POD_READY_MS@", str(commands.POD_READY_MILLISECONDS))
        stages.write_text(text.replace("@RESIZE_MS@", str(commands.RESIZE_MILLISECONDS)), encoding="utf-8")
        serving = self.authority.issue("kubelet", "localhost", "127.0.0.1")
        arguments = commands.kwok(self._ports, stages, serving, self.user("kwok", "system:masters"))
        self.programs.start("kwok", *arguments, environment={"HOME": str(self.folder)})
        for number in range(NODES):
            self.api.create(node(f"kwok-{number}"))

    def _stop(self) -> None:
        self.api.close()
        self.programs.stop_all()

    def _answers(self) -> bool:
        try:
            return self.api.ask("GET", "/readyz").status_code == HTTPStatus.OK
        except httpx.TransportError:
            return False

    def _ready(self) -> bool:
        nodes = self.api.get("/api/v1/nodes")["items"]
        return all(map(_schedulable, nodes)) and self.api.has("ServiceAccount", "default")

    def _wait(self, happened: Any, goal: str) -> None:
        def checked() -> bool:
            self.programs.check()
            return bool(happened())

        wait_until(checked, goal=goal)

    def _serves(self, definition: Document) -> bool:
        """A moment after it is established."""
        spec = definition["spec"]
        versions = (each["name"] for each in spec["versions"] if each["served"])
        lists = (
            self.api.ask("GET", f"/apis/{spec['group']}/{version}/{spec['names']['plural']}") for version in versions
        )
        return all(answer.status_code == HTTPStatus.OK for answer in lists)


def _subject(user: str) -> Document:
    """Whom a review is about, with the groups that the API server itself would add."""
    namespace, _, account = user.rpartition("/")
    if not namespace:
        return {"user": user, "groups": ["system:authenticated"]}
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    return {"user": f"system:serviceaccount:{namespace}:{account}", "groups": groups}


def _established(definition: Document) -> bool:
    conditions = definition.get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _schedulable(node: Document) -> bool:
    conditions = node["status"].get("conditions", [])
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return ready and not any("not-ready" in taint["key"] for taint in node["spec"].get("taints", []))
