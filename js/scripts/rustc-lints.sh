#!/bin/sh
# Like rustc-tests.sh, and lints what it compiles: clippy's compiler replaces rustc. So the same code is compiled once for tests and lints, not twice.
# Lints are warnings here, whatever Cargo.toml says, so that tests still run; js/scripts/test.mjs counts them as a failure.
# On the host, rustc compiles the crate itself, because clippy switches some optimisations off. The unit tests contain the same code, and are linted.
folder=$(dirname "$0")
case " $* " in
  *" --test "* | *" --target wasm32-"*) exec "$folder/rustc-tests.sh" clippy-driver "$@" --cap-lints warn ;;
esac
exec "$@"
