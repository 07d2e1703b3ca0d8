//! Tasks that go on only when they are told to: every storage call is a point at which somebody else may be let in.
//!
//! A call is announced before it runs, with what it touches. The scheduler picks one task, whose call then runs and whose code goes
//! on to its next call. Nothing else is left to chance, so a list of picks repeats a run exactly.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use futures::task::{ArcWake, waker};
use timepail::storage::{Bytes, Changeset, Entry, KeyRange, LocalFuture, Page, Storage};

use crate::footprint::Footprint;

/// A storage call that has run, or a turn that a task has given to others.
pub struct Event {
    pub task: usize,
    /// Which of the task's operations it belongs to.
    pub operation: usize,
    pub footprint: Footprint,
}

/// What the tasks and the storage tell the scheduler.
#[derive(Default)]
pub struct Board {
    /// The task that runs.
    running: Cell<usize>,
    /// The operation of each task.
    pub operations: RefCell<Vec<usize>>,
    /// What a task waits to do, where it waits for the scheduler.
    announced: RefCell<Vec<Option<Footprint>>>,
    granted: Cell<bool>,
    pub events: RefCell<Vec<Event>>,
    /// After how many calls a task vanishes.
    pub vanishes: Cell<Option<(usize, usize)>>,
    vanished: Cell<bool>,
    /// False while a history is prepared: calls run at once.
    pub active: Cell<bool>,
}

/// Storage whose every call waits for the scheduler.
pub struct Scheduled {
    pub inner: Rc<dyn Storage>,
    pub board: Rc<Board>,
    /// Whether others may be let in between a call and the answer to it. They must be other tasks of the same context to notice.
    pub late_answers: bool,
}

impl Board {
    /// Waits until the scheduler picks the running task.
    fn turn(&self, footprint: Footprint) -> impl Future<Output = ()> + '_ {
        let mut announced = false;
        std::future::poll_fn(move |_| {
            if !self.active.get() || announced && self.granted.replace(false) {
                return Poll::Ready(());
            }
            if !std::mem::replace(&mut announced, true) {
                self.announced.borrow_mut()[self.running.get()] = Some(footprint.clone());
            }
            Poll::Pending
        })
    }

    /// Notes that the call of the running task has run; never resolves where that was its last.
    async fn ran(&self) {
        let Some((task, after)) = self.vanishes.get() else { return };
        let calls = self.events.borrow().iter().filter(|event| event.task == task).count();
        if self.active.get() && self.running.get() == task && calls == after {
            self.vanished.set(true);
            std::future::pending::<()>().await;
        }
    }
}

impl Scheduled {
    async fn around<T>(&self, footprint: Footprint, call: LocalFuture<'_, T>) -> timepail::error::Result<T> {
        self.board.turn(footprint).await;
        let outcome = call.await;
        self.board.ran().await;
        if self.late_answers {
            self.board.turn(Footprint::default()).await;
        }
        outcome
    }
}

impl Storage for Scheduled {
    fn get_many<'a>(&'a self, keys: &'a [Bytes]) -> LocalFuture<'a, Vec<Option<Bytes>>> {
        Box::pin(self.around(Footprint::of_keys(keys), self.inner.get_many(keys)))
    }
    fn scan<'a>(&'a self, ranges: &'a [KeyRange], page: Page) -> LocalFuture<'a, Vec<Entry>> {
        Box::pin(self.around(Footprint::of_ranges(ranges), self.inner.scan(ranges, page)))
    }
    fn commit(&self, changes: Changeset) -> LocalFuture<'_, ()> {
        Box::pin(self.around(Footprint::of_changes(&changes), self.inner.commit(changes)))
    }
}

struct Woken(AtomicBool);

impl ArcWake for Woken {
    fn wake_by_ref(woken: &Arc<Woken>) {
        woken.0.store(true, Ordering::Relaxed);
    }
}

struct Task {
    /// `None` once it has ended or vanished.
    future: Option<Pin<Box<dyn Future<Output = ()>>>>,
    woken: Arc<Woken>,
}

/// The tasks of one run.
pub struct Scheduler {
    pub board: Rc<Board>,
    tasks: Vec<Task>,
    /// Whether a task that yields lets the scheduler pick; otherwise it goes on at once.
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
        self.board.announced.borrow_mut().push(None);
    }

    /// Lets every task go on to its next call; answers which tasks wait for a pick.
    pub fn settle(&mut self) -> Vec<(usize, Footprint)> {
        self.board.active.set(true);
        while let Some(at) = (0..self.tasks.len()).find(|at| {
            let waits = self.board.announced.borrow()[*at].is_some();
            let task = &self.tasks[*at];
            !waits && task.future.is_some() && task.woken.0.load(Ordering::Relaxed)
        }) {
            self.poll(at);
        }
        let announced = self.board.announced.borrow();
        let waiting = announced.iter().enumerate().filter(|(at, _)| self.tasks[*at].future.is_some());
        waiting.filter_map(|(at, footprint)| Some((at, footprint.clone()?))).collect()
    }

    /// Runs the call of a task that waits, and the task up to its next one.
    pub fn pick(&mut self, at: usize) {
        let footprint = self.board.announced.borrow_mut()[at].take().unwrap();
        let operation = self.board.operations.borrow()[at];
        self.board.events.borrow_mut().push(Event { task: at, operation, footprint });
        self.board.granted.set(true);
        self.poll(at);
        self.board.granted.set(false);
    }

    fn poll(&mut self, at: usize) {
        let task = &mut self.tasks[at];
        let Some(future) = &mut task.future else { return };
        task.woken.0.store(false, Ordering::Relaxed);
        self.board.running.set(at);
        let done = future.as_mut().poll(&mut Context::from_waker(&waker(Arc::clone(&task.woken)))).is_ready();
        if done || self.board.vanished.replace(false) {
            task.future = None;
            return;
        }
        let mut announced = self.board.announced.borrow_mut();
        if self.yields && announced[at].is_none() && task.woken.0.load(Ordering::Relaxed) {
            announced[at] = Some(Footprint::default());
        }
    }

    /// True where no task has anything left to do.
    pub fn is_done(&self) -> bool {
        self.tasks.iter().all(|task| task.future.is_none())
    }
}
