//! Commands that answer with little, or with a refusal.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

mod support;

use std::rc::Rc;

use bson::RawDocumentBuf;
use futures::executor::block_on;
use support::{Db, TestEnv};
use timepail::storage::memory::MemoryStorage;

fn open() -> Db {
    Db::open(Rc::new(MemoryStorage::new()), TestEnv::new(1))
}

fn command(name: &str, target: impl Into<bson::RawBson>) -> RawDocumentBuf {
    let mut command = RawDocumentBuf::new();
    command.append(bson::raw::CString::try_from(name).unwrap(), target.into());
    command
}

#[test]
fn what_time_series_collections_do_not_take_is_refused_by_the_code_of_views() {
    block_on(async {
        let db = open();
        let names = "captrunc cloneCollectionAsCapped convertToCapped dataSize dbCheck emptycapped mapReduce \
                     planCacheClear planCacheClearFilters planCacheListFilters planCacheSetFilter renameCollection";
        for name in names.split_whitespace() {
            assert_eq!(db.fails(command(name, "c")).await, (166, "CommandNotSupportedOnView".to_owned()), "{name}");
        }
        for name in ["commitTransaction", "abortTransaction"] {
            assert_eq!(db.fails(command(name, 1)).await, (20, "IllegalOperation".to_owned()));
        }
        assert_eq!(db.fails(command("nothing", 1)).await, (59, "CommandNotFound".to_owned()));
    });
}

#[test]
fn sessions_and_what_is_done_already_are_accepted_and_mean_nothing() {
    block_on(async {
        for name in ["startSession", "endSessions", "killSessions", "refreshSessions", "compact", "reIndex"] {
            open().ok(command(name, 1)).await;
        }
    });
}

#[test]
fn hello_and_build_info_say_what_this_is() {
    block_on(async {
        let db = open();
        for name in ["hello", "isMaster", "ismaster", "buildInfo"] {
            let reply = db.ok(command(name, 1)).await;
            assert!(reply.get_bool("isWritablePrimary").unwrap() && reply.get_bool("ismaster").unwrap());
            assert_eq!(reply.get_i32("maxBsonObjectSize").unwrap(), 16_777_216);
            assert_eq!(reply.get_i32("maxWriteBatchSize").unwrap(), 100_000);
            assert_eq!(reply.get_i32("maxWireVersion").unwrap(), 21);
            assert_eq!(reply.get_str("version").unwrap(), env!("CARGO_PKG_VERSION"));
            // Drivers take it for a server that stands alone, and ask for no retries.
            assert!(!reply.contains_key("setName"));
        }
    });
}
