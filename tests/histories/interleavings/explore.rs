//! Every schedule of a history, depth first: a run is repeated up to its last open choice, and takes the next.
//!
//! Calls that touch nothing in common are run in one order only (sleep sets). Where there are too many orders all the same, all with a
//! few preemptions are run instead, and some at random.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::footprint::Footprint;
use super::history::History;
use super::verdict::judge;
use crate::support::Random;

/// Runs of one history before the search for all of its schedules is given up. `INTERLEAVINGS_MAX` replaces it.
const RUNS_MAX: usize = 1000;
/// The same for a history in which a task vanishes, which is explored for each of its calls.
pub const VANISHING_RUNS_MAX: usize = 120;
/// A task is left although it could go on at most so often, where not all schedules can be run. `INTERLEAVINGS_PREEMPTIONS` replaces it.
const PREEMPTIONS_MAX: usize = 2;
/// Schedules drawn at random, where not all can be run: one of so many runs.
const RANDOM_RUNS_SHARE: usize = 4;

/// How many schedules of a history were run to their end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Schedules {
    /// None is missing but those that differ from another in the order of calls that touch nothing in common.
    pub all: bool,
    pub runs: usize,
    /// Calls of the longest.
    pub calls_max: usize,
    /// In how many of them a task has vanished.
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
    let runs_max = setting("INTERLEAVINGS_MAX", runs_max);
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

/// Runs one schedule, given as the tasks that were picked in turn. A task that does not wait is replaced by the first that does, so that
/// a schedule means something still when the engine makes other calls than it did.
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
    /// Tasks whose next call was run here before, or could have been run before without a difference.
    asleep: Vec<usize>,
    /// The place of the task that was picked.
    picked: usize,
    /// Who ran last, if he can go on.
    last: Option<usize>,
    preemptions: usize,
}

struct Search<'a> {
    history: &'a History,
    /// `None`: any number, and orders that make no difference are left out.
    preemptions_max: Option<usize>,
    frames: Vec<Frame>,
}

impl Search<'_> {
    /// True where nothing is left to run.
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

    /// Who is picked first: the one that ran last, else the first that is not asleep.
    fn first(&self) -> Option<usize> {
        self.last.filter(|at| !self.is_asleep(*at)).or_else(|| (0..self.waiting.len()).find(|at| !self.is_asleep(*at)))
    }

    /// Goes on to the next pick; false where there is none.
    fn next(&mut self, preemptions_max: Option<usize>) -> bool {
        self.asleep.push(self.waiting[self.picked].0);
        let may_preempt = self.last.is_none() || preemptions_max.is_none_or(|max| self.preemptions < max);
        match self.first().filter(|_| may_preempt) {
            Some(at) => self.picked = at,
            None => return false,
        }
        true
    }

    /// Those asleep whose call does not depend on the one picked.
    fn still_asleep(&self, history: &History) -> Vec<usize> {
        let picked = &self.waiting[self.picked];
        let independent = |task: &&usize| {
            let (task, footprint) = self.waiting.iter().find(|(other, _)| other == *task).unwrap();
            !history.depend((*task, footprint), (picked.0, &picked.1))
        };
        self.asleep.iter().filter(independent).copied().collect()
    }
}
