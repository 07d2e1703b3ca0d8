//! Facts from the server's own tests of queries on time-series collections, as far as `find` can show them.

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
