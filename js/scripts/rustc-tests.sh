#!/bin/sh
# Compiles tests for cargo, which runs this script in place of rustc (build.rustc-workspace-wrapper). Test programs are not optimised; the crate that they
# call is, as the profile says. Cargo has one level for all targets of a package. Optimised, most programs take three times as long to compile, and run hardly
# faster.
case " $* " in
  # Random tests run long enough to be worth a little. At level 2 they compile twice as long, and `generated` runs no
  # faster.
  *" --crate-name generated "* | *" --crate-name histories "*) set -- "$@" -Copt-level=1 ;;
  *" --test "*) set -- "$@" -Copt-level=0 ;;
esac
exec "$@"
