from __future__ import annotations

import shutil
import ssl
from typing import TYPE_CHECKING

import pytest

from forecaster.serving.secured import ServingCertificates
from tests.support.control_plane.authority import Authority

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "pki", "test-ca")


@pytest.fixture
def certificates(authority: Authority) -> ServingCertificates:
    built = ServingCertificates(*authority.issue("serving", "localhost"))
    built.refresh()
    return built


def test_a_context_stays_while_nothing_changes(certificates: ServingCertificates) -> None:
    before = certificates.current()
    certificates.refresh()
    assert certificates.current() is before


def test_it_speaks_current_protocols_and_gives_no_tickets(certificates: ServingCertificates) -> None:
    context = certificates.current()
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.num_tickets == 0
    assert context.options & ssl.OP_NO_TICKET


def test_a_bundle_of_proxies_may_have_comments_in_any_language(
    certificates: ServingCertificates, authority: Authority
) -> None:
    certificates.trust("# Autoridade de Certificação\n" + authority.certificate.read_text())
    certificates.refresh()
    assert len(certificates.current().get_ca_certs()) == 1


def test_a_new_pair_is_a_new_context(certificates: ServingCertificates, authority: Authority) -> None:
    before = certificates.current()
    authority.issue("serving", "localhost")
    certificates.refresh()
    assert certificates.current() is not before
    assert not certificates.fault


def test_a_certificate_that_does_not_fit_its_key_leaves_the_last_good_pair(
    certificates: ServingCertificates, authority: Authority
) -> None:
    before = certificates.current()
    other = authority.issue("other", "localhost")
    shutil.copy(other.certificate, other.certificate.with_name("serving.crt"))
    certificates.refresh()
    assert certificates.current() is before
    assert "serving.crt is not used" in certificates.fault
    shutil.copy(other.key, other.key.with_name("serving.key"))
    certificates.refresh()
    assert certificates.current() is not before
    assert not certificates.fault


def test_files_that_are_gone_leave_the_last_good_pair(certificates: ServingCertificates, authority: Authority) -> None:
    before = certificates.current()
    authority.certificate.with_name("serving.key").unlink()
    certificates.refresh()
    assert certificates.current() is before
    assert "No such file" in certificates.fault


def test_client_certificates_are_asked_for_once_there_is_an_authority(
    certificates: ServingCertificates, authority: Authority
) -> None:
    assert certificates.current().verify_mode is ssl.CERT_NONE
    certificates.trust(authority.certificate.read_text())
    certificates.refresh()
    assert certificates.current().verify_mode is ssl.CERT_OPTIONAL
    assert len(certificates.current().get_ca_certs()) == 1


def test_an_authority_that_is_none_changes_nothing(certificates: ServingCertificates) -> None:
    before = certificates.current()
    certificates.trust("no certificate")
    certificates.refresh()
    assert certificates.current() is before
    assert certificates.fault


def test_without_any_good_pair_there_is_nothing_to_serve_with(tmp_path: Path) -> None:
    absent = ServingCertificates(tmp_path / "none.crt", tmp_path / "none.key")
    absent.refresh()
    with pytest.raises(OSError, match=r"none\.crt is not used"):
        absent.current()
