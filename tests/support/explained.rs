//! Parts of `explain` replies.

use bson::{Document, RawDocumentBuf, rawdoc};

use super::Db;

pub async fn explain(db: &Db, command: RawDocumentBuf) -> Explained {
    Explained(db.ok(rawdoc! { "explain": command }).await)
}

/// The reply to an explained command.
pub struct Explained(pub Document);

impl Explained {
    pub fn stages(&self) -> Vec<&Document> {
        self.0.get_array("stages").unwrap().iter().map(|stage| stage.as_document().unwrap()).collect()
    }
    /// The argument of a stage.
    pub fn stage(&self, name: &str) -> &Document {
        self.stages().into_iter().find_map(|stage| stage.get_document(name).ok()).unwrap()
    }
    /// The names of the stages.
    pub fn names(&self) -> Vec<&str> {
        self.stages().into_iter().map(|stage| stage.keys().next().unwrap().as_str()).collect()
    }
    pub fn unpack(&self) -> &Document {
        self.stage("$_internalUnpackBucket")
    }
    pub fn plan(&self) -> &Document {
        self.stage("$cursor").get_document("queryPlanner").unwrap().get_document("winningPlan").unwrap()
    }
    pub fn stats(&self) -> &Document {
        self.stage("$cursor").get_document("executionStats").unwrap()
    }
    /// Counts of buckets read, passed and unpacked, and of unpacked measurements.
    pub fn counts(&self) -> [i64; 4] {
        let stats = self.stats();
        let unpack = self.stages().into_iter().find(|stage| stage.contains_key("$_internalUnpackBucket")).unwrap();
        [
            stats.get_i64("totalDocsExamined").unwrap(),
            stats.get_i64("nReturned").unwrap(),
            unpack.get_i64("nBucketsUnpacked").unwrap(),
            unpack.get_i64("nMeasurementsExamined").unwrap(),
        ]
    }
    /// The number of rows of the last stage.
    pub fn returned(&self) -> i64 {
        self.stages().last().unwrap().get_i64("nReturned").unwrap()
    }
}
