//! Storage implemented by the host in JavaScript: three methods over bytes, whose answers may be promises.
//!
//! Its answers are checked; only the bytes are taken as they are. A commit that throws may have taken place. It is
//! tried once more, and the inserted keys show whether a conflict is with its own first attempt (I33).

use std::rc::Rc;

use js_sys::{Array, ArrayBuffer, Object, Promise, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::evidence::holds;
use super::{Bytes, Change, Changeset, Entry, KeyRange, LocalFuture, Page, Storage, thrown};
use crate::error::{Error, ErrorCode, Result};
use crate::listed::IntoList;

#[wasm_bindgen]
extern "C" {
    /// The host's object; `js/src/storage.ts` says what each method must do.
    pub type HostObject;
    #[wasm_bindgen(method, catch, js_name = getMany)]
    fn get_many(this: &HostObject, keys: &Array) -> Result<JsValue, JsValue>;
    #[wasm_bindgen(method, catch)]
    fn scan(this: &HostObject, ranges: &Array, page: &Object) -> Result<JsValue, JsValue>;
    #[wasm_bindgen(method, catch)]
    fn commit(this: &HostObject, changes: &Array) -> Result<JsValue, JsValue>;
}

/// A storage over a host object.
pub struct HostStorage {
    host: HostObject,
}

impl HostStorage {
    /// Stores entries in `host`.
    pub fn new(host: HostObject) -> Rc<HostStorage> {
        Rc::new(HostStorage { host })
    }

    /// Returns true if `changes` took place, false if a guard failed.
    async fn attempt(&self, changes: &Array) -> Result<bool> {
        let answer = settled(self.host.commit(changes)).await?;
        answer.as_bool().ok_or_else(|| broken("commit must return true or false"))
    }

    async fn write(&self, changes: &Changeset) -> Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let list: Array = changes.changes().iter().map(change).collect();
        let (took_place, is_first) = match self.attempt(&list).await {
            Ok(took_place) => (took_place, true),
            Err(_) => (self.attempt(&list).await?, false),
        };
        if took_place || (!is_first && holds(self, changes).await?) {
            return Ok(());
        }
        Err(Error::write_conflict("A guard of the commit failed: others have changed the storage"))
    }
}

impl Storage for HostStorage {
    fn get_many<'a>(&'a self, keys: &'a [Bytes]) -> LocalFuture<'a, Vec<Option<Bytes>>> {
        Box::pin(async move {
            let asked = keys.iter().map(|key| bytes(key)).collect();
            let found = list(settled(self.host.get_many(&asked)).await?)?;
            if found.length() != asked.length() {
                return Err(broken("getMany must return one value per key"));
            }
            found.iter().map(|value| if is_absent(&value) { Ok(None) } else { owned(&value).map(Some) }).try_listed()
        })
    }

    fn scan<'a>(&'a self, ranges: &'a [KeyRange], page: Page) -> LocalFuture<'a, Vec<Entry>> {
        Box::pin(async move {
            let ranges = ranges.iter().filter(|range| !range.is_empty());
            let asked: Array = ranges.map(|range| pair(bytes(&range.start), bytes(&range.end))).collect();
            let entries_max = u32::try_from(page.entries_max).unwrap_or(u32::MAX);
            let options = Object::new();
            for (name, value) in [("entriesMax", entries_max.into()), ("keysOnly", page.keys_only.into())] {
                // Setting a property on an object of our own cannot fail.
                let _ = Reflect::set(&options, &name.into(), &value);
            }
            let found = list(settled(self.host.scan(&asked, &options)).await?)?;
            if found.length() > entries_max {
                return Err(broken("scan must not return more entries than requested"));
            }
            let entry = |entry: JsValue| {
                let entry = list(entry)?;
                let value = if page.keys_only { Bytes::new() } else { owned(&entry.get(1))? };
                Ok(Entry { key: owned(&entry.get(0))?, value })
            };
            found.iter().map(entry).try_listed()
        })
    }

    fn commit(&self, changes: Changeset) -> LocalFuture<'_, ()> {
        Box::pin(async move { self.write(&changes).await })
    }
}

/// The answer of a method, awaited if it is a promise.
async fn settled(answer: Result<JsValue, JsValue>) -> Result<JsValue> {
    let answer = match answer {
        Ok(answer) => JsFuture::from(Promise::resolve(&answer)).await,
        thrown => thrown,
    };
    answer.map_err(|thrown| thrown::error("The storage", &thrown))
}

/// A change as `[name, key, value or end]`.
fn change(change: &Change) -> JsValue {
    let (name, key, argument) = match change {
        Change::Put(key, value) => ("put", key, Some(value)),
        Change::Insert(key, value) => ("insert", key, Some(value)),
        Change::Delete(key) => ("delete", key, None),
        Change::DeleteRange(range) => ("deleteRange", &range.start, Some(&range.end)),
        // Hosts need not know that one of the two guards may be weaker.
        Change::Require(key) | Change::Expect(key) => ("require", key, None),
    };
    let list = pair(name.into(), bytes(key));
    if let Some(argument) = argument {
        Array::push(list.unchecked_ref(), &bytes(argument));
    }
    list
}

fn pair(first: JsValue, second: JsValue) -> JsValue {
    Array::of2(&first, &second).into()
}

/// A copy for the host, which may keep it.
fn bytes(bytes: &[u8]) -> JsValue {
    Uint8Array::from(bytes).into()
}

fn is_absent(value: &JsValue) -> bool {
    value.is_undefined() || value.is_null()
}

fn owned(value: &JsValue) -> Result<Bytes> {
    if value.is_instance_of::<Uint8Array>() || value.is_instance_of::<ArrayBuffer>() {
        return Ok(Uint8Array::new(value).to_vec());
    }
    Err(broken("keys and values must be Uint8Arrays"))
}

fn list(value: JsValue) -> Result<Array> {
    value.dyn_into().map_err(|_| broken("it must return an array"))
}

/// The error for a host that breaks the contract.
fn broken(rule: &str) -> Error {
    Error::new(ErrorCode::OperationFailed, ["The storage breaks its contract: ", rule].concat())
}
