"""StateSecret: a Secret of the release's namespace, where a new pod finds what signs state."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from forecaster.errors import StoreError
from forecaster.kube.client import ApiError, suppress_conflict
from forecaster.kube.objects import ObjectMeta, Secret, secret_path
from forecaster.store.signing import StateKeys, new_key

if TYPE_CHECKING:
    from forecaster.kube.client import ApiClient

KEY = "key"


class StateSecret:
    """The Secret, read and changed by an account that may do so with this one alone."""

    def __init__(self, client: ApiClient, name: str) -> None:
        self.name, self._client, self._path = name, client, secret_path(*name.split("/"))

    def keys(self) -> StateKeys:
        """Read the keys of the release; the first one that asks makes one.

        Raises:
            StoreError: the Secret cannot be read or written, or holds no key.
        """
        try:
            found = self._read()
            if not (found.data or {}).get(KEY):
                with suppress_conflict():  # another replica has made one meanwhile
                    self._patch(Secret(ObjectMeta(resource_version=found.metadata.resource_version), {KEY: new_key()}))
                found = self._read()
        except ApiError as error:
            raise StoreError(_remedy(self.name, error)) from error
        return StateKeys.of_text((found.data or {}).get(KEY, b""), f"Secret {self.name}")

    def _read(self) -> Secret:
        return self._client.get(self._path, Secret)

    def _patch(self, change: Secret) -> Secret:
        return self._client.patch(self._path, change, Secret)


def _remedy(name: str, error: ApiError) -> str:
    if error.status == HTTPStatus.NOT_FOUND:
        return f"Secret {name}: there is none; apply deploy/base, which has it, empty"
    if error.status == HTTPStatus.FORBIDDEN:
        return f"{error}; bind the rights of deploy/base to this account"
    return str(error)
