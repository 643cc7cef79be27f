# Sourced by the scripts beside it: programs for the tests, built from pinned Go modules into one folder.
# shellcheck shell=sh

bin=${FORECASTER_CACHE:-$HOME/.cache/forecaster}/bin

say() { printf '%s\n' "$*" >&2; }

# What fails by the network and not by itself, as go, apt-get and pip word it.
NETWORK_FAULTS='dial tcp|i/o timeout|TLS handshake|connection (reset|refused)|unexpected EOF|stream error|no such host'
NETWORK_FAULTS="$NETWORK_FAULTS|(429|50[0234]) |Temporary failure|Could not resolve|Failed to fetch|Connection (failed|timed out)"

# Runs a command, and again after a network fault: three times more within a minute and a half.
patiently() {
  patiently_said=$(mktemp)
  for patiently_pause in 5 20 60 0; do
    patiently_status=0
    "$@" 2>"$patiently_said" || patiently_status=$?
    cat "$patiently_said" >&2
    [ "$patiently_status" -ne 0 ] && [ "$patiently_pause" -ne 0 ] && grep -Eq "$NETWORK_FAULTS" "$patiently_said" || break
    say "· a network fault; again in $patiently_pause s"
    sleep "$patiently_pause"
  done
  rm -f "$patiently_said"
  return "$patiently_status"
}

# $1 module: the version that the go.mod of $modules pins.
module_version() { sed -n "s|^[[:space:]]*\(require \)\{0,1\}$1 \(v[^ ]*\).*|\2|p" "$modules/go.mod"; }

# Built already, from this package, version and these flags: they are kept beside the program.
is_built() { [ -x "$bin/$1" ] && [ "$(cat "$bin/.$1.built" 2>/dev/null)" = "$2" ]; }

# $1 name, $2 package, $3 version, $4 linker flags, further options of `go build`
build() {
  build_name=$1 build_package=$2 build_version=$3 build_flags=$4
  shift 4
  build_stamp="$build_package $build_version $build_flags"
  is_built "$build_name" "$build_stamp" && return 0
  say "· building $build_name $build_version"
  mkdir -p "$bin"
  (cd "$modules" && patiently env CGO_ENABLED=0 GOFLAGS=-mod=readonly \
    go build -trimpath "$@" -ldflags="-s -w $build_flags" -o "$bin/$build_name" "$build_package")
  printf '%s\n' "$build_stamp" >"$bin/.$build_name.built"
}
