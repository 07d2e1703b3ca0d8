//! Turns for the host's event loop, and what ends a command early: its time limit, or `killOp`.
//!
//! Loops over buckets, pages and parts of a commit call `turn`, or `pause` where they must not be ended. What may happen
//! there is what may happen at any await: others read, write, fold and drop (I5).

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::task::Poll;

use crate::engine::Engine;
use crate::error::{Error, ErrorCode, Result};
use crate::limits::{IDLE_MS, LOOK_WORK, TURN_MS};
use crate::storage::LocalFuture;

/// A command that is running, or the time that it has left between two batches.
pub struct Operation {
    /// What `killOp` names.
    key: Option<i64>,
    /// When its time is over; infinity without a limit.
    ends_ms: Cell<f64>,
    is_killed: Cell<bool>,
}

/// Who had the event loop, and who has it.
#[derive(Default)]
pub struct Turns {
    /// When the host last had a turn.
    began_ms: Cell<f64>,
    /// When a command last began. Infinity while the host has a turn.
    seen_ms: Cell<f64>,
    /// When the clock was last looked at, and how much work is left until the next look: none if what came before took long.
    looked_ms: Cell<f64>,
    work_left: Cell<usize>,
    /// The command that is being polled.
    running: RefCell<Option<Rc<Operation>>>,
    /// Commands that `killOp` can name.
    named: RefCell<Vec<Weak<Operation>>>,
}

impl Engine {
    /// Runs a command as an operation: with a key for `killOp`, and with a limit of time. Commands that begin during a
    /// turn of the host wait for its end, and keep their order. Boxed, so that the futures that await it stay small.
    ///
    /// Errors: those of `running`; `MaxTimeMSExpired`, `Interrupted`.
    #[inline(never)]
    pub fn operate<'a, T: 'a>(
        &'a self,
        (key, limit_ms): (Option<i64>, Option<f64>),
        mut running: LocalFuture<'a, T>,
    ) -> LocalFuture<'a, T> {
        let now_ms = self.env.elapsed_ms();
        let ends_ms = Cell::new(limit_ms.map_or(f64::INFINITY, |limit_ms| now_ms + limit_ms));
        let operation = Rc::new(Operation { key, ends_ms, is_killed: Cell::default() });
        if key.is_some() {
            let mut named = self.turns.named.borrow_mut();
            named.retain(|other| other.strong_count() > 0);
            named.push(Rc::downgrade(&operation));
        }
        // After such a pause, the host has had its turn.
        if now_ms - self.turns.seen_ms.replace(now_ms.max(self.turns.seen_ms.get())) > IDLE_MS {
            self.turns.began_ms.set(now_ms);
        }
        let mut turn = self.is_long(now_ms).then(|| self.breathe());
        Box::pin(poll_fn(move |context| {
            let before = self.turns.running.replace(Some(Rc::clone(&operation)));
            // While the host has its turn, the command has not begun.
            let first = turn.as_mut().map(|turn| turn.as_mut().poll(context));
            let polled = match first {
                Some(Poll::Pending) => Poll::Pending,
                Some(Poll::Ready(Err(ended))) => Poll::Ready(Err(ended)),
                Some(Poll::Ready(Ok(()))) | None => {
                    turn = None;
                    running.as_mut().poll(context)
                }
            };
            self.turns.running.replace(before);
            polled
        }))
    }

    /// Gives the host a turn before the next command begins.
    pub fn owe_turn(&self) {
        self.turns.began_ms.set(f64::NEG_INFINITY);
        self.turns.seen_ms.set(f64::INFINITY);
    }

    /// Notes that a commit has succeeded: if the answer came by an event, the host has had its turn.
    pub(in crate::engine) fn note_answer(&self) {
        if self.storage.answers_by_event() {
            self.turns.began_ms.set(self.env.elapsed_ms());
        }
    }

    /// Ends the commands with this key at their next turn.
    pub fn kill(&self, key: i64) {
        let named = self.turns.named.borrow();
        let found = named.iter().filter_map(Weak::upgrade).filter(|operation| operation.key == Some(key));
        found.for_each(|operation| operation.is_killed.set(true));
    }

    /// How many milliseconds the running command has left; infinity without a limit.
    pub(in crate::engine) fn left_ms(&self) -> f64 {
        let ends_ms = self.turns.running.borrow().as_ref().map_or(f64::INFINITY, |running| running.ends_ms.get());
        ends_ms - self.env.elapsed_ms()
    }

    /// Limits the running command to what is left of the time of an earlier one.
    pub(in crate::engine) fn limit(&self, left_ms: f64) {
        if let Some(running) = &*self.turns.running.borrow() {
            running.ends_ms.set(self.env.elapsed_ms() + left_ms);
        }
    }

    /// Counts some rows as work done; a turn of the host to await, if it is time for one.
    ///
    /// Errors, also of the turn: `MaxTimeMSExpired`, `Interrupted` if the running command must end.
    pub(in crate::engine) fn turn(&self, work: usize) -> Result<Option<LocalFuture<'_, ()>>> {
        let Some(now_ms) = self.look(work) else { return Ok(None) };
        self.check(now_ms)?;
        Ok(self.is_long(now_ms).then(|| self.breathe()))
    }

    /// As `turn`, where others wait for what is being done, so that it goes on whatever becomes of the command. Errors of
    /// the turn do not matter.
    pub(in crate::engine) fn pause(&self, work: usize) -> Option<LocalFuture<'_, ()>> {
        let now_ms = self.look(work)?;
        self.is_long(now_ms).then(|| self.breathe())
    }

    /// The time, if enough was done since the last look at the clock.
    fn look(&self, work: usize) -> Option<f64> {
        let left = self.turns.work_left.get();
        if work < left && !self.env.looks_always() {
            self.turns.work_left.set(left - work);
            return None;
        }
        let now_ms = self.env.elapsed_ms();
        let took_ms = now_ms - self.turns.looked_ms.replace(now_ms);
        self.turns.work_left.set(if took_ms > TURN_MS / 4.0 { 0 } else { LOOK_WORK });
        Some(now_ms)
    }

    fn is_long(&self, now_ms: f64) -> bool {
        now_ms - self.turns.began_ms.get() >= TURN_MS
    }

    /// Yields to the host. Boxed, so that the futures that await it stay small.
    #[inline(never)]
    fn breathe(&self) -> LocalFuture<'_, ()> {
        Box::pin(async {
            let Some(turn) = self.env.turn() else {
                // There never is one.
                self.turns.began_ms.set(f64::INFINITY);
                return Ok(());
            };
            self.turns.seen_ms.set(f64::INFINITY);
            turn.await;
            let now_ms = self.env.elapsed_ms();
            self.turns.seen_ms.set(now_ms);
            self.turns.began_ms.set(now_ms);
            self.check(now_ms)
        })
    }

    /// Errors: `MaxTimeMSExpired`, `Interrupted` if the running command must end.
    fn check(&self, now_ms: f64) -> Result<()> {
        self.turns.running.borrow().as_ref().map_or(Ok(()), |running| running.check(now_ms))
    }
}

impl Operation {
    /// Errors: `MaxTimeMSExpired`, `Interrupted` if the command must end.
    fn check(&self, now_ms: f64) -> Result<()> {
        if self.is_killed.get() {
            return Err(Error::new(ErrorCode::Interrupted, "operation was interrupted"));
        }
        if now_ms >= self.ends_ms.get() {
            return Err(Error::new(ErrorCode::MaxTimeMSExpired, "operation exceeded time limit"));
        }
        Ok(())
    }
}
