#!/usr/bin/env bash
# (1) a cargo that can build wasm32-unknown-unknown, (2) the matching wasm-bindgen tools. Safe to run again.
#   WASM_ROUTE=auto|rustup|debian   TOOLS_DIR=~/.cache/timepail   WBG_VERSION=as in Cargo.lock
set -euo pipefail
TOOLS_DIR=${TOOLS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/timepail}
WASM_ROUTE=${WASM_ROUTE:-auto}; WBG_VERSION=${WBG_VERSION:-0.2.130}
TARGET=wasm32-unknown-unknown; ENV_FILE=$TOOLS_DIR/env
mkdir -p "$TOOLS_DIR"
say() { printf '[toolchain] %s\n' "$*" >&2; }

use_rustup() {
  command -v rustup >/dev/null || return 1
  [ -d "$(rustc --print sysroot)/lib/rustlib/$TARGET/lib" ] && return 0
  timeout 60 rustup target add "$TARGET" >/dev/null 2>&1 || return 1
  [ -d "$(rustc --print sysroot)/lib/rustlib/$TARGET/lib" ]
}

use_debian() {
  if ! [ -e /usr/bin/lld-22 ] || ! [ -e /usr/bin/clippy-driver ] || ! [ -d /usr/lib/rustlib/src/rust/library ]; then
    say "installing Debian's rustc-web"
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 \
      rustc-web cargo-web rust-web-src rust-web-clippy rustfmt-web lld-22 >/dev/null
  fi
  local ver key; ver=$(/usr/bin/rustc -vV); key=$(printf '%s' "$ver" | sha256sum | cut -c1-12)
  SYSROOT=$TOOLS_DIR/sysroot-$key            # rlibs fit exactly one rustc, hence the key
  [ -e "$SYSROOT/.complete" ] && return 0
  say "compiling std for $TARGET (about a minute)"
  local w; w=$(mktemp -d); mkdir "$w/src"; echo '#![no_std]' > "$w/src/lib.rs"
  printf '%s\n' '[package]' 'name="seed"' 'version="0.0.0"' 'edition="2024"' \
    '[profile.release]' 'opt-level=3' 'codegen-units=1' 'panic="abort"' '[workspace]' > "$w/Cargo.toml"
  (cd "$w" && env -u RUSTUP_TOOLCHAIN RUSTC_BOOTSTRAP=1 RUSTC=/usr/bin/rustc CARGO_TARGET_DIR="$w/t" \
      RUSTFLAGS="-Cembed-bitcode=yes" /usr/bin/cargo build -q --release --target $TARGET \
      -Zbuild-std=std,panic_abort,proc_macro,test)
  rm -rf "$SYSROOT"
  local lib=$SYSROOT/lib/rustlib host=x86_64-unknown-linux-gnu b
  mkdir -p "$SYSROOT/bin" "$lib/$TARGET/lib" "$lib/$host/bin"
  cp "$w"/t/$TARGET/release/deps/*.rlib "$lib/$TARGET/lib/"; rm -f "$lib/$TARGET/lib"/libseed-*
  ln -s /usr/lib/rustlib/$host/lib "$lib/$host/lib"
  ln -s /usr/lib/rustlib/src "$lib/src"
  ln -s /usr/bin/lld-22 "$lib/$host/bin/rust-lld"
  for b in rustc rustdoc clippy-driver; do
    printf '#!/bin/sh\nfor a in "$@"; do case $a in --sysroot|--sysroot=*) exec /usr/bin/%s "$@";; esac; done\nexec /usr/bin/%s "$@" --sysroot "%s"\n' \
      $b $b "$SYSROOT" > "$SYSROOT/bin/$b"; chmod +x "$SYSROOT/bin/$b"
  done
  ln -s /usr/bin/cargo /usr/bin/rustfmt /usr/bin/cargo-fmt "$SYSROOT/bin/"
  cp /usr/bin/cargo-clippy "$SYSROOT/bin/"   # a copy: it starts the clippy-driver that lies beside itself
  rm -rf "$w"; touch "$SYSROOT/.complete"
}

case $WASM_ROUTE in
  rustup) use_rustup || { say "rustup has no $TARGET"; exit 1; }; ROUTE=rustup ;;
  debian) use_debian; ROUTE=debian ;;        # not 'use_debian && …': that would switch errexit off inside it
  auto)   if use_rustup; then ROUTE=rustup; else use_debian; ROUTE=debian; fi ;;
esac
say "compiler route: $ROUTE"
if ! "$TOOLS_DIR/bin/wasm-bindgen" --version 2>/dev/null | grep -qx "wasm-bindgen $WBG_VERSION"; then
  say "building wasm-bindgen-cli $WBG_VERSION"
  cargo install -q wasm-bindgen-cli --version "$WBG_VERSION" --no-default-features --root "$TOOLS_DIR"
fi
{ [ "$ROUTE" = debian ] && echo "export PATH=\"$SYSROOT/bin:\$PATH\""
  echo "export PATH=\"$TOOLS_DIR/bin:\$PATH\""
  echo "export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER=\"$TOOLS_DIR/bin/wasm-bindgen-test-runner\""; } > "$ENV_FILE"
say "use: . $ENV_FILE"
