//! Tasks that advance only when picked: at every storage call another task may run.
//!
//! A call is announced before it runs, with the keys that it touches. The scheduler picks one task, whose call then runs and whose code continues
//! to its next call. Everything else is deterministic, so a list of picks repeats a run exactly.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::task::{ArcWake, waker};
use timepail::error::{Error, ErrorCode, Result};
use timepail::storage::{Bytes, Change, Changeset, Entry, KeyRange, LocalFuture, Page, Storage};

use super::footprint::Footprint;
use crate::support::ahead::two_ahead;

/// A storage call that has run, or a yield.
pub struct Event {
    pub task: usize,
    /// The operation of the task that it belongs to.
    pub operation: usize,
    pub footprint: Footprint,
}

/// A request of a task to storage, or a yield.
#[derive(Clone)]
enum Call {
    Nothing,
    GetMany(Vec<Bytes>),
    Scan(Vec<KeyRange>, Page),
    Commit(Changeset),
}

/// The answer of storage.
enum Answer {
    Nothing,
    Values(Result<Vec<Option<Bytes>>>),
    Entries(Result<Vec<Entry>>),
    Done(Result<()>),
}

impl Call {
    fn footprint(&self) -> Footprint {
        match self {
            Call::Nothing => Footprint::default(),
            Call::GetMany(keys) => Footprint::of_keys(keys),
            Call::Scan(ranges, _) => Footprint::of_ranges(ranges),
            Call::Commit(changes) => Footprint::of_changes(changes),
        }
    }

    /// True if it needs room.
    fn writes(&self) -> bool {
        let writes = |change: &Change| matches!(change, Change::Put(..) | Change::Insert(..));
        matches!(self, Call::Commit(changes) if changes.changes().iter().any(writes))
    }

    /// Runs the call; memory storage answers at once.
    fn run(self, storage: &dyn Storage) -> Answer {
        match self {
            Call::Nothing => Answer::Nothing,
            Call::GetMany(keys) => Answer::Values(storage.get_many(&keys).now_or_never().unwrap()),
            Call::Scan(ranges, page) => Answer::Entries(storage.scan(&ranges, page).now_or_never().unwrap()),
            Call::Commit(changes) => Answer::Done(storage.commit(changes).now_or_never().unwrap()),
        }
    }
}

/// The state shared by tasks, storage and scheduler.
pub struct Board {
    inner: Rc<dyn Storage>,
    /// The running task.
    running: Cell<usize>,
    /// The current operation of each task.
    pub operations: RefCell<Vec<usize>>,
    /// The pending calls of each task, numbered. A task may make a call before the last one has run: they run in order.
    announced: RefCell<Vec<VecDeque<(usize, Call)>>>,
    answers: RefCell<BTreeMap<usize, Answer>>,
    calls: Cell<usize>,
    pub events: RefCell<Vec<Event>>,
    /// A task and the number of calls after which it vanishes.
    pub vanishes: Cell<Option<(usize, usize)>>,
    /// The task whose writes find no room.
    pub full: Cell<Option<usize>>,
    /// False while a history is being set up: calls then run at once.
    pub active: Cell<bool>,
}

/// Storage in which every call waits for the scheduler.
pub struct Scheduled {
    pub board: Rc<Board>,
    /// Whether others may run between a call and its answer, which only tasks of the same context can notice.
    pub late_answers: bool,
}

impl Board {
    pub fn new(inner: Rc<dyn Storage>) -> Rc<Board> {
        Rc::new(Board {
            inner,
            running: Cell::new(0),
            operations: RefCell::default(),
            announced: RefCell::default(),
            answers: RefCell::default(),
            calls: Cell::new(0),
            events: RefCell::default(),
            vanishes: Cell::new(None),
            full: Cell::new(None),
            active: Cell::new(false),
        })
    }

    fn announce(&self, call: Call) -> usize {
        let number = self.calls.get();
        self.calls.set(number + 1);
        self.announced.borrow_mut()[self.running.get()].push_back((number, call));
        number
    }

    /// The answer to a call after the scheduler has run it.
    async fn answer(&self, call: Call) -> Answer {
        if !self.active.get() {
            return call.run(&*self.inner);
        }
        let number = self.announce(call);
        std::future::poll_fn(|_| match self.answers.borrow_mut().remove(&number) {
            Some(answer) => Poll::Ready(answer),
            None => Poll::Pending,
        })
        .await
    }
}

impl Scheduled {
    async fn ask(&self, call: Call) -> Answer {
        let answer = self.board.answer(call).await;
        if self.late_answers {
            self.board.answer(Call::Nothing).await;
        }
        answer
    }
}

impl Storage for Scheduled {
    fn get_many<'a>(&'a self, keys: &'a [Bytes]) -> LocalFuture<'a, Vec<Option<Bytes>>> {
        Box::pin(async move {
            let Answer::Values(values) = self.ask(Call::GetMany(keys.to_vec())).await else { unreachable!() };
            values
        })
    }
    fn scan<'a>(&'a self, ranges: &'a [KeyRange], page: Page) -> LocalFuture<'a, Vec<Entry>> {
        Box::pin(async move {
            let Answer::Entries(entries) = self.ask(Call::Scan(ranges.to_vec(), page)).await else { unreachable!() };
            entries
        })
    }
    fn scan_ahead<'a>(
        &'a self,
        ranges: &'a [KeyRange],
        entries_max: usize,
        place: usize,
    ) -> LocalFuture<'a, Vec<Entry>> {
        Box::pin(two_ahead(self, ranges, entries_max, place))
    }
    fn commit(&self, changes: Changeset) -> LocalFuture<'_, ()> {
        Box::pin(async move {
            let Answer::Done(done) = self.ask(Call::Commit(changes)).await else { unreachable!() };
            done
        })
    }
}

struct Woken(AtomicBool);

impl ArcWake for Woken {
    fn wake_by_ref(woken: &Arc<Woken>) {
        woken.0.store(true, Ordering::Relaxed);
    }
}

struct Task {
    /// `None` after it has ended or vanished.
    future: Option<Pin<Box<dyn Future<Output = ()>>>>,
    woken: Arc<Woken>,
}

/// The tasks of one run.
pub struct Scheduler {
    pub board: Rc<Board>,
    tasks: Vec<Task>,
    /// True if the scheduler picks when a task yields; otherwise the task continues at once.
    yields: bool,
}

impl Scheduler {
    pub fn new(board: Rc<Board>, yields: bool) -> Scheduler {
        Scheduler { board, tasks: Vec::new(), yields }
    }

    pub fn spawn(&mut self, future: impl Future<Output = ()> + 'static) {
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        self.tasks.push(Task { future: Some(Box::pin(future)), woken });
        self.board.operations.borrow_mut().push(0);
        self.board.announced.borrow_mut().push(VecDeque::new());
    }

    /// Polls every task up to its next call; returns the tasks that wait for a pick.
    pub fn settle(&mut self) -> Vec<(usize, Footprint)> {
        self.board.active.set(true);
        while let Some(at) = (0..self.tasks.len()).find(|at| {
            let waits = !self.board.announced.borrow()[*at].is_empty();
            let task = &self.tasks[*at];
            !waits && task.future.is_some() && task.woken.0.load(Ordering::Relaxed)
        }) {
            self.poll(at);
        }
        let announced = self.board.announced.borrow();
        let waiting = announced.iter().enumerate().filter(|(at, _)| self.tasks[*at].future.is_some());
        waiting.filter_map(|(at, calls)| Some((at, calls.front()?.1.footprint()))).collect()
    }

    /// Runs the call of a waiting task, and then the task up to its next call.
    pub fn pick(&mut self, at: usize) {
        let (number, call) = self.board.announced.borrow_mut()[at].pop_front().unwrap();
        let operation = self.board.operations.borrow()[at];
        self.board.events.borrow_mut().push(Event { task: at, operation, footprint: call.footprint() });
        let answer = match self.board.full.get() == Some(at) && call.writes() {
            true => Answer::Done(Err(Error::new(ErrorCode::OutOfDiskSpace, "This task finds no room"))),
            false => call.run(&*self.board.inner),
        };
        self.board.answers.borrow_mut().insert(number, answer);
        let calls = self.board.events.borrow().iter().filter(|event| event.task == at).count();
        if self.board.vanishes.get() == Some((at, calls)) {
            self.tasks[at].future = None;
        } else {
            self.poll(at);
        }
    }

    fn poll(&mut self, at: usize) {
        let task = &mut self.tasks[at];
        let Some(future) = &mut task.future else { return };
        task.woken.0.store(false, Ordering::Relaxed);
        self.board.running.set(at);
        let done = future.as_mut().poll(&mut Context::from_waker(&waker(Arc::clone(&task.woken)))).is_ready();
        if done {
            task.future = None;
            return;
        }
        let waits = !self.board.announced.borrow()[at].is_empty();
        if self.yields && !waits && task.woken.0.load(Ordering::Relaxed) {
            self.board.announce(Call::Nothing);
        }
    }

    /// True if all tasks are done.
    pub fn is_done(&self) -> bool {
        self.tasks.iter().all(|task| task.future.is_none())
    }
}
