//! The floor that awaits storage: namespaces, commits, folds, reads, cursors.
//!
//! `Engine` is declared here, and each room adds methods to it. A room calls only rooms below it;
//! `docs/internals/rooms.md` lists them.
//!
//! **A commit writes journal records; a fold turns them into bucket documents; a read merges both.**
//! State is consistent at every await, and nothing is borrowed across one (I5).

mod buckets;
mod change;
mod collections;
mod dedupe;
pub mod expire;
mod find;
mod indexes;
mod insert;
mod journal;
mod live;
mod maintenance;
mod pipeline;
mod read;
mod replace;
pub mod sizes;
pub mod status;
mod store;
pub mod validate;

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::bucket::BucketFormat;
use crate::catalog::{CatalogOptions, Totals};
use crate::env::Env;
use crate::error::{Error, ErrorCode, Result};
use crate::limits::MISSED_BUCKETS_MIN;
use crate::query::Globals;
use crate::storage::Storage;
use crate::value::{Collation, Value};

pub use change::statements::{ChangeKind, MeasurementChange};
pub use collections::collection::Collection;
use find::cursor::Cursors;
pub use find::planned::{Defaults, ParseFind, ParsePipeline, PlannedQuery};
use find::series::Series;
pub use indexes::Dropped;
pub use live::{LiveBatch, LiveInfo, LiveNews, LiveSpec};
use store::bucket_cache::BucketCache;
pub use store::entry::CollectionEntry;
use store::keyspace::{CollectionId, ContextId};
use store::sorted_map::SortedMap;
use store::turns::Turns;
pub use store::{keyspace, signal, stored_bucket};

/// One database in one context: a tab, a worker, a process.
pub struct Engine {
    name: String,
    storage: Rc<dyn Storage>,
    env: Rc<dyn Env>,
    context: ContextId,
    /// The seq of the next journal record, for all collections: with `$out`, a collection may take the place of another one,
    /// journal included.
    next_seq: Cell<u64>,
    bucket_format: BucketFormat,
    catalog_options: CatalogOptions,
    is_strict: bool,
    expires_by_command: bool,
    collections: RefCell<SortedMap<String, Rc<Collection>>>,
    cursors: RefCell<Cursors>,
    /// The live queries of `engine::live`. Their type is hidden, so that the code that opens and closes engines does not
    /// contain the code that drops them.
    live: RefCell<Option<Rc<dyn Any>>>,
    buckets: RefCell<BucketCache>,
    /// The metadata of series that queries have read.
    series: RefCell<Vec<Rc<Series>>>,
    /// Collections with too many buckets to list the series of all of them.
    unlisted: RefCell<Vec<(CollectionId, usize)>>,
    /// Totals over the catalogs of all collections.
    totals: Rc<Totals>,
    turns: Turns,
    closed: Cell<bool>,
    opened_ms: i64,
    /// When this context last began a pass of retention.
    last_expiry_ms: Cell<Option<i64>>,
    /// The most buckets of series that do not match which a query has read; `None` once that was told.
    missed_buckets: Cell<Option<u64>>,
    /// True once a query has decoded many buckets.
    has_decoded: Cell<bool>,
}

impl Engine {
    /// An engine over `storage` that writes compressed buckets. `context` must be random, because it identifies the
    /// journals of this context.
    pub fn new(name: &str, storage: Rc<dyn Storage>, env: Rc<dyn Env>, context: ContextId) -> Engine {
        let opened_ms = env.now_ms();
        let catalog_options = CatalogOptions::default();
        Engine {
            name: name.to_owned(),
            storage,
            env,
            context,
            next_seq: Cell::new(0),
            bucket_format: BucketFormat::default(),
            catalog_options,
            is_strict: false,
            expires_by_command: false,
            collections: RefCell::default(),
            cursors: RefCell::default(),
            live: RefCell::default(),
            buckets: RefCell::new(BucketCache::new(catalog_options.read_cache_bytes)),
            series: RefCell::default(),
            unlisted: RefCell::default(),
            totals: Rc::default(),
            turns: Turns::default(),
            closed: Cell::new(false),
            opened_ms,
            last_expiry_ms: Cell::new(None),
            missed_buckets: Cell::new(Some(0)),
            has_decoded: Cell::new(false),
        }
    }

    /// The same engine, writing buckets in this format. It reads every format.
    pub fn with_bucket_format(self, bucket_format: BucketFormat) -> Engine {
        Engine { bucket_format, ..self }
    }

    /// The same engine with these settings for choosing buckets. Call it before the engine is used.
    pub fn with_catalog_options(self, catalog_options: CatalogOptions) -> Engine {
        let buckets = RefCell::new(BucketCache::new(catalog_options.read_cache_bytes));
        Engine { catalog_options, buckets, ..self }
    }

    /// The same engine, refusing filters that compare the time with values other than dates.
    pub fn with_strict(self, is_strict: bool) -> Engine {
        Engine { is_strict, ..self }
    }

    /// The same engine, in which only the command `expire` runs retention.
    pub fn with_expiry_by_command(self, expires_by_command: bool) -> Engine {
        Engine { expires_by_command, ..self }
    }

    /// True if filters that compare the time with values other than dates are refused.
    pub fn is_strict(&self) -> bool {
        self.is_strict
    }

    /// The settings for choosing buckets.
    pub fn catalog_options(&self) -> CatalogOptions {
        self.catalog_options
    }

    /// The database name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Milliseconds since the epoch.
    pub fn now_ms(&self) -> i64 {
        self.env.now_ms()
    }

    /// Loads the rarely used code, if it comes as a separate file.
    ///
    /// Errors: `OperationFailed` if it cannot be loaded.
    pub(crate) async fn complete(&self) -> Result<()> {
        self.env.complete().await.map_err(|why| Error::new(ErrorCode::OperationFailed, why))
    }

    /// True once, after a query that the second half of the module would have made faster: it chooses buckets by the
    /// metadata of their series, where without it each bucket is looked at, and keeps what was decoded.
    pub fn takes_rest(&self) -> bool {
        let is_wanted = self.missed_buckets.get().is_some_and(|missed| missed >= MISSED_BUCKETS_MIN);
        if is_wanted {
            self.missed_buckets.set(None);
        }
        is_wanted
    }

    /// The globals of a command that begins now: the clock, the host, no variables.
    pub fn globals(&self) -> Globals {
        Globals::new(&self.env)
    }

    /// The collation of a command, if it has one.
    ///
    /// Errors: as `Collation::parse_optional`.
    pub fn collation(&self, value: Option<Value<'_>>) -> Result<Option<Collation>> {
        // Loaded by now: the door awaits it for every command with a collation.
        Collation::parse_optional(value, &*self.env)
    }

    /// Refuses every further command.
    ///
    /// Errors: `InterruptedAtShutdown` after `close`.
    pub fn ensure_open(&self) -> Result<()> {
        if self.closed.get() {
            return Err(Error::new(ErrorCode::InterruptedAtShutdown, format!("Database '{}' was closed", self.name)));
        }
        Ok(())
    }
}
