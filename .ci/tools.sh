# Sourced by scripts beside it: programs of Python that only they need, by hash, in an environment of their own.
# shellcheck shell=sh

tools=${FORECASTER_CACHE:-$HOME/.cache/forecaster}/tools

install_tools() {
  cmp -s .ci/tools.lock "$tools/lock" && return 0
  "$(readlink -f .venv/bin/python)" -m venv --clear "$tools"
  patiently "$tools/bin/pip" install -q --disable-pip-version-check --require-hashes -r .ci/tools.lock
  cp .ci/tools.lock "$tools/lock"
}
