#!/bin/sh
# Compiles tests for cargo, which runs this script in place of rustc (build.rustc-workspace-wrapper). Test programs are not optimised. The crate that
# they call is optimised as the profile says. Cargo itself has one level for all targets of a package. With optimisation, most programs take three times as long to
# compile, and run hardly faster.
case " $* " in
  # Random tests run long enough to be worth level 1. At level 2 they take twice as long to compile, and `generated` runs no
  # faster.
  *" --crate-name generated "* | *" --crate-name histories "*) set -- "$@" -Copt-level=1 ;;
  *" --test "*) set -- "$@" -Copt-level=0 ;;
esac
exec "$@"
