//! Open live queries.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::engine::Engine;
use crate::engine::collections::collection::Collection;
use crate::engine::find::planned::Defaults;
use crate::engine::find::queries::batch_size_of;
use crate::engine::journal::JournalMark;
use crate::engine::store::signal::Signal;
use crate::error::{Error, ErrorCode, Result};
use crate::limits::LIVE_QUERIES_MAX;
use crate::query::{Aggregation, CollectionFacts, Filter, Query, Standing};
use crate::value::Collation;

/// The live queries of a context.
#[derive(Default)]
pub(super) struct LiveQueries {
    pub open: RefCell<Vec<Rc<LiveQuery>>>,
    last: Cell<i32>,
}

/// A query to be kept open.
pub struct LiveSpec {
    /// The collection.
    pub name: String,
    /// True for its bucket documents.
    pub raw: bool,
    /// True if its result depends on the time or on chance.
    pub is_volatile: bool,
    /// The query, given the defaults of its collection.
    pub parse: Box<dyn Fn(Defaults<'_>) -> Result<Aggregation>>,
}

/// How a live query stays up to date.
pub struct LiveInfo {
    /// Its number.
    pub id: i32,
    /// True if new rows are added to what it keeps.
    pub takes_new_rows: bool,
    /// Why.
    pub why: &'static str,
}

pub(super) struct LiveQuery {
    pub id: i32,
    pub spec: LiveSpec,
    /// True if every refresh runs it again.
    pub is_volatile: bool,
    pub batch_size: usize,
    /// The running refresh.
    busy: RefCell<Option<Signal>>,
    /// What its last result was made of; `None` if it must run again.
    pub state: RefCell<Option<LiveState>>,
    pub size_bytes: Cell<usize>,
    /// From which record on it wants to know what was added to a journal.
    pub wants: RefCell<Option<(Rc<Collection>, u64)>>,
    /// True once it had to keep too much.
    pub is_too_large: Cell<bool>,
}

/// What the last result of a live query was made of.
pub(super) struct LiveState {
    /// True if it was read from buckets that may have changed meanwhile.
    pub is_read: bool,
    /// The collection, and what was known of it; `None` if there was no such collection.
    pub seen: Option<(Rc<Collection>, JournalMark)>,
    pub kept: LiveKept,
}

pub(super) enum LiveKept {
    /// New rows are added to this.
    Standing(Box<Standing>),
    /// Rows that do not match change nothing. Without a filter, any row may change the result.
    Filter(Option<Filter>),
}

/// The right to refresh a query. Others wait.
pub(super) struct RefreshTurn<'a> {
    query: &'a LiveQuery,
    signal: Signal,
}

impl Drop for RefreshTurn<'_> {
    fn drop(&mut self) {
        *self.query.busy.borrow_mut() = None;
        self.signal.resolve(Ok(()));
    }
}

impl LiveQuery {
    /// The refresh that runs now.
    pub fn running(&self) -> Option<Signal> {
        self.busy.borrow().clone()
    }

    /// Begins a refresh.
    pub fn turn(&self) -> RefreshTurn<'_> {
        let signal = Signal::new();
        *self.busy.borrow_mut() = Some(signal.clone());
        RefreshTurn { query: self, signal }
    }

    /// What to read once, and the query as it then takes new rows; otherwise the reason why it cannot.
    pub fn standing(&self, parsed: Aggregation, collection: &Collection) -> Result<(Query, Standing), &'static str> {
        match () {
            _ if self.spec.raw => Err("bucket documents change in other ways than by new rows"),
            _ if self.is_volatile => Err("its result depends on the time, on chance or on other collections"),
            _ if collection.dedupes() => Err("in a collection with dedupe a new row may replace an earlier one"),
            _ if parsed.find.hint.is_some() => Err("it has a hint"),
            _ if self.is_too_large.get() => Err("it would have to keep too many rows"),
            _ => {
                let facts =
                    CollectionFacts { time_field: collection.time_field(), meta_field: collection.meta_field() };
                Standing::begin(parsed, &facts)
            }
        }
    }
}

impl Engine {
    /// Opens a live query. Nothing is read yet.
    ///
    /// Errors: those of the query and of storage; `ExceededMemoryLimit` if too many are open.
    pub async fn open_live(&self, spec: LiveSpec) -> Result<LiveInfo> {
        let collection = self.collection(&spec.name).await?;
        let live = self.live();
        if live.open.borrow().len() >= LIVE_QUERIES_MAX {
            return Err(Error::new(ErrorCode::ExceededMemoryLimit, "Too many live queries are open"));
        }
        // Where a worker has taken the place of another, a number of the first one should be none of the second.
        let last = Some(live.last.get()).filter(|last| *last > 0);
        let last = last.unwrap_or_else(|| i32::try_from(self.env.random_u64() >> 34).unwrap_or_default());
        live.last.set(last + 1);
        let nothing = Collation::default();
        let parsed = match &collection {
            Some(collection) => (spec.parse)(collection.defaults(spec.raw)),
            None => (spec.parse)(Defaults::of_nothing(&nothing)),
        }?;
        let query = LiveQuery {
            id: live.last.get(),
            is_volatile: spec.is_volatile || parsed.source.is_some() || !parsed.others.is_empty(),
            batch_size: batch_size_of(&parsed.find),
            busy: RefCell::default(),
            state: RefCell::default(),
            size_bytes: Cell::new(0),
            wants: RefCell::default(),
            is_too_large: Cell::new(false),
            spec,
        };
        let standing = match &collection {
            Some(collection) => query.standing(parsed, collection),
            None => Err("there is no such collection yet"),
        };
        let (takes_new_rows, why) = match standing {
            Ok((_, standing)) if standing.keeps_groups() => (true, "new rows are added to its groups"),
            Ok(_) => (true, "new rows are put among those that it keeps"),
            Err(why) => (false, why),
        };
        let id = query.id;
        self.live().open.borrow_mut().push(Rc::new(query));
        Ok(LiveInfo { id, takes_new_rows, why })
    }

    /// The live queries.
    pub(super) fn live(&self) -> Rc<LiveQueries> {
        let mut slot = self.live.borrow_mut();
        let known = slot.get_or_insert_with(|| Rc::new(LiveQueries::default()));
        Rc::clone(known).downcast().unwrap_or_default()
    }

    /// The live query with this number.
    ///
    /// Errors: `CursorNotFound`.
    pub(super) fn live_query(&self, id: i64) -> Result<Rc<LiveQuery>> {
        let live = self.live();
        let open = live.open.borrow();
        // Their numbers ascend.
        let place = open.binary_search_by_key(&id, |query| i64::from(query.id));
        let found = place.ok().and_then(|place| open.get(place)).cloned();
        found.ok_or_else(|| Error::new(ErrorCode::CursorNotFound, format!("Live query {id} not found")))
    }

    /// Closes a live query.
    ///
    /// Errors: `CursorNotFound`.
    pub fn close_live(&self, id: i64) -> Result<()> {
        let query = self.live_query(id)?;
        self.live().open.borrow_mut().retain(|other| !Rc::ptr_eq(other, &query));
        self.want(&query, None);
        Ok(())
    }

    /// Notes what a query has seen: what is added after that, it wants to know.
    pub(super) fn want(&self, query: &LiveQuery, seen: Option<&(Rc<Collection>, JournalMark)>) {
        let before = query.wants.replace(seen.map(|(collection, mark)| (Rc::clone(collection), mark.added)));
        if let Some((collection, _)) = before {
            self.forget_unwanted(&collection);
        }
    }

    /// Forgets what no query wants to know any more of what was added to a journal.
    pub(super) fn forget_unwanted(&self, collection: &Rc<Collection>) {
        let mut first: Option<u64> = None;
        for query in self.live().open.borrow().iter() {
            let wants = query.wants.borrow();
            if let Some((_, added)) = wants.as_ref().filter(|(of, _)| Rc::ptr_eq(of, collection)) {
                first = Some(first.map_or(*added, |first| first.min(*added)));
            }
        }
        match first {
            Some(first) => collection.journal.forget_log(first),
            None => collection.journal.keep_log(false),
        }
    }

    /// The bytes that all live queries keep.
    pub(super) fn live_size_bytes(&self) -> usize {
        self.live().open.borrow().iter().map(|query| query.size_bytes.get()).sum()
    }
}
