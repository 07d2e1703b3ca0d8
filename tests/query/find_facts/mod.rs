//! The facts that the server's own tests of queries on time-series collections state, as far as `find` can be asked for them.

mod dates;
mod expressions;
mod fixed_buckets;
mod forms;
mod limits;
mod placements;
mod projections;
mod sorts;
mod times;
mod values;
