//! The wasm exports: opening a database, and the command door. Besides the host's storages, only `bindings` knows
//! `JsValue` (I4).

mod env;
mod options;

use std::rc::Rc;

use js_sys::{Function, Object, Promise, Reflect, Uint8Array};
use serde::Serialize;
use wasm_bindgen::prelude::*;

use crate::block;
use crate::command::{self, Reply};
use crate::engine::Engine;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::storage::Storage;
use crate::storage::host::{HostObject, HostStorage};
use crate::storage::idb::{IdbStorage, promise};
use crate::storage::memory::MemoryStorage;
use options::{OpenOptions, StorageKind};

/// An open database.
#[wasm_bindgen(js_name = Engine)]
pub struct Handle {
    engine: Rc<Engine>,
    env: Rc<env::HostEnv>,
    idb: Option<Rc<IdbStorage>>,
}

/// Opens the database `name`; see `OpenOptions` for `options`. `load` returns a promise of the second half of the
/// module. `host` is the host's storage object, if `options` select one. `early` is a promise of the IndexedDB
/// connection, if the page has already begun to open it. `turn` returns a promise that resolves when the event loop has
/// had a turn, if the host can say so.
///
/// Rejects with an `Error` that carries `code` and `codeName`.
#[wasm_bindgen(unchecked_return_type = "Promise<Engine>")]
pub fn open_engine(
    name: String,
    options: Vec<u8>,
    load: Function,
    host: HostObject,
    early: Option<Promise>,
    turn: Option<Function>,
) -> Promise {
    promise(Box::pin(async move {
        // Loaded by now: only operators of the second half ask the host for numbers.
        let env = Rc::new(env::HostEnv::new(load, turn));
        open(&name, &options, env, host, early).await.map(JsValue::from).map_err(to_js)
    }))
}

async fn open(
    name: &str,
    options: &[u8],
    env: Rc<env::HostEnv>,
    host: HostObject,
    early: Option<Promise>,
) -> Result<Handle> {
    let options = OpenOptions::read(options)?;
    let (storage, idb): (Rc<dyn Storage>, _) = match options.storage {
        StorageKind::Memory => (Rc::new(MemoryStorage::new()), None),
        StorageKind::Indexeddb => {
            let idb = IdbStorage::open_early(name, options.durability, early).await?;
            (Rc::clone(&idb) as Rc<dyn Storage>, Some(idb))
        }
        StorageKind::Host => (HostStorage::new(host), None),
    };
    let engine = Engine::new(name, storage, Rc::clone(&env) as Rc<dyn Env>, options.context);
    let engine = engine.with_bucket_format(options.bucket_format).with_catalog_options(options.catalog_options);
    let engine = engine.with_strict(options.is_strict).with_expiry_by_command(options.expires_by_command);
    Ok(Handle { engine: Rc::new(engine), env, idb })
}

#[wasm_bindgen(js_class = Engine)]
impl Handle {
    /// Runs one command (BSON) with its payload (a block) and resolves to `{ reply, payload?, due? }`. It rejects only
    /// if the second half of the module is needed and cannot be loaded. `due` asks for the command `maintain`, which
    /// need not be awaited. With `documents`, the batch of a cursor is inside the reply and not in a block.
    pub fn run_command(&self, command: Vec<u8>, payload: Option<Vec<u8>>, documents: Option<bool>) -> Promise {
        let engine = Rc::clone(&self.engine);
        let env = Rc::clone(&self.env);
        let documents = documents == Some(true);
        let load = (!env.is_whole() && (documents || command::is_rare(&command))).then(|| env.load());
        promise(Box::pin(async move {
            if let Some(load) = load {
                load.await?;
            }
            let mut reply = command::run(&engine, &command, payload.as_deref()).await;
            if command::lacks_operator(&reply) && !env.is_whole() {
                env.load().await?;
                // A cursor that has failed is gone, so `getMore` is not repeated.
                if !command::is_get_more(&command) {
                    reply = command::run(&engine, &command, payload.as_deref()).await;
                }
            }
            if !env.is_whole() && engine.takes_rest() {
                // Nobody waits for it. If it cannot be loaded, queries are slower.
                let load = env.load();
                let _ = promise(Box::pin(async { load.await.or(Ok(())).map(|()| JsValue::UNDEFINED) }));
            }
            if documents {
                // Loaded by now: awaited above.
                reply = command::with_documents(reply);
            }
            to_object(&reply, engine.maintenance_due())
        }))
    }

    /// Folds this context's journals, then refuses every further command.
    pub fn close(&self) -> Promise {
        let engine = Rc::clone(&self.engine);
        let idb = self.idb.clone();
        promise(Box::pin(async move {
            engine.close().await;
            if let Some(idb) = idb {
                idb.close();
            }
            Ok(JsValue::UNDEFINED)
        }))
    }
}

#[wasm_bindgen]
extern "C" {
    /// `Uint8Array`, whose constructor throws if the page has no memory left. An uncaught exception would leave the
    /// caller's promise unresolved for ever, so it is caught and rejects.
    #[wasm_bindgen(js_name = Uint8Array, extends = Uint8Array)]
    type JsBytes;
    #[wasm_bindgen(constructor, js_class = "Uint8Array", catch)]
    fn new(length: u32) -> Result<JsBytes, JsValue>;
}

fn to_bytes(bytes: &[u8]) -> Result<JsValue, JsValue> {
    let array = JsBytes::new(u32::try_from(bytes.len()).unwrap_or(u32::MAX))?;
    array.copy_from(bytes);
    Ok(array.into())
}

thread_local! {
    /// The property names of every answer, kept because each string that goes to JavaScript is copied and decoded.
    static REPLY: JsValue = "reply".into();
}

fn to_object(reply: &Reply, due: bool) -> Result<JsValue, JsValue> {
    let object = Object::new();
    Reflect::set(&object, &REPLY.with(JsValue::clone), &to_bytes(reply.document.view().as_bytes())?)?;
    if let Some(batch) = &reply.batch {
        Reflect::set(&object, &"payload".into(), &to_bytes(&block::encode(batch))?)?;
    }
    if due {
        Reflect::set(&object, &"due".into(), &JsValue::TRUE)?;
    }
    Ok(object.into())
}

/// The properties of an error of `open`, besides its message.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Details<'a> {
    code: i32,
    code_name: &'a str,
}

fn to_js(error: Error) -> JsValue {
    let name = error.code.name();
    let details = Details { code: error.code as i32, code_name: &name };
    let object: Object = js_sys::Error::new(&error.message).into();
    match serde_wasm_bindgen::to_value(&details) {
        Ok(details) => Object::assign(&object, details.unchecked_ref()).into(),
        // Numbers and strings always convert.
        Err(_) => object.into(),
    }
}
