#!/usr/bin/env bash
# Runs all tests short of those on a real node: unit tests, those of the other Go modules, and the
# integration suite. With LEGACY_WATCH=1 the suite runs a second time, with --legacy-watch. The two
# runs have a control plane each and mostly wait, so they go side by side.
#
#   hack/test.sh [FLAGS OF GO TEST...] -- MODULE...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

flags=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  flags+=("$1")
  shift
done
shift

export INTEGRATION=required
told=$(mktemp)
legacy=""
finish() {
  if [ -n "$legacy" ]; then
    kill -TERM -- "-$legacy" 2>/dev/null || true
    wait "$legacy" || true
  fi
  rm -f "$told"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

if [ -n "${LEGACY_WATCH:-}" ]; then
  # In a process group of its own, so that nothing of it outlives this script.
  set -m
  INTEGRATION_FLAGS=--legacy-watch go test -timeout 30m "${flags[@]}" ./test/integration >"$told" 2>&1 &
  legacy=$!
  set +m
fi
code=0
go test -cover -timeout 30m "${flags[@]}" ./... || code=1
for module in "$@"; do
  echo "go test in $module"
  go -C "$module" test -timeout 20m "${flags[@]}" ./... || code=1
done
if [ -n "$legacy" ]; then
  echo "The integration suite with --legacy-watch:"
  wait "$legacy" || code=1
  legacy=""
  cat "$told"
fi
exit "$code"
