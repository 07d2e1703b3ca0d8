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

# Programs replace files of packages, they do not write into them, so links are as good as copies: except for npm's own list, which npm writes into. A folder gets its
# name when it is complete. Another file system has no links.
link() {
  local folder=$2.new-$$ list=.package-lock.json
  if cp -al "$1" "$folder" 2>/dev/null && cp "$folder/$list" "$folder/$list.copy" && mv -f "$folder/$list.copy" "$folder/$list" && rename "$folder" "$2"; then return; fi
  rm -rf "$folder"
  return 1
}

# Unlike mv, never into a folder that is there by now.
rename() { node -e 'require("fs").renameSync(process.argv[1], process.argv[2])' "$1" "$2" 2>/dev/null; }

rm -rf node_modules
if [ -d "$kept" ] && link "$kept" node_modules; then
  touch "$kept"
else
  npm ci --no-progress
  [ -d "$kept" ] || link node_modules "$kept" || true
  find "$TOOLS" -maxdepth 1 -name 'modules-*' -mtime +30 -exec rm -rf {} +
fi
