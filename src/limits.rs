//! Every constant of the engine, in one place, under the field's names.

/// Most measurements a bucket holds (`timeseriesBucketMaxCount`).
pub const BUCKET_COUNT_MAX: usize = 1000;
/// Most measurements any bucket can hold: rows are counted in that many digits.
pub const BUCKET_ROWS_MAX: usize = 1_000_000;
/// Most bytes a bucket is meant to hold (`timeseriesBucketMaxSize`), 125 KiB.
pub const BUCKET_SIZE_BYTES_MAX: usize = 128_000;
/// Below this many measurements a bucket may pass its size for the sake of large measurements (`timeseriesBucketMinCount`).
pub const BUCKET_COUNT_MIN: usize = 10;
/// Absolute cap of a bucket with large measurements: 16 MiB - 4 MiB.
pub const LARGE_BUCKET_SIZE_BYTES_MAX: usize = 12_582_912;
/// Least size of a bucket that the share of the cache is divided down to (`timeseriesBucketMinSize`).
pub const BUCKET_SIZE_BYTES_MIN: usize = 5120;
/// Cells above this count towards the size of a bucket as they are (`timeseriesLargeMeasurementThreshold`).
pub const LARGE_MEASUREMENT_BYTES: usize = 32;
/// Above this much memory of the catalogs idle buckets are put aside (`timeseriesIdleBucketExpiryMemoryUsageThreshold`), 16 MiB.
pub const CATALOG_MEMORY_BYTES_MAX: usize = 16 << 20;
/// Buckets put aside at a time, less one (`timeseriesIdleBucketExpiryMaxCountPerAttempt`).
pub const IDLE_EXPIRY_COUNT_MAX: usize = 3;
/// Ids drawn for a new bucket before giving up (`timeseriesInsertMaxRetriesOnDuplicates`).
pub const DUPLICATE_RETRIES_MAX: usize = 10;
/// Bytes that active buckets share: with many of them each may grow less (`cacheBytes`), 256 MiB.
pub const CACHE_BYTES: usize = 256 << 20;
/// Largest document of a user.
pub const DOCUMENT_SIZE_BYTES_MAX: usize = 16_777_216;
/// Deepest nesting of documents and arrays.
pub const DOCUMENT_DEPTH_MAX: usize = 180;
/// Longest span of a bucket: 365 days.
pub const BUCKET_SPAN_SECONDS_MAX: i64 = 31_536_000;
/// Dates above this (or below zero) are *extended range*: bucket ids no longer sort by time.
pub const STANDARD_DATE_MS_MAX: i64 = 2_147_483_647_000;
/// Dates a JavaScript `Date` can hold lie within this many milliseconds of the epoch.
pub const JS_DATE_MS_MAX: i64 = 8_640_000_000_000_000;

/// Rows of a block.
pub const BLOCK_ROWS_MAX: usize = 1 << 24;
/// Columns of a block.
pub const BLOCK_COLUMNS_MAX: usize = 65_535;

/// Most bytes that reading a compressed column may bring forth for strings, mixed values and objects, 64 MiB. A few bytes of a
/// column can stand for thousands of objects; a healthy bucket stays far below.
pub const COLUMN_SIZE_BYTES_MAX: usize = 64 << 20;

/// Elements that an update puts between the end of an array and a new one.
pub const ARRAY_PADDING_MAX: usize = 1_500_000;

/// Statements in one write command.
pub const WRITE_BATCH_COUNT_MAX: usize = 100_000;
/// Documents in a first batch when `batchSize` is not given.
pub const FIRST_BATCH_COUNT: usize = 101;
/// Measurements that a find which is only explained holds before it forgets them.
pub const FORGOTTEN_BATCH_ROWS: usize = 10_000;
/// Most bytes that a stage of a pipeline holds (`internalDocumentSourceGroupMaxMemoryBytes`), 100 MiB.
pub const STAGE_SIZE_BYTES_MAX: usize = 100 << 20;
/// Most rows of a key that are looked for at one end of the times alone.
pub const EDGE_ROWS_MAX: usize = 100;
/// Most rows that a `$densify` makes (`internalQueryMaxAllowedDensifyDocs`).
pub const DENSIFIED_ROWS_MAX: usize = 500_000;
/// Bytes after which a batch is cut.
pub const BATCH_SIZE_BYTES_MAX: usize = DOCUMENT_SIZE_BYTES_MAX;
/// A cursor that nobody asked for this long is dropped: ten minutes.
pub const CURSOR_IDLE_MS_MAX: i64 = 600_000;
/// A cursor that was opened longer ago is dropped, as a server drops those of a session that was not renewed: half an hour. For so long
/// buckets say which journal records they hold.
pub const CURSOR_AGE_MS_MAX: i64 = 1_800_000;

/// An index that is not complete so long after it was begun is not built by anybody any longer: half an hour.
pub const INDEX_BUILD_MS_MAX: i64 = 1_800_000;
/// After so long a `$out` that has not ended was broken off.
pub const REPLACEMENT_MS_MAX: i64 = 1_800_000;

/// Values stay under this where possible: an IndexedDB put costs twice as much at 64 KiB, and Deno KV refuses more.
pub const VALUE_SIZE_BYTES_SOFT_MAX: usize = 60 * 1024;
/// A context's journal is folded into buckets when its rows pass this many bytes in memory. A fold rewrites the open bucket of every series it
/// meets, so fewer and larger folds write less; what is not folded is decoded by whoever opens the database next.
pub const JOURNAL_SIZE_BYTES_MAX: usize = 24 << 20;
/// It is folded as well when it has so many records: each is a key, and is decoded by every other context and by whoever opens the
/// database next.
pub const JOURNAL_RECORDS_MAX: usize = 512;
/// But not as long as that would write more bytes of stored buckets anew, for each row: with its record a row that is inserted alone then
/// takes less than 300 bytes.
pub const FOLD_BYTES_A_ROW_MAX: usize = 40;
/// From so many records on a fold may write `FOLD_FACTOR_OF_MANY` times as much: whoever opens the database has to decode them all.
pub const JOURNAL_RECORDS_MANY: usize = 16_384;
/// See `JOURNAL_RECORDS_MANY`.
pub const FOLD_FACTOR_OF_MANY: usize = 3;
/// A stored bucket that memory no longer holds is taken for that long.
pub const UNKNOWN_BUCKET_BYTES: usize = 4096;
/// Rows of journals are kept as columns of their buckets, to be read again, up to so many bytes; of
/// those beyond, each query makes its own.
pub const TAILS_SIZE_BYTES_MAX: usize = 2 * JOURNAL_SIZE_BYTES_MAX;
/// Buckets that one changeset of a fold writes: inserts wait while it is written.
pub const FOLD_STEP_BUCKETS: usize = 48;
/// Journal rows that one changeset of a fold writes.
pub const FOLD_STEP_ROWS: usize = 6000;
/// An insert waits for the running fold when the journal is this many times over its bound.
pub const JOURNAL_BACKPRESSURE_FACTOR: usize = 4;
/// Attempts of anything that a write conflict can send back (`timeseriesMaxRetriesForWriteConflictsOnReopening`).
pub const WRITE_CONFLICT_RETRIES_MAX: usize = 16;
/// Attempts of a fold or a delete: each conflict is a change that somebody else has made meanwhile, so that all together go on.
pub const CHANGE_CONFLICTS_MAX: usize = 1000;
/// Of a query for at most so many rows a few buckets are fetched first.
pub const FEW_ROWS_MAX: u64 = 4000;
/// Most rows of a sort with a limit for which buckets that cannot be among them are left out undecoded.
pub const THRESHOLD_ROWS_MAX: usize = 1000;
/// Buckets fetched first where most likely a few of them do.
pub const FIRST_PAGE_BUCKETS: usize = 4;
/// Keys listed with one storage call.
pub const KEYS_PAGE: usize = 16_384;
/// Buckets fetched with one storage call.
pub const SCAN_PAGE_BUCKETS: usize = 256;
/// Most indexes of a collection.
pub const INDEXES_MAX: usize = 64;
/// Most parts of a key over buckets.
pub const INDEX_FIELDS_MAX: usize = 32;
/// Most seconds after which an index may let buckets go.
pub const TTL_SECONDS_MAX: i64 = i32::MAX as i64;
/// Stored buckets that stay in memory, in bytes: those that were written or read last. At three bytes a point that is a million.
pub const BUCKET_CACHE_BYTES_MAX: usize = 8 << 20;
/// Of these, what one scan may bring: a longer one leaves room for the buckets that are being filled, and meets its beginning again.
pub const SCAN_CACHE_BYTES_MAX: usize = BUCKET_CACHE_BYTES_MAX / 2;
/// Stored buckets that are looked at for one series that asks for a bucket to reopen.
pub const REOPEN_CANDIDATES_MAX: usize = 4;
/// Buckets of a collection of which it is kept in memory to which series they belong, at 24 bytes each.
pub const DIRECTORY_BUCKETS_MAX: usize = 1 << 17;
/// Buckets that an index has named of which it is not asked to which series they belong, where nobody knows.
pub const UNLISTED_BUCKETS_MAX: usize = 64;
/// Most bytes of buckets that are held of a query for the newest of each series; where there is more, the buckets are read page by page.
pub const NEWEST_SIZE_BYTES_MAX: usize = 16 << 20;
/// Buckets of a series that are looked at, one behind the other, for a row that matches, before all are read page by page.
pub const NEWEST_DEPTH_MAX: usize = 8;
/// Findings that one `validate` lists; it counts all of them.
pub const FINDINGS_MAX: usize = 1000;
/// A context looks for expired buckets at most this often.
pub const EXPIRE_INTERVAL_MS: i64 = 60_000;
/// Longest full collection name, database and `.system.buckets.` included.
pub const NAMESPACE_LENGTH_BYTES_MAX: usize = 255;
/// Beginnings of the operators of filters whose code `Env::complete` brings.
pub const RARE_OPERATORS: [&str; 3] = ["$geo", "$within", "$jsonSchema"];
/// Operators of expressions that the second half of the module has for decimals alone, or what their names begin with.
#[rustfmt::skip]
pub const DECIMAL_OPERATORS: [&str; 11] = [
    "$add", "$subtract", "$multiply", "$divide", "$mod", "$abs", "$ceil", "$floor", "$sqrt", "$trunc", "$round",
];
