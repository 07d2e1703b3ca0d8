#!/bin/sh
# Like rustc-tests.sh, and lints what it compiles: clippy's compiler takes the place of rustc. So the tests and what they lint are compiled once, not twice.
# Lints are warnings here, whatever Cargo.toml says, so that tests still run; js/scripts/test.mjs counts them as a failure.
# On the host, the crate itself is left to rustc, because clippy switches some optimisations off. Its unit tests hold the same code.
folder=$(dirname "$0")
case " $* " in
  *" --test "* | *" --target wasm32-"*) exec "$folder/rustc-tests.sh" clippy-driver "$@" --cap-lints warn ;;
esac
exec "$@"
