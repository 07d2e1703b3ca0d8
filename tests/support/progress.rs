//! The progress of long runs of random tests, for `make soak`.

/// Prints a line after each tenth of the cases. Tests of `make test` do not show it, since their output is captured.
pub fn progress(name: &str, done: u64, count: u64) {
    let tenth = (count / 10).max(1);
    if done > 0 && done.is_multiple_of(tenth) {
        println!("{name}: {done} of {count}");
    }
}
