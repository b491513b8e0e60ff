#!/usr/bin/env bash
# Builds the web page of Prometheus out of its Go module, which has the page's source and not its
# built files: page.sh MODULE TARGET. Needs Node.js 20 and npm.
set -euo pipefail
module=$1 target=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -R "$module/web/ui" "$work/ui"
chmod -R u+w "$work"
cd "$work/ui"
# Pins the component library to a release that is known to build.
sed -i -E 's#("@mantine/(code-highlight|core|dates|hooks|notifications)"): "[^"]*"#\1: "9.6.2"#' mantine-ui/package.json
pnpm() { npx --yes pnpm@10 "$@"; }
pnpm install --no-frozen-lockfile
pnpm --filter @prometheus-io/lezer-promql run build
pnpm --filter @prometheus-io/codemirror-promql run build
pnpm --dir mantine-ui exec vite build
# Prometheus looks for the files here, below a working directory that is called prometheus.
mkdir -p "$target/web/ui/static"
rm -rf "$target/web/ui/static/mantine-ui"
mv mantine-ui/dist "$target/web/ui/static/mantine-ui"
