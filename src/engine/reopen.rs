//! Looking for stored buckets that new measurements could go to.

use std::rc::Rc;

use super::Engine;
use super::collection::Collection;
use crate::catalog::{Offer, ReopenRequest};
use crate::error::Result;

impl Engine {
    /// Answers every request of a batch to the catalog of `collection`.
    ///
    /// Errors: those of storage; the batch is then not to be staged again.
    pub(super) async fn reopen(&self, collection: &Rc<Collection>, requests: &[ReopenRequest]) -> Result<()> {
        let mut catalog = collection.catalog.borrow_mut();
        requests.iter().for_each(|request| catalog.offer(request, Offer::NotFound));
        Ok(())
    }
}
