//! Runs every schedule of a history, depth first: a run is repeated up to its last open choice, where it takes the next alternative.
//!
//! Independent calls are run in one order only (sleep sets). If there are still too many schedules, all with a
//! few preemptions are run instead, and some random ones.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::footprint::Footprint;
use super::history::History;
use super::verdict::judge;
use crate::support::Random;

/// The maximum number of runs of a history. Beyond it, not all of its schedules are run. `INTERLEAVINGS_MAX` overrides it,
/// and changes all other bounds in the same proportion.
const RUNS_MAX: usize = 500;
/// The same for a history in which a task vanishes, for each call after which it may do so.
pub const VANISHING_RUNS_MAX: usize = 30;
/// The maximum number of preemptions if not all schedules can be run. `INTERLEAVINGS_PREEMPTIONS` overrides it.
const PREEMPTIONS_MAX: usize = 2;
/// If not all schedules can be run, one of this many runs is a random one.
const RANDOM_RUNS_SHARE: usize = 4;

/// The number of schedules of a history that were run to their end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Schedules {
    /// True if all schedules were run, apart from the order of independent calls.
    pub all: bool,
    pub runs: usize,
    /// The number of calls in the longest schedule.
    pub calls_max: usize,
    /// The number of schedules in which a task vanished.
    pub vanished: usize,
}

fn setting(name: &str, otherwise: usize) -> usize {
    std::env::var(name).map_or(otherwise, |value| value.parse().unwrap())
}

/// Runs a history in every order that fits the bounds, and judges every run.
pub fn explore(history: &History) -> Schedules {
    explore_within(history, RUNS_MAX)
}

/// The same with another bound on the number of runs.
pub fn explore_within(history: &History, runs_max: usize) -> Schedules {
    let runs_max = (runs_max * setting("INTERLEAVINGS_MAX", RUNS_MAX)).div_ceil(RUNS_MAX);
    let mut schedules = Schedules::default();
    schedules.all = Search { history, preemptions_max: None, frames: Vec::new() }.run(&mut schedules, runs_max);
    if !schedules.all {
        let preemptions_max = Some(setting("INTERLEAVINGS_PREEMPTIONS", PREEMPTIONS_MAX));
        Search { history, preemptions_max, frames: Vec::new() }.run(&mut schedules, runs_max);
        for seed in 0..(runs_max / RANDOM_RUNS_SHARE) as u64 {
            let random = Random::new(seed);
            run_and_judge(history, &mut schedules, &mut |_, waiting| Some(random.below(waiting.len() as u64) as usize));
        }
    }
    let Schedules { all, runs, calls_max, vanished } = schedules;
    let extent = if all { "all" } else { "some" };
    println!(
        "{}: {runs} schedules ({extent}), up to {calls_max} calls, {vanished} with a task that vanished",
        history.name
    );
    schedules
}

/// Runs one schedule, given as the tasks picked in turn. A task that is not waiting is replaced by the first that is, so that
/// a schedule remains usable after the engine's calls have changed.
pub fn replay(history: &History, schedule: &str) {
    let picks: Vec<usize> = schedule.chars().map(|pick| pick.to_digit(36).unwrap() as usize).collect();
    let mut choose = |depth: usize, waiting: &[(usize, Footprint)]| {
        let wanted = picks.get(depth);
        Some(waiting.iter().position(|(task, _)| Some(task) == wanted).unwrap_or(0))
    };
    run_and_judge(history, &mut Schedules::default(), &mut choose);
}

type Choose<'a> = &'a mut dyn FnMut(usize, &[(usize, Footprint)]) -> Option<usize>;

/// One run; a failure shows the schedule.
fn run_and_judge(history: &History, schedules: &mut Schedules, choose: Choose<'_>) {
    let mut picks = String::new();
    let result = catch_unwind(AssertUnwindSafe(|| {
        let run = history.run(|depth, waiting| {
            let at = choose(depth, waiting)?;
            picks.push(char::from_digit(waiting[at].0 as u32, 36).unwrap());
            Some(at)
        });
        let Some(run) = run else { return };
        schedules.runs += 1;
        schedules.calls_max = run.events.len().max(schedules.calls_max);
        schedules.vanished += usize::from(run.vanished);
        judge(history, &run);
    }));
    if let Err(failure) = result {
        let vanishes = history.vanishes;
        println!("{}, vanishing {vanishes:?}, has failed: replay(&history, \"{picks}\")", history.name);
        resume_unwind(failure);
    }
}

/// A choice between tasks.
struct Frame {
    waiting: Vec<(usize, Footprint)>,
    /// Tasks whose next call was already run at this point, or earlier without making a difference.
    asleep: Vec<usize>,
    /// The index of the picked task.
    picked: usize,
    /// The task that ran last, if it can continue.
    last: Option<usize>,
    preemptions: usize,
}

struct Search<'a> {
    history: &'a History,
    /// The number of preemptions left; `None` for any number, without equivalent schedules.
    preemptions_max: Option<usize>,
    frames: Vec<Frame>,
}

impl Search<'_> {
    /// True if no schedule is left.
    fn run(&mut self, schedules: &mut Schedules, runs_max: usize) -> bool {
        for _ in 0..runs_max {
            let history = self.history;
            run_and_judge(history, schedules, &mut |depth, waiting| self.choose(depth, waiting));
            while self.frames.last_mut().is_some_and(|frame| !frame.next(self.preemptions_max)) {
                self.frames.pop();
            }
            if self.frames.is_empty() {
                return true;
            }
        }
        false
    }

    fn choose(&mut self, depth: usize, waiting: &[(usize, Footprint)]) -> Option<usize> {
        if let Some(frame) = self.frames.get(depth) {
            return Some(frame.picked);
        }
        let mut frame = Frame { waiting: waiting.to_vec(), asleep: Vec::new(), picked: 0, last: None, preemptions: 0 };
        if let Some(parent) = self.frames.last() {
            let (task, _) = &parent.waiting[parent.picked];
            frame.last = waiting.iter().position(|(other, _)| other == task);
            frame.preemptions = parent.preemptions + usize::from(parent.last.is_some_and(|last| last != parent.picked));
            if self.preemptions_max.is_none() {
                frame.asleep = parent.still_asleep(self.history);
            }
        }
        let found = frame.first();
        if let Some(at) = found {
            frame.picked = at;
            self.frames.push(frame);
        }
        found
    }
}

impl Frame {
    fn is_asleep(&self, at: usize) -> bool {
        self.asleep.contains(&self.waiting[at].0)
    }

    /// The first pick: the task that ran last, or else the first that is not asleep.
    fn first(&self) -> Option<usize> {
        self.last.filter(|at| !self.is_asleep(*at)).or_else(|| (0..self.waiting.len()).find(|at| !self.is_asleep(*at)))
    }

    /// Moves on to the next pick; false if there is none.
    fn next(&mut self, preemptions_max: Option<usize>) -> bool {
        self.asleep.push(self.waiting[self.picked].0);
        let may_preempt = self.last.is_none() || preemptions_max.is_none_or(|max| self.preemptions < max);
        match self.first().filter(|_| may_preempt) {
            Some(at) => self.picked = at,
            None => return false,
        }
        true
    }

    /// The sleeping tasks whose call is independent of the picked one.
    fn still_asleep(&self, history: &History) -> Vec<usize> {
        let picked = &self.waiting[self.picked];
        let independent = |task: &&usize| {
            let (task, footprint) = self.waiting.iter().find(|(other, _)| other == *task).unwrap();
            !history.depend((*task, footprint), (picked.0, &picked.1))
        };
        self.asleep.iter().filter(independent).copied().collect()
    }
}
