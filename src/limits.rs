//! Every constant of the engine. Constants of the server keep the server's parameter name in their comment.

/// Maximum number of measurements in a bucket (`timeseriesBucketMaxCount`).
pub const BUCKET_COUNT_MAX: usize = 1000;
/// Maximum number of measurements in any bucket, imported ones included: row numbers have at most six digits.
pub const BUCKET_ROWS_MAX: usize = 1_000_000;
/// Target size of a bucket (`timeseriesBucketMaxSize`), 125 KiB.
pub const BUCKET_SIZE_BYTES_MAX: usize = 128_000;
/// Below this many measurements a bucket may exceed its target size to take large measurements
/// (`timeseriesBucketMinCount`).
pub const BUCKET_COUNT_MIN: usize = 10;
/// Absolute maximum of a bucket with large measurements: 16 MiB - 4 MiB.
pub const LARGE_BUCKET_SIZE_BYTES_MAX: usize = 12_582_912;
/// Lower limit for the target size of a bucket when its share of the cache shrinks (`timeseriesBucketMinSize`).
pub const BUCKET_SIZE_BYTES_MIN: usize = 5120;
/// Cells above this size count towards the size of a bucket uncompressed (`timeseriesLargeMeasurementThreshold`).
pub const LARGE_MEASUREMENT_BYTES: usize = 32;
/// Above this much catalog memory, idle buckets are archived (`timeseriesIdleBucketExpiryMemoryUsageThreshold`), 16
/// MiB.
pub const CATALOG_MEMORY_BYTES_MAX: usize = 16 << 20;
/// Idle buckets archived at a time, less one (`timeseriesIdleBucketExpiryMaxCountPerAttempt`).
pub const IDLE_EXPIRY_COUNT_MAX: usize = 3;
/// Ids drawn for a new bucket before giving up (`timeseriesInsertMaxRetriesOnDuplicates`).
pub const DUPLICATE_RETRIES_MAX: usize = 10;
/// Bytes that active buckets share: the more of them there are, the smaller each stays (`cacheBytes`), 256 MiB.
pub const CACHE_BYTES: usize = 256 << 20;
/// Maximum size of a user's document.
pub const DOCUMENT_SIZE_BYTES_MAX: usize = 16_777_216;
/// Maximum nesting of documents and arrays.
pub const DOCUMENT_DEPTH_MAX: usize = 180;
/// Maximum span of a bucket: 365 days.
pub const BUCKET_SPAN_SECONDS_MAX: i64 = 31_536_000;
/// Dates above this (or below zero) are *extended range*: bucket ids no longer sort by time.
pub const STANDARD_DATE_MS_MAX: i64 = 2_147_483_647_000;
/// Dates of JavaScript lie within this many milliseconds of the epoch.
pub const JS_DATE_MS_MAX: i64 = 8_640_000_000_000_000;

/// Maximum rows of a block.
pub const BLOCK_ROWS_MAX: usize = 1 << 24;
/// Maximum columns of a block.
pub const BLOCK_COLUMNS_MAX: usize = 65_535;

/// Maximum bytes that one compressed column may decode to for strings, mixed values and objects, 64 MiB (I1). A few
/// bytes of a column can stand for thousands of objects; a healthy bucket stays far below.
pub const COLUMN_SIZE_BYTES_MAX: usize = 64 << 20;

/// Maximum number of nulls with which an update fills the gap between the end of an array and a new element.
pub const ARRAY_PADDING_MAX: usize = 1_500_000;

/// Maximum statements in one write command.
pub const WRITE_BATCH_COUNT_MAX: usize = 100_000;
/// Documents in a first batch when `batchSize` is not given.
pub const FIRST_BATCH_COUNT: usize = 101;
/// Measurements that an explained find holds before it discards them.
pub const FORGOTTEN_BATCH_ROWS: usize = 10_000;
/// Maximum number of live queries of a context.
pub const LIVE_QUERIES_MAX: usize = 1000;
/// What a live query may keep. Beyond that it runs again.
pub const LIVE_QUERY_SIZE_BYTES_MAX: usize = 16 << 20;
/// What all live queries of a context may keep together.
pub const LIVE_SIZE_BYTES_MAX: usize = 64 << 20;
/// Maximum bytes that a stage of a pipeline holds (`internalDocumentSourceGroupMaxMemoryBytes`), 100 MiB.
pub const STAGE_SIZE_BYTES_MAX: usize = 100 << 20;
/// Maximum rows per key for which only one end of the time range is read.
pub const EDGE_ROWS_MAX: usize = 100;
/// Maximum rows that a `$densify` makes (`internalQueryMaxAllowedDensifyDocs`).
pub const DENSIFIED_ROWS_MAX: usize = 500_000;
/// Bytes after which a batch is cut.
pub const BATCH_SIZE_BYTES_MAX: usize = DOCUMENT_SIZE_BYTES_MAX;
/// How long the engine works before the event loop of the host gets a turn: half the time of a frame.
pub const TURN_MS: f64 = 8.0;
/// If no command began for this long, the event loop is taken to have had its turn.
pub const IDLE_MS: f64 = 100.0;
/// From so many bytes on, the event loop gets a turn between the making of a payload and its command.
pub const LARGE_PAYLOAD_BYTES: usize = 1 << 20;
/// The amount of work between two looks at the clock, in rows, if each takes less than a microsecond or two; less if they take longer.
pub const LOOK_WORK: usize = 1024;
/// What a bucket counts as.
pub const BUCKET_WORK: usize = 128;

/// So many rows of an insert get their buckets before the event loop may have a turn.
pub const STAGED_ROWS_MAX: usize = 8192;
/// So many bytes of journal records are decoded before the event loop may have a turn.
pub const FETCHED_RECORDS_BYTES: usize = 128 << 10;
/// So many sections of journal records are sorted into their buckets before the event loop may have a turn.
pub const SORTED_SECTIONS_MAX: usize = 8192;
/// Work of bringing a live query up to date, apart from its rows.
pub const LIVE_QUERY_WORK: usize = 32;

/// An idle cursor is dropped after this long: ten minutes.
pub const CURSOR_IDLE_MS_MAX: i64 = 600_000;
/// A cursor is dropped this long after it was opened, as a server drops those of a session that is not renewed: half an
/// hour. Buckets remember for this long which journal records they hold.
pub const CURSOR_AGE_MS_MAX: i64 = 1_800_000;

/// An index that is still incomplete this long after its build began counts as abandoned: half an hour.
pub const INDEX_BUILD_MS_MAX: i64 = 1_800_000;
/// A `$out` that has not ended after this long counts as abandoned.
pub const REPLACEMENT_MS_MAX: i64 = 1_800_000;

/// With `dedupe`, a full bucket takes late rows until it has this many times as many rows as it takes in order.
pub const LATE_ROWS_FACTOR: usize = 8;

/// Stored values stay below this if possible: an IndexedDB put takes three times as long from 64 KiB on, and Deno KV
/// refuses more.
pub const VALUE_SIZE_BYTES_SOFT_MAX: usize = 60 * 1024;
/// A context's journal is folded into buckets when its rows exceed this many bytes in memory. A fold rewrites the open
/// bucket of every series that it meets, so fewer and larger folds write less. But the context that opens the
/// database next decodes everything that is not folded.
pub const JOURNAL_SIZE_BYTES_MAX: usize = 24 << 20;
/// It is also folded when it has this many records: each is a key, which every other context decodes, and the one that
/// opens the database next.
pub const JOURNAL_RECORDS_MAX: usize = 512;
/// But not as long as the fold would rewrite more than this many bytes of stored buckets per row: a row that is
/// inserted alone then takes less than 300 bytes, its record included.
pub const FOLD_BYTES_A_ROW_MAX: usize = 40;
/// From this many records on, a fold may rewrite `FOLD_FACTOR_OF_MANY` times as much, because the next context
/// to open the database decodes them all.
pub const JOURNAL_RECORDS_MANY: usize = 16_384;
/// See `JOURNAL_RECORDS_MANY`.
pub const FOLD_FACTOR_OF_MANY: usize = 3;
/// The assumed size of a stored bucket that memory no longer holds.
pub const UNKNOWN_BUCKET_BYTES: usize = 4096;
/// Maximum bytes of journal rows kept as columns of their buckets between queries. Beyond that, each query builds its
/// own columns.
pub const TAILS_SIZE_BYTES_MAX: usize = 2 * JOURNAL_SIZE_BYTES_MAX;
/// Maximum number of sections of a bucket that are not in its tail yet, for a filter to ask their records first.
pub const SIEVE_SECTIONS_MAX: usize = 16;
/// Minimum number of series of a record that is asked as a whole.
pub const SIEVE_SERIES_MIN: usize = 8;
/// Maximum number of records that a query asks as a whole.
pub const SIEVE_RECORDS_MAX: usize = 64;
/// Buckets that one changeset of a fold writes. Inserts wait while it is written.
pub const FOLD_STEP_BUCKETS: usize = 48;
/// Journal rows that one changeset of a fold writes.
pub const FOLD_STEP_ROWS: usize = 6000;
/// An insert waits for the running fold when the journal exceeds its limit by this factor.
pub const JOURNAL_BACKPRESSURE_FACTOR: usize = 4;
/// Attempts of anything that a write conflict can send back (`timeseriesMaxRetriesForWriteConflictsOnReopening`).
pub const WRITE_CONFLICT_RETRIES_MAX: usize = 16;
/// Attempts of a fold or a delete. Each conflict is a change that somebody else has committed, so the contexts together
/// make progress.
pub const CHANGE_CONFLICTS_MAX: usize = 1000;
/// A query for at most this many rows fetches a few buckets first.
pub const FEW_ROWS_MAX: u64 = 4000;
/// Maximum rows of a sort with a limit that skips buckets which cannot contain any of them.
pub const THRESHOLD_ROWS_MAX: usize = 1000;
/// Maximum rows of a sort with a limit that holds buckets, and decodes the columns that are only returned at its end.
pub const LATE_ROWS_MAX: usize = 128;
/// Number of these buckets that are decoded without a pause.
pub const LATE_BUCKETS_AT_ONCE: usize = 4;
/// Buckets of the first page of a query that probably needs only a few.
pub const FIRST_PAGE_BUCKETS: usize = 4;
/// Keys listed with one storage call.
pub const KEYS_PAGE: usize = 16_384;
/// Buckets fetched with one storage call.
pub const SCAN_PAGE_BUCKETS: usize = 256;
/// Rows that a pipeline joins from several buckets before its first stage takes them.
pub const ROWS_TOGETHER: usize = 4096;
/// Bytes of them at which it does not wait for more.
pub const ROWS_TOGETHER_SIZE_BYTES_MAX: usize = 4 << 20;
/// Rows of a pipeline whose buckets are read one by one, before the rows of several stored buckets are taken at once.
pub const JOINED_ROWS_FROM: u64 = 256;
/// The rows of buckets that match in part are taken at once if in at least one in so many of them a row has matched so far.
pub const JOINED_BUCKETS_SHARE: u64 = 2;
/// A bucket with at most so many rows costs a query more than these rows do.
pub const SMALL_BUCKET_ROWS: usize = 128;
/// Of fewer groups of the journals, a look at each takes no longer than their records.
pub const RECORD_GROUPS_MIN: usize = 32;
/// Maximum buckets of a run, whose rows are taken without a look at them.
pub const RUN_BUCKETS_MAX: usize = 1024;
/// A run ends behind one in so many buckets, whatever was before it, so that scans that begin elsewhere find the same runs.
pub const RUN_ENDS_AT: u64 = 1024;
/// Most buckets among which runs are looked for at once, from the cache or from storage.
pub const RUN_PAGE_BUCKETS: usize = 2048;
/// Maximum runs that are remembered, which take up to 5 KB each beside their columns.
pub const RUNS_MAX: usize = 1024;
/// Maximum indexes of a collection.
pub const INDEXES_MAX: usize = 64;
/// Maximum parts of a key over buckets.
pub const INDEX_FIELDS_MAX: usize = 32;
/// Maximum `expireAfterSeconds` of an index.
pub const TTL_SECONDS_MAX: i64 = i32::MAX as i64;
/// A query that reads so many buckets of series which do not match makes a page load the second half of the module, which
/// chooses buckets by their series.
pub const MISSED_BUCKETS_MIN: u64 = 64;
/// The second query that decodes so many buckets makes it load that half as well, which keeps decoded columns in memory.
pub const DECODED_BUCKETS_MIN: u64 = 64;
/// So many keys listed from the end of a collection count as one such bucket.
pub const KEYS_A_MISS: u64 = 16;
/// Bytes of stored buckets and of their decoded columns that stay in memory (`readCacheBytes`), 96 MiB.
pub const READ_CACHE_BYTES: usize = 96 << 20;

/// How much of `readCacheBytes` is for stored buckets, those written or read last: 38 of 96 MiB, at three bytes a point
/// over twelve million points.
pub const fn bucket_cache_bytes(read_cache_bytes: usize) -> usize {
    read_cache_bytes / 5 * 2
}

/// How much of this one scan may fill. A longer scan leaves room for the buckets that are being filled, and finds its
/// own first buckets when it runs again.
pub const fn scan_cache_bytes(read_cache_bytes: usize) -> usize {
    bucket_cache_bytes(read_cache_bytes) / 2
}

/// Ranges of buckets, of one collection or of several, of which is known that all stored buckets in them are in memory.
pub const COVERED_RANGES_MAX: usize = 16;

/// How much of `readCacheBytes` is for the decoded columns of these buckets: 57 of 96 MiB, seven million doubles.
pub const fn kept_columns_bytes(read_cache_bytes: usize) -> usize {
    read_cache_bytes / 5 * 3
}

/// Stored buckets examined for each series that asks for a bucket to reopen.
pub const REOPEN_CANDIDATES_MAX: usize = 4;
/// Buckets of a collection whose series is kept in memory, at 24 bytes each.
pub const DIRECTORY_BUCKETS_MAX: usize = 1 << 18;
/// Up to this many buckets from an index are fetched without knowing to which series they belong.
pub const UNLISTED_BUCKETS_MAX: usize = 64;
/// Maximum number of keys of the default index listed per bucket that another index has named, or that is in memory.
/// Beyond it, reading the buckets is faster than finding out their series.
pub const LISTED_KEYS_A_BUCKET: usize = 4;
/// Maximum number of keys of the default index listed to know the series of a collection's buckets, if few of them are in
/// memory. A collection with more is not asked again.
pub const LISTED_KEYS_MAX: usize = 4096;
/// How far back the first part of a range reaches that is listed from its end, as a multiple of the longest span of a bucket.
pub const FIRST_PART_SPANS: i64 = 4;
/// Keys listed at once to find out where the data of a collection ends: first, in case that these are all of them.
pub const FIRST_END_KEYS: usize = 1024;
/// The same, later.
pub const END_KEYS: usize = 256;
/// With fewer buckets than half of this in a range, they are read without listing the series of a collection.
pub const LISTED_SERIES_MIN: usize = 64;
/// With more series than this, buckets are read from storage without choosing among them by their series.
pub const NARROWED_SERIES_MAX: usize = 1024;
/// Up to this many groups of the journals are tried one by one, instead of finding out their series.
pub const TRIED_GROUPS_MAX: usize = 16;
/// Maximum number of series whose metadata is kept in memory.
pub const KNOWN_SERIES_MAX: usize = 1 << 16;
/// Maximum bytes of this metadata.
pub const KNOWN_SERIES_BYTES_MAX: usize = 8 << 20;
/// Maximum number of fields of metadata whose values are kept in memory by series.
pub const KNOWN_FIELDS_MAX: usize = 8;
/// Maximum bytes of buckets held by a query for the newest row of each series. Beyond it, the buckets are read page by
/// page.
pub const NEWEST_SIZE_BYTES_MAX: usize = 16 << 20;
/// Buckets examined per series, one after another, for a row that matches, before all are read page by page.
pub const NEWEST_DEPTH_MAX: usize = 8;
/// Maximum findings that one `validate` lists; it counts all of them.
pub const FINDINGS_MAX: usize = 1000;
/// Minimum milliseconds between two passes of retention in a context.
pub const EXPIRE_INTERVAL_MS: i64 = 60_000;
/// Maximum length of a full collection name, database and `.system.buckets.` included.
pub const NAMESPACE_LENGTH_BYTES_MAX: usize = 255;
/// Prefixes of filter operators whose code `Env::complete` loads.
pub const RARE_OPERATORS: [&str; 4] = ["$geo", "$within", "$jsonSchema", "$_internalBucketGeo"];
/// Operators of expressions, or prefixes of their names, that need the second half of the module for decimals only.
#[rustfmt::skip]
pub const DECIMAL_OPERATORS: [&str; 11] = [
    "$add", "$subtract", "$multiply", "$divide", "$mod", "$abs", "$ceil", "$floor", "$sqrt", "$trunc", "$round",
];
