//! A result that many futures wait for (I6).

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::error::Result;

#[derive(Default)]
struct SignalState {
    result: Option<Result<()>>,
    wakers: Vec<Waker>,
}

/// A one-shot outcome: resolved once, and seen by every waiter, however late it comes.
#[derive(Clone, Default)]
pub struct Signal {
    state: Rc<RefCell<SignalState>>,
}

impl Signal {
    /// An unresolved signal.
    pub fn new() -> Signal {
        Signal::default()
    }

    /// Resolves the signal; a second call is ignored.
    pub fn resolve(&self, result: Result<()>) {
        let wakers = {
            let mut state = self.state.borrow_mut();
            state.result.get_or_insert(result);
            std::mem::take(&mut state.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// True if it was resolved.
    pub fn is_resolved(&self) -> bool {
        self.state.borrow().result.is_some()
    }

    /// Waits for the outcome.
    pub fn wait(&self) -> impl Future<Output = Result<()>> + use<> {
        Wait { state: Rc::clone(&self.state) }
    }

    /// True if both are the same signal.
    pub fn is(&self, other: &Signal) -> bool {
        Rc::ptr_eq(&self.state, &other.state)
    }
}

struct Wait {
    state: Rc<RefCell<SignalState>>,
}

impl Future for Wait {
    type Output = Result<()>;
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let mut state = self.state.borrow_mut();
        match &state.result {
            Some(result) => Poll::Ready(result.clone()),
            None => {
                state.wakers.push(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// Lets every other ready future run once.
pub fn yield_now() -> impl Future<Output = ()> {
    let mut yielded = false;
    std::future::poll_fn(move |cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use futures::executor::block_on;
    use futures::future::join;

    #[test]
    fn all_waiters_get_the_first_outcome() {
        let signal = Signal::new();
        let resolve = async {
            yield_now().await;
            signal.resolve(Ok(()));
            signal.resolve(Err(Error::internal("late")));
        };
        let (outcome, ()) = block_on(join(signal.wait(), resolve));
        assert_eq!(outcome, Ok(()));
        assert_eq!(block_on(signal.wait()), Ok(()));
    }
}
