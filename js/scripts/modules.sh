#!/usr/bin/env bash
# Installs the npm packages of the project into js/node_modules. They are a gigabyte in 19 000 files, and unpacking them takes a minute. So they stay with the tools,
# and a clone with the same lock file gets links to them.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
TOOLS=${TIMEPAIL_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/timepail}
# The key includes the platform and the version of Node, because some packages choose their programs when they are installed.
key=$({ cat package.json package-lock.json; node -p '[process.platform, process.arch, process.version]'; } | cksum | tr ' ' -)
kept=$TOOLS/modules-$key
mkdir -p "$TOOLS"

# Hard links are as good as copies, because programs replace files of packages and do not write into them. Only npm writes into its own list, so that one is copied.
# A folder is renamed when it is complete. Linking fails across file systems.
link() {
  local folder=$2.new-$$ list=.package-lock.json
  if cp -al "$1" "$folder" 2>/dev/null && cp "$folder/$list" "$folder/$list.copy" && mv -f "$folder/$list.copy" "$folder/$list" && rename "$folder" "$2"; then return; fi
  rm -rf "$folder"
  return 1
}

# Unlike mv, this never moves into a folder that exists by now.
rename() { node -e 'require("fs").renameSync(process.argv[1], process.argv[2])' "$1" "$2" 2>/dev/null; }

rm -rf node_modules
if [ -d "$kept" ] && link "$kept" node_modules; then
  touch "$kept"
else
  npm ci --no-progress
  [ -d "$kept" ] || link node_modules "$kept" || true
  find "$TOOLS" -maxdepth 1 -name 'modules-*' -mtime +30 -exec rm -rf {} +
fi
