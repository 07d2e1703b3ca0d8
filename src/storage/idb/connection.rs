//! The connection to a database, opened again whenever it is lost.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use ::idb::{DatabaseEvent, Factory, ObjectStoreParams};
use js_sys::Promise;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::IdbDatabase;

use super::failure::connection_error;
use super::promise::promise;
use crate::error::{Error, ErrorCode, Result};

/// The one object store.
pub(super) const STORE_NAME: &str = "entries";
/// The version of every database. It is never raised, because an upgrade would have to wait for all other tabs.
const VERSION: u32 = 1;

/// Opens the database `name` on demand.
pub(super) struct Connection {
    name: String,
    /// The connection that the host began to open, until it is awaited.
    early: RefCell<Option<Promise>>,
    state: RefCell<ConnectionState>,
}

enum ConnectionState {
    /// Not open; the next operation opens it.
    Absent,
    /// Being opened; everybody who comes now waits for it.
    Opening(Opening),
    Open(OpenDatabase),
    /// Closed by us for good.
    Closed,
}

/// The promise always resolves; if opening failed, `failure` is set before.
#[derive(Clone)]
struct Opening {
    done: Promise,
    failure: Rc<RefCell<Option<Error>>>,
}

/// A live connection. `idb` owns the callbacks; `handle` is the same JavaScript object.
struct OpenDatabase {
    handle: IdbDatabase,
    _watched: ::idb::Database,
}

impl Drop for OpenDatabase {
    fn drop(&mut self) {
        // The callbacks are dropped with `_watched`, so no event may reach them afterwards. Transactions under way
        // finish.
        self.handle.set_onversionchange(None);
        self.handle.set_onclose(None);
        self.handle.close();
    }
}

impl Connection {
    /// `early` is a promise of the first connection, if that was requested already.
    pub(super) fn new(name: String, early: Option<Promise>) -> Rc<Connection> {
        Rc::new(Connection { name, early: RefCell::new(early), state: RefCell::new(ConnectionState::Absent) })
    }

    /// The live connection, opened if necessary.
    pub(super) async fn current(self: &Rc<Self>) -> Result<IdbDatabase> {
        loop {
            let opening = {
                let mut state = self.state.borrow_mut();
                match &*state {
                    ConnectionState::Closed => return Err(closed()),
                    ConnectionState::Open(open) => return Ok(open.handle.clone()),
                    ConnectionState::Opening(opening) => opening.clone(),
                    ConnectionState::Absent => {
                        let opening = self.begin_opening();
                        *state = ConnectionState::Opening(opening.clone());
                        opening
                    }
                }
            };
            // The promise never rejects.
            let _ = JsFuture::from(opening.done).await;
            if let Some(error) = opening.failure.borrow().clone() {
                return Err(error);
            }
        }
    }

    /// Drops `database` if it is the current connection: it is dead, or it blocks the deletion of the database.
    pub(super) fn forget(&self, database: &IdbDatabase) {
        let is_current = matches!(&*self.state.borrow(), ConnectionState::Open(open) if open.handle == *database);
        if is_current {
            // Replaced first and dropped afterwards, because dropping calls into JavaScript.
            drop(self.state.replace(ConnectionState::Absent));
        }
    }

    pub(super) fn close(&self) {
        drop(self.state.replace(ConnectionState::Closed));
    }

    /// Runs as a task of its own, so that it continues if the caller who began it stops waiting.
    fn begin_opening(self: &Rc<Self>) -> Opening {
        let failure = Rc::new(RefCell::new(None));
        let (this, failed) = (Rc::clone(self), Rc::clone(&failure));
        let early = self.early.take();
        let done = promise(Box::pin(async move {
            let result = open(&this.name, early).await.and_then(|database| this.adopt(database));
            if let Err(error) = result {
                failed.replace(Some(error));
                let mut state = this.state.borrow_mut();
                if matches!(*state, ConnectionState::Opening(_)) {
                    *state = ConnectionState::Absent;
                }
            }
            Ok(JsValue::UNDEFINED)
        }));
        Opening { done, failure }
    }

    fn adopt(self: &Rc<Self>, mut database: ::idb::Database) -> Result<()> {
        if matches!(*self.state.borrow(), ConnectionState::Closed) {
            database.close();
            return Err(closed());
        }
        // `idb` offers no second handle, and taking its only one would lose its callbacks.
        let handle = IdbDatabase::from(database);
        database = ::idb::Database::from(handle.clone());
        // `versionchange` means that the database is about to be deleted: we close at once and open again when needed.
        // `close` means that the browser has already cut the connection.
        let (weak, gone) = (Rc::downgrade(self), handle.clone());
        database.on_version_change(move |_| forget_weak(&weak, &gone));
        let (weak, gone) = (Rc::downgrade(self), handle.clone());
        database.on_close(move |_| forget_weak(&weak, &gone));
        self.state.replace(ConnectionState::Open(OpenDatabase { handle, _watched: database }));
        Ok(())
    }
}

fn forget_weak(connection: &Weak<Connection>, database: &IdbDatabase) {
    if let Some(connection) = connection.upgrade() {
        connection.forget(database);
    }
}

/// `blocked` needs no handler: the version never changes, so only a deletion can be in the way, and it ends.
async fn open(name: &str, early: Option<Promise>) -> Result<::idb::Database> {
    let database = match early {
        Some(early) => match JsFuture::from(early).await {
            Ok(handle) => ::idb::Database::from(handle.unchecked_into::<IdbDatabase>()),
            Err(thrown) => return Err(connection_error(::idb::Error::IndexedDbOpenFailed(thrown))),
        },
        None => ask(name)?.await.map_err(connection_error)?,
    };
    if database.store_names().iter().any(|name| name == STORE_NAME) {
        return Ok(database);
    }
    database.close();
    Err(Error::corrupt(format!("The IndexedDB database {name} lacks its object store {STORE_NAME}")))
}

fn ask(name: &str) -> Result<::idb::request::OpenDatabaseRequest> {
    let mut request = Factory::new().and_then(|factory| factory.open(name, Some(VERSION))).map_err(connection_error)?;
    request.on_upgrade_needed(|event| {
        // If this fails, the store is missing, which is noticed after opening.
        if let Ok(database) = event.database() {
            let _ = database.create_object_store(STORE_NAME, ObjectStoreParams::new());
        }
    });
    Ok(request)
}

/// Deletes the database `name`.
pub(super) async fn delete(name: &str) -> Result<()> {
    let request = Factory::new().and_then(|factory| factory.delete(name)).map_err(connection_error)?;
    request.await.map_err(connection_error)
}

fn closed() -> Error {
    Error::new(ErrorCode::InterruptedAtShutdown, "The database is closed")
}
