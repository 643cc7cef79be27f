from __future__ import annotations

import ssl
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.x509.verification import DNSName, PolicyBuilder, Store, VerificationError

from forecaster.certificates.issue import Issued, issue
from forecaster.certificates.renew import (
    API_SERVICE,
    CertificateSpec,
    ChangedError,
    Registered,
    Registration,
    StoredCertificate,
    bundle,
    renew_certificate,
    why_renew,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NOW = datetime(2026, 3, 1, tzinfo=UTC)
EXTERNAL = "v1beta1.external.metrics.k8s.io"
SPEC = CertificateSpec(
    "forecaster/forecaster", [Registered(API_SERVICE, EXTERNAL)], timedelta(days=90), timedelta(days=30)
)


@dataclass
class FakeCluster:
    """One Secret, APIServices by name, and what happened to them in order."""

    issued: Issued = field(default_factory=lambda: Issued("", "", ""))
    bundles: dict[str, str] = field(default_factory=lambda: {EXTERNAL: ""})
    owner: str = "forecaster/forecaster"
    written: list[str] = field(default_factory=list)
    other_run: Callable[[], object] | None = None
    """Runs once, after the Secret was read."""

    def secret(self) -> StoredCertificate:
        stored = StoredCertificate(self.issued.authority, self.issued.certificate, str(self.written.count("secret")))
        other_run, self.other_run = self.other_run, None
        if other_run:
            other_run()
        return stored

    def write_secret(self, issued: Issued, version: str) -> None:
        if version != str(self.written.count("secret")):
            raise ChangedError("written meanwhile")
        self.issued = issued
        self.written.append("secret")

    def registration(self, registered: Registered) -> Registration | None:
        name = registered.name
        return Registration(self.owner, self.bundles[name], "1") if name in self.bundles else None

    def write_bundle(self, registered: Registered, bundle: str, version: str) -> None:
        self.bundles[registered.name] = bundle
        self.written.append(registered.name)


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


def renewed(cluster: FakeCluster, now: datetime = NOW) -> list[str]:
    return list(renew_certificate(cluster, SPEC, now))


def believed(cluster: FakeCluster, issued: Issued, now: datetime) -> bool:
    """Would the API server talk to a server with this certificate?"""
    store = Store(x509.load_pem_x509_certificates(cluster.bundles[EXTERNAL].encode()))
    verifier = PolicyBuilder().store(store).time(now).build_server_verifier(DNSName("forecaster.forecaster.svc"))
    try:
        verifier.verify(x509.load_pem_x509_certificate(issued.certificate.encode()), [])
    except VerificationError:
        return False
    return True


def test_the_first_run_makes_one_that_the_api_server_believes(cluster: FakeCluster) -> None:
    lines = renewed(cluster)
    assert lines[-1] == "new certificate until 2026-05-30 00:00 UTC: there is none"
    assert believed(cluster, cluster.issued, NOW)


def test_python_serves_with_it(cluster: FakeCluster, tmp_path: Path) -> None:
    renewed(cluster)
    (tmp_path / "both").write_text(cluster.issued.certificate + cluster.issued.key)
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tmp_path / "both")


def test_the_authority_is_trusted_before_the_certificate_is_shown(cluster: FakeCluster) -> None:
    renewed(cluster)
    assert cluster.written == [EXTERNAL, "secret"]


def test_the_second_run_does_nothing(cluster: FakeCluster) -> None:
    renewed(cluster)
    cluster.written.clear()
    assert renewed(cluster, NOW + timedelta(days=59)) == []
    assert cluster.written == []


def test_a_renewal_leaves_the_old_certificate_believed_until_the_next(cluster: FakeCluster) -> None:
    renewed(cluster)
    first, due = cluster.issued, NOW + timedelta(days=60)
    assert "it ends at 2026-05-30 00:00 UTC" in renewed(cluster, due)[-1]
    assert believed(cluster, first, due)
    assert believed(cluster, cluster.issued, due)
    second, later = cluster.issued, due + timedelta(days=60)
    renewed(cluster, later)
    assert believed(cluster, second, later)
    assert cluster.bundles[EXTERNAL].count("BEGIN") == 2


def test_of_two_renewals_at_the_same_moment_the_later_one_leaves_the_certificate_before_believed(
    cluster: FakeCluster,
) -> None:
    renewed(cluster)
    before, late = cluster.issued, NOW + timedelta(days=61)
    cluster.other_run = lambda: renewed(cluster, late)
    with pytest.raises(ChangedError):
        renewed(cluster, late)
    assert renewed(cluster, late) == [f"APIService {EXTERNAL}: trusts our authority"]
    assert believed(cluster, cluster.issued, late)
    assert believed(cluster, before, late)


def test_a_bundle_that_was_emptied_is_filled_again(cluster: FakeCluster) -> None:
    renewed(cluster)
    cluster.bundles[EXTERNAL] = ""
    assert renewed(cluster) == [f"APIService {EXTERNAL}: trusts our authority"]
    assert believed(cluster, cluster.issued, NOW)


def test_an_api_that_belongs_to_another_server_is_left_alone(cluster: FakeCluster) -> None:
    cluster.owner = "keda/keda-operator-metrics-apiserver"
    assert renewed(cluster)[0].endswith("left alone, it belongs to keda/keda-operator-metrics-apiserver")
    assert cluster.bundles[EXTERNAL] == ""


def test_an_api_that_is_not_registered_is_said(cluster: FakeCluster) -> None:
    cluster.bundles.clear()
    assert renewed(cluster)[0] == f"APIService {EXTERNAL}: there is none"
    assert cluster.issued.certificate


@pytest.mark.parametrize(
    ("certificate", "why"),
    [
        ("", "there is none"),
        ("junk", "it cannot be read"),
        (issue(["other.shop.svc"], NOW, timedelta(days=90)).certificate, "it does not name forecaster.forecaster.svc"),
        (issue(SPEC.names, NOW, timedelta(days=90)).certificate, "its authority, ca.crt of the Secret, is missing"),
    ],
)
def test_what_cannot_be_used_is_replaced(cluster: FakeCluster, certificate: str, why: str) -> None:
    cluster.issued = replace(cluster.issued, certificate=certificate)
    assert why in renewed(cluster)[-1]
    assert believed(cluster, cluster.issued, NOW)


def test_one_that_was_made_while_the_clock_was_ahead_is_replaced_as_soon_as_it_is_right(cluster: FakeCluster) -> None:
    renewed(cluster, NOW + timedelta(days=365))
    assert "it begins at 2027-02-28 23:00 UTC only" in renewed(cluster)[-1]
    assert believed(cluster, cluster.issued, NOW)


def test_a_certificate_is_good_for_late_clocks() -> None:
    issued = issue(SPEC.names, NOW, timedelta(days=90))
    assert (
        why_renew(StoredCertificate(issued.authority, issued.certificate, "1"), SPEC.names, NOW, timedelta(days=30))
        == ""
    )
    certificate = x509.load_pem_x509_certificate(issued.certificate.encode())
    assert certificate.not_valid_before_utc == NOW - timedelta(hours=1)


def test_a_bundle_holds_each_authority_once() -> None:
    first, second = (issue(["a"], NOW, timedelta(days=1)).authority for _ in range(2))
    assert bundle(first, first + second) == bundle(first, second) == first + second
    assert bundle("", "no certificate") == ""
