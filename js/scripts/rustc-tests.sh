#!/bin/sh
# Compiles tests for cargo, which runs it in place of rustc (build.rustc-workspace-wrapper): test programs are not optimised, what they call is as the profile
# says. Cargo itself knows one level for all of a package; optimised, most programs take three times as long to compile and hardly less to run.
case " $* " in
  # Random tests run long enough to be worth it.
  *" --crate-name generated "* | *" --crate-name histories "*) ;;
  *" --test "*) exec "$@" -Copt-level=0 ;;
esac
exec "$@"
