#!/usr/bin/env bash
# Installs the tools of the build on this machine. If they are complete, it takes a tenth of a second, so every make target may call it.
#
#   toolchain.sh [wasm]     a cargo that compiles for wasm32-unknown-unknown, and the wasm-bindgen tools
#   toolchain.sh browser    Chromium and the ChromeDriver that fits it; Chromium's headless shell, where apt has it
#   toolchain.sh firefox    Firefox
#   toolchain.sh webkit     WebKitGTK's driver and its little browser, with an X server without a screen; if apt has none, a note that says so
#   toolchain.sh wasm browser firefox webkit    all of these
#
#   WASM_ROUTE=auto         rustup where it can fetch the target, else Debian's compiler; `rustup` or `debian` forces one
#   TIMEPAIL_TOOLS=DIR      where the tools go; ~/.cache/timepail when unset
#   CHROME_PATH=FILE        a browser to use as it is; CHROMEDRIVER=FILE likewise for the driver, CHROME_SHELL_PATH=FILE for the
#                           headless shell, FIREFOX_PATH=FILE for Firefox, WEBKIT_DRIVER=FILE for WebKitWebDriver, WEBKIT_PATH=FILE for the browser that it starts, XVFB=FILE
#
# Results are files to source: $TIMEPAIL_TOOLS/env for recipes that compile wasm, $TIMEPAIL_TOOLS/browser-env, firefox-env and
# webkit-env for browser tests.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
TOOLS=${TIMEPAIL_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/timepail}
ROUTE=${WASM_ROUTE:-auto}
TARGET=wasm32-unknown-unknown
LOG=$TOOLS/toolchain.log
HEARTBEAT=

say() { printf '[toolchain] %s\n' "$*" >&2; }
fail() { printf '[toolchain] error: %s\n' "$@" >&2; exit 1; }

# The value of a `name = "value"` line; enough TOML for the two pins this script needs.
pin() { sed -n "s/^$2 *= *\"\([^\"]*\)\".*/\1/p" "$ROOT/$1" | head -n 1; }

# `at_least 1.96.0 1.95`: version numbers compare by parts, not as text.
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

# Runs a command, shows that it is alive, and keeps its output for the case that it fails. The command stays in the foreground and
# outside any condition, so that errexit applies inside it and Ctrl-C reaches it.
slowly() {
  local what=$1 start=$SECONDS
  shift
  say "$what"
  heartbeat "$start" 9>&- & # without the lock: a sleep that outlives the script must not hold it
  HEARTBEAT=$!
  "$@" >"$LOG" 2>&1
  quiet_heartbeat
  say "  done in $((SECONDS - start)) s"
}

heartbeat() {
  trap 'kill "$!"; exit' TERM
  while :; do
    sleep 15 &
    wait "$!"
    say "  still at it, $((SECONDS - $1)) s"
  done
}

quiet_heartbeat() {
  [ -n "$HEARTBEAT" ] || return 0
  kill "$HEARTBEAT" 2>/dev/null || true
  wait "$HEARTBEAT" 2>/dev/null || true
  HEARTBEAT=
}

on_exit() {
  local status=$?
  if [ "$status" != 0 ] && [ -n "$HEARTBEAT" ]; then
    tail -n 40 "$LOG" >&2
    say "error: that step failed; the whole output is in $LOG"
  fi
  quiet_heartbeat
  [ -z "${WORK:-}" ] || rm -rf "$WORK"
}
trap on_exit EXIT

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else fail "this step needs root: run '$*' as root, then start again"; fi
}

# Reads the package lists once per run.
read_lists() {
  [ -z "${LISTS_READ:-}" ] || return 0
  slowly "reading the package lists" as_root apt-get update -qq
  LISTS_READ=1
}

apt_install() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 "$@"
}

# ---- the compiler ---------------------------------------------------------------------------------------------------------------

# The package compiles std itself, with the flags of everything else. Tests use the precompiled one.
has_target() {
  local lib
  lib=$(rustc --print sysroot)/lib/rustlib
  [ -d "$lib/$TARGET/lib" ] && [ -d "$lib/src/rust/library" ]
}

add_target() { rustup target add "$TARGET" && rustup component add rust-src; }

# Without a network `rustup target add` waits for minutes. Where it works, a minute is enough.
use_rustup() {
  command -v rustup >/dev/null && command -v rustc >/dev/null || return 1
  at_least "$(rustc --version | cut -d' ' -f2)" "$RUST_MIN" || { say "rustup's compiler is older than $RUST_MIN (rustup update)"; return 1; }
  has_target && return 0
  say "adding $TARGET to rustup's compiler"
  if command -v timeout >/dev/null; then
    export -f add_target
    TARGET=$TARGET timeout 60 bash -c add_target >"$LOG" 2>&1 || return 1
  else add_target >"$LOG" 2>&1 || return 1; fi
  has_target
}

# Debian ships a current compiler for its web browsers, but no std for wasm; that is compiled here, once for each compiler.
use_debian() {
  command -v apt-get >/dev/null || no_compiler "this system has no apt-get"
  debian_complete || install_debian
  local version key
  version=$(/usr/bin/rustc -vV)
  key=$(printf '%s' "$version" | sha256sum | cut -c1-12)
  SYSROOT=$TOOLS/sysroot-$key # compiled libraries fit exactly one compiler, hence the key
  [ -e "$SYSROOT/.complete" ] || slowly "compiling std for $TARGET with Debian's compiler (about a minute)" compile_std
}

llvm_major() { /usr/bin/rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p'; }

debian_complete() {
  [ -x /usr/bin/rustc ] && [ -x /usr/bin/cargo ] && [ -x /usr/bin/clippy-driver ] && [ -x /usr/bin/rustfmt ] &&
    [ -d /usr/lib/rustlib/src/rust/library ] && [ -x "/usr/bin/lld-$(llvm_major)" ] &&
    at_least "$(/usr/bin/rustc --version | cut -d' ' -f2)" "$RUST_MIN"
}

install_debian() {
  read_lists
  local found
  found=$(apt-cache policy rustc-web | sed -n 's/^ *Candidate: *\([0-9][0-9.]*\).*/\1/p')
  [ -n "$found" ] || no_compiler "this system has no package rustc-web (Debian has it, Ubuntu may not)"
  at_least "$found" "$RUST_MIN" || no_compiler "its rustc-web is $found, too old; are Debian's security updates switched on?"
  slowly "installing Debian's compiler (150 MB)" apt_install rustc-web cargo-web rust-web-src rust-web-clippy rustfmt-web
  slowly "installing its linker" apt_install "lld-$(llvm_major)" gcc libc6-dev
}

no_compiler() {
  fail "$1" "the build needs Rust $RUST_MIN or newer with the target $TARGET. Install rustup (https://rustup.rs), run" \
    "  rustup update stable && rustup target add $TARGET && rustup component add rust-src" "and start again"
}

# Runs in its own shell under `slowly`. An empty crate makes cargo compile std, whose libraries are then laid out as a sysroot. `bin/`
# holds compilers that look there, so that plain cargo commands need neither flags nor nightly. Only tests, lints and `build.mjs --dev` use this
# std, so it is not optimised, which saves a third of the time.
compile_std() {
  local host lib tool
  host=$(/usr/bin/rustc -vV | sed -n 's/^host: //p')
  WORK=$(mktemp -d)
  mkdir "$WORK/src"
  echo '#![no_std]' >"$WORK/src/lib.rs"
  cat >"$WORK/Cargo.toml" <<-TOML
	[package]
	name = "seed"
	version = "0.0.0"
	edition = "2024"
	[profile.release]
	opt-level = 0
	panic = "abort"
	[workspace]
	TOML
  # Bitcode lets the link-time optimisation of `--dev` reach into std; proc_macro and test are for doc and test builds.
  (cd "$WORK" && env -u RUSTUP_TOOLCHAIN RUSTC_BOOTSTRAP=1 RUSTC=/usr/bin/rustc CARGO_TARGET_DIR="$WORK/target" \
    RUSTFLAGS=-Cembed-bitcode=yes /usr/bin/cargo build --release --target "$TARGET" -Zbuild-std=std,panic_abort,proc_macro,test)
  rm -rf "$SYSROOT"
  lib=$SYSROOT/lib/rustlib
  mkdir -p "$SYSROOT/bin" "$lib/$TARGET/lib" "$lib/$host/bin"
  cp "$WORK/target/$TARGET/release/deps"/*.rlib "$lib/$TARGET/lib/"
  rm -f "$lib/$TARGET/lib"/libseed-*
  ln -s "/usr/lib/rustlib/$host/lib" "$lib/$host/lib"
  ln -s /usr/lib/rustlib/src "$lib/src"
  ln -s "/usr/bin/lld-$(llvm_major)" "$lib/$host/bin/rust-lld"
  for tool in rustc rustdoc clippy-driver; do
    cat >"$SYSROOT/bin/$tool" <<-SH
	#!/bin/sh
	for argument in "\$@"; do
	  case \$argument in --sysroot | --sysroot=*) exec /usr/bin/$tool "\$@" ;; esac
	done
	exec /usr/bin/$tool "\$@" --sysroot "$SYSROOT"
	SH
    chmod +x "$SYSROOT/bin/$tool"
  done
  ln -s /usr/bin/cargo /usr/bin/rustfmt /usr/bin/cargo-fmt "$SYSROOT/bin/"
  cp /usr/bin/cargo-clippy "$SYSROOT/bin/" # a copy, not a link: it starts the clippy-driver in its own folder
  touch "$SYSROOT/.complete"
}

# ---- wasm -----------------------------------------------------------------------------------------------------------------------

check_node() {
  local major
  major=$(node -p 'process.versions.node.split(".")[0]' 2>/dev/null) || major=0
  [ "$major" -ge 20 ] && command -v npm >/dev/null || fail "the build needs Node 20 or newer with npm (https://nodejs.org)"
}

# Only the crates that read and write modules are optimised: the tools are as fast as with everything optimised, and compiled in half the time.
install_bindgen() {
  local crate levels=()
  for crate in walrus wasmparser wasm-encoder wasm-bindgen-cli-support id-arena hashbrown gimli leb128 rustc-demangle; do
    levels+=(--config "profile.release.package.$crate.opt-level=1")
  done
  # Not --locked: the lock file of the tool names packages that a mirror may not carry yet. No default features, because they are for TLS.
  env -u CARGO_TARGET_DIR CARGO_PROFILE_RELEASE_OPT_LEVEL=0 cargo install "${levels[@]}" wasm-bindgen-cli --version "$BINDGEN" \
    --no-default-features --bin wasm-bindgen --bin wasm-bindgen-test-runner --root "$TOOLS"
}

prepare_wasm() {
  RUST_MIN=$(pin Cargo.toml rust-version)
  BINDGEN=$(pin wasm-pack.toml wasm-bindgen)
  [ -n "$RUST_MIN" ] && [ -n "$BINDGEN" ] || fail "Cargo.toml or wasm-pack.toml has lost its pin (rust-version, wasm-bindgen)"
  check_node
  local chosen
  case $ROUTE in
    rustup) use_rustup || no_compiler "WASM_ROUTE=rustup, but rustup cannot give $TARGET (output: $LOG)"; chosen=rustup ;;
    debian) use_debian; chosen=debian ;;
    auto) if use_rustup; then chosen=rustup; else use_debian; chosen=debian; fi ;;
    *) fail "WASM_ROUTE is '$ROUTE'; it may be auto, rustup or debian" ;;
  esac
  command -v cargo >/dev/null || no_compiler "there is no cargo in PATH"
  if [ "$("$TOOLS/bin/wasm-bindgen" --version 2>/dev/null)" != "wasm-bindgen $BINDGEN" ]; then
    command -v cc >/dev/null || fail "there is no C compiler for cargo to link with: apt-get install gcc libc6-dev (or your system's like)"
    slowly "building wasm-bindgen $BINDGEN (a minute or two)" install_bindgen
  fi
  {
    echo "# Written by js/scripts/toolchain.sh: the $chosen route."
    [ "$chosen" = rustup ] || echo "export PATH=\"$SYSROOT/bin:\$PATH\""
    echo "export PATH=\"$TOOLS/bin:\$PATH\""
    echo "export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER=\"$TOOLS/bin/wasm-bindgen-test-runner\""
  } >"$TOOLS/env.new"
  mv "$TOOLS/env.new" "$TOOLS/env"
}

# ---- browser --------------------------------------------------------------------------------------------------------------------

first_of() {
  local candidate
  for candidate in "$@"; do
    [ -n "$candidate" ] && command -v "$candidate" 2>/dev/null && return 0
  done
  return 1
}

find_browser() {
  if [ -n "${CHROME_PATH:-}" ]; then
    command -v "$CHROME_PATH" || fail "CHROME_PATH is '$CHROME_PATH', which is no program"
  else
    first_of chromium chromium-browser google-chrome google-chrome-stable "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome" || true
  fi
}

find_driver() { first_of "${CHROMEDRIVER:-}" chromedriver /usr/lib/chromium-browser/chromedriver || true; }

# The version of either program, such as "156.0.8078.79". Ubuntu's chromium-browser may be a stub that only says to install a snap, and has no version.
version_of() { [ -z "$1" ] || "$1" --version 2>/dev/null | sed -n 's/^[^0-9]*\([0-9][0-9.]*\).*/\1/p' | head -n 1; }

# ChromeDriver refuses a browser of another major version.
browser_fits() { [ -n "$BROWSER_VERSION" ] && [ "${BROWSER_VERSION%%.*}" = "${DRIVER_VERSION%%.*}" ]; }

look_for_browser() {
  BROWSER=$(find_browser)
  DRIVER=$(find_driver)
  BROWSER_VERSION=$(version_of "$BROWSER")
  DRIVER_VERSION=$(version_of "$DRIVER")
}

# Finds or installs the browser's engine without tabs and menus, which starts in half the time. Where there is none, tests use the browser.
look_for_shell() {
  SHELL_PATH=${CHROME_SHELL_PATH:-}
  # Only with Debian's browser, so that both have the same version. A browser that you have chosen is used as it is.
  [ -z "$SHELL_PATH" ] && [ "$BROWSER" = /usr/bin/chromium ] || return 0
  SHELL_PATH=$(first_of chromium-headless-shell || true)
  [ -z "$SHELL_PATH" ] && [ ! -e "$TOOLS/no-shell" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 0
  say "installing Chromium's headless shell (70 MB)"
  if apt_install chromium-headless-shell >"$LOG" 2>&1 || { apt-get update -qq && apt_install chromium-headless-shell; } >"$LOG" 2>&1; then
    SHELL_PATH=$(first_of chromium-headless-shell || true)
  else
    say "  there is none: tests take the browser"
    touch "$TOOLS/no-shell"
  fi
}

prepare_browser() {
  look_for_browser
  if ! browser_fits; then
    [ -z "${CHROME_PATH:-}" ] ||
      fail "CHROME_PATH is version ${BROWSER_VERSION:-unknown}, ChromeDriver is ${DRIVER_VERSION:-missing}: set CHROMEDRIVER to one that fits"
    command -v apt-get >/dev/null ||
      fail "there is no Chromium with a fitting ChromeDriver, and no apt-get to install them: install both, or set CHROME_PATH and CHROMEDRIVER"
    read_lists
    slowly "installing Chromium and ChromeDriver (120 MB)" apt_install chromium chromium-driver
    # Debian's browser and driver fit each other. Naming them keeps the search from finding a Chrome first.
    CHROME_PATH=/usr/bin/chromium CHROMEDRIVER=/usr/bin/chromedriver
    look_for_browser
    browser_fits || fail "apt installed no usable pair (browser ${BROWSER_VERSION:-none}, driver ${DRIVER_VERSION:-none}); on Ubuntu these are" \
      "snaps that may not start in a container: install Chrome and ChromeDriver, then set CHROME_PATH and CHROMEDRIVER"
  fi
  look_for_shell
  {
    echo "# Written by js/scripts/toolchain.sh: version $BROWSER_VERSION."
    echo "export CHROME_PATH=\"$BROWSER\""
    echo "export CHROMEDRIVER=\"$DRIVER\""
    [ -z "$SHELL_PATH" ] || echo "export CHROME_SHELL_PATH=\"$SHELL_PATH\""
  } >"$TOOLS/browser-env.new"
  mv "$TOOLS/browser-env.new" "$TOOLS/browser-env"
}

find_firefox() { first_of "${FIREFOX_PATH:-}" firefox-esr firefox "/Applications/Firefox.app/Contents/MacOS/firefox" || true; }

prepare_firefox() {
  [ -z "${FIREFOX_PATH:-}" ] || command -v "$FIREFOX_PATH" >/dev/null || fail "FIREFOX_PATH is '$FIREFOX_PATH', which is no program"
  local firefox
  firefox=$(find_firefox)
  if [ -z "$(version_of "$firefox")" ]; then
    command -v apt-get >/dev/null || fail "there is no Firefox, and no apt-get to install it: install it, or set FIREFOX_PATH"
    read_lists
    slowly "installing Firefox (70 MB)" apt_install firefox-esr
    firefox=$(find_firefox)
    [ -n "$(version_of "$firefox")" ] || fail "apt installed no Firefox that starts; install one and set FIREFOX_PATH"
  fi
  {
    echo "# Written by js/scripts/toolchain.sh."
    echo "export FIREFOX_PATH=\"$firefox\""
  } >"$TOOLS/firefox-env.new"
  mv "$TOOLS/firefox-env.new" "$TOOLS/firefox-env"
}

# The paths are those of Debian and Ubuntu, Fedora, and Arch.
find_webkit() {
  WEBKIT_DRIVER=$(first_of "${WEBKIT_DRIVER:-}" WebKitWebDriver || true)
  WEBKIT_PATH=$(first_of "${WEBKIT_PATH:-}" /usr/lib/*/webkit2gtk-4.1/MiniBrowser /usr/libexec/webkit2gtk-4.1/MiniBrowser /usr/lib/webkit2gtk-4.1/MiniBrowser || true)
  XVFB=$(first_of "${XVFB:-}" Xvfb || true)
}

webkit_complete() { [ -n "$WEBKIT_DRIVER" ] && [ -n "$WEBKIT_PATH" ] && [ -n "$XVFB" ]; }

# Unlike the other browsers, WebKitGTK exists for Linux only, and not in every distribution. Where it is missing, its tests are skipped.
prepare_webkit() {
  local missing=
  find_webkit
  if ! webkit_complete; then
    if ! command -v apt-get >/dev/null; then
      missing="this system has no WebKitWebDriver with MiniBrowser and Xvfb, and no apt-get to install them"
    else
      read_lists
      if [ -z "$(apt-cache policy webkit2gtk-driver | sed -n 's/^ *Candidate: *\([0-9].*\)/\1/p')" ]; then
        missing="this system has no package webkit2gtk-driver"
      else
        slowly "installing WebKitGTK and Xvfb (70 MB)" apt_install webkit2gtk-driver xvfb
        find_webkit
        webkit_complete || fail "apt installed no WebKitGTK that the tests can use (driver ${WEBKIT_DRIVER:-none}, browser ${WEBKIT_PATH:-none}, Xvfb ${XVFB:-none})"
      fi
    fi
  fi
  {
    echo "# Written by js/scripts/toolchain.sh."
    if [ -n "$missing" ]; then
      say "$missing: the tests leave WebKit out"
      echo "export WEBKIT_MISSING=\"$missing\""
    else
      echo "export WEBKIT_DRIVER=\"$WEBKIT_DRIVER\""
      echo "export WEBKIT_PATH=\"$WEBKIT_PATH\""
      echo "export XVFB=\"$XVFB\""
    fi
  } >"$TOOLS/webkit-env.new"
  mv "$TOOLS/webkit-env.new" "$TOOLS/webkit-env"
}

mkdir -p "$TOOLS"
# The lock keeps two runs from writing the same files. macOS has no flock, and there the risk is small.
if command -v flock >/dev/null; then
  exec 9>"$TOOLS/lock"
  flock -n 9 || { say "waiting for another run of this script"; flock 9; }
fi
for part in "${@:-wasm}"; do
  case $part in
    wasm) prepare_wasm ;;
    browser) prepare_browser ;;
    firefox) prepare_firefox ;;
    webkit) prepare_webkit ;;
    *) fail "unknown argument '$part'; it may be wasm, browser, firefox or webkit" ;;
  esac
done
