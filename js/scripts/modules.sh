#!/usr/bin/env bash
# Brings the npm packages of the project into js/node_modules. They are a gigabyte in 19 000 files, whose unpacking takes a minute: they stay with the tools, and a
# clone with the same lock file gets links to them.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
TOOLS=${TIMEPAIL_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/timepail}
# Some packages choose their programs when they are installed.
key=$({ cat package.json package-lock.json; node -p '[process.platform, process.arch, process.version]'; } | cksum | tr ' ' -)
kept=$TOOLS/modules-$key
mkdir -p "$TOOLS"

# Programs replace files of packages, they do not write into them, so links are as good as copies. Another file system has no links.
link() { cp -al "$1" "$2" 2>/dev/null || { rm -rf "$2"; return 1; }; }

rm -rf node_modules
if [ -d "$kept" ] && link "$kept" node_modules; then
  touch "$kept"
else
  npm ci --no-progress
  # Renamed when it is complete, so that another run finds all of it or nothing.
  [ -d "$kept" ] || { link node_modules "$kept.$$" && mv "$kept.$$" "$kept"; } || true
  find "$TOOLS" -maxdepth 1 -name 'modules-*' -mtime +30 -exec rm -rf {} +
fi
