//! IndexedDB: one database, one object store, version 1 for ever; keys and values are `ArrayBuffer`s.
//!
//! Creating a collection or an index is an ordinary commit, never a version upgrade, so no tab ever blocks another.
//! Every operation is a transaction of its own. If the connection dies during an operation (`versionchange`, a
//! backgrounded tab, cleared site data), it is opened again and the whole operation is repeated (I33).
//!
//! The crate `idb` opens, deletes and watches connections. Inside a transaction this module uses `web-sys`, because
//! `idb` settles too early there: its transaction future resolves on the first `error` event, before the transaction
//! has a reason; it reports an abort as `Ok`; and it supports neither durability nor an abort from a callback.

mod commit;
mod connection;
mod failure;
mod promise;
mod read;
mod transaction;

use std::rc::Rc;

use js_sys::Promise;
use web_sys::IdbDatabase;

use self::connection::Connection;
use self::failure::IdbFailure;
pub use self::promise::promise;
pub use self::transaction::Durability;
use self::transaction::WriteWay;
use super::evidence::holds;
use super::{Bytes, Changeset, Entry, KeyRange, LocalFuture, Page, Storage};
use crate::error::{Error, ErrorCode, Result};

/// Prefix of every database name, which keeps them apart from the page's own databases.
const NAME_PREFIX: &str = "timepail:";

/// One IndexedDB database.
pub struct IdbStorage {
    connection: Rc<Connection>,
    way: WriteWay,
}

impl IdbStorage {
    /// Opens the database `name`, creating it if it does not exist. Waits while the database is being deleted
    /// elsewhere.
    ///
    /// Errors: `IllegalOperation` if this runtime has no IndexedDB; `OperationFailed` with the DOM's name for the
    /// trouble if it cannot be opened.
    pub async fn open(name: &str, durability: Durability) -> Result<Rc<IdbStorage>> {
        IdbStorage::open_early(name, durability, None).await
    }

    /// As `open`, if the host may have begun to open it: `early` is a promise of the connection, which closes on
    /// `versionchange`.
    pub async fn open_early(name: &str, durability: Durability, early: Option<Promise>) -> Result<Rc<IdbStorage>> {
        let connection = Connection::new(database_name(name), early);
        connection.current().await?;
        let way = WriteWay::new(durability).map_err(|thrown| IdbFailure::thrown(&thrown).into_error())?;
        Ok(Rc::new(IdbStorage { connection, way }))
    }

    /// Deletes the database `name`, if it exists. Waits for other connections; those of timepail close by themselves.
    pub async fn destroy(name: &str) -> Result<()> {
        connection::delete(&database_name(name)).await
    }

    /// Closes the storage. Operations under way finish; later ones fail with `InterruptedAtShutdown`.
    pub fn close(&self) {
        self.connection.close();
    }

    /// Runs a read, and once more on a new connection if the first one died. Repeating a read is harmless.
    async fn read<T>(&self, operation: impl AsyncFn(&IdbDatabase) -> Result<T, IdbFailure>) -> Result<T> {
        let database = self.connection.current().await?;
        match operation(&database).await {
            Err(failure) if failure.is_worth_another_connection() => self.connection.forget(&database),
            result => return result.map_err(IdbFailure::into_error),
        }
        let database = self.connection.current().await?;
        operation(&database).await.map_err(IdbFailure::into_error)
    }

    async fn write(&self, changes: &Changeset) -> Result<()> {
        let database = self.connection.current().await?;
        if changes.is_empty() {
            return Ok(());
        }
        let first = match commit::commit(&database, changes, &self.way).await {
            Err(failure) if failure.is_worth_another_connection() => failure,
            result => return result.map_err(IdbFailure::into_error),
        };
        self.connection.forget(&database);
        let replayed = match self.connection.current().await {
            Ok(database) => commit::commit(&database, changes, &self.way).await,
            Err(error) => Err(IdbFailure::Refused(error)),
        };
        let Err(second) = replayed else { return Ok(()) };
        if !first.may_have_committed() {
            return Err(second.into_error());
        }
        // The first attempt may have committed; then the second one collided with its own writes.
        let error = second.into_error();
        if error.code == ErrorCode::WriteConflict && holds(self, changes).await? {
            return Ok(());
        }
        if error.code == ErrorCode::WriteConflict {
            return Err(error);
        }
        Err(Error::new(error.code, format!("{}; the first attempt may have been committed", error.message)))
    }
}

fn database_name(name: &str) -> String {
    format!("{NAME_PREFIX}{name}")
}

impl Storage for IdbStorage {
    fn get_many<'a>(&'a self, keys: &'a [Bytes]) -> LocalFuture<'a, Vec<Option<Bytes>>> {
        Box::pin(self.read(async |database| read::get_many(database, keys).await))
    }

    fn scan<'a>(&'a self, ranges: &'a [KeyRange], page: Page) -> LocalFuture<'a, Vec<Entry>> {
        Box::pin(self.read(async move |database| read::scan(database, ranges, page, None).await))
    }

    fn scan_ahead<'a>(
        &'a self,
        ranges: &'a [KeyRange],
        entries_max: usize,
        place: usize,
    ) -> LocalFuture<'a, Vec<Entry>> {
        let (page, ahead) = (Page { entries_max, keys_only: true }, ranges.get(place));
        Box::pin(self.read(async move |database| read::scan(database, ranges, page, ahead).await))
    }

    fn commit(&self, changes: Changeset) -> LocalFuture<'_, ()> {
        Box::pin(async move { self.write(&changes).await })
    }

    fn answers_by_event(&self) -> bool {
        true
    }
}
