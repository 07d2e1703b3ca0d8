//! Shows a find in the middle of a pipeline as stages.

use crate::query::plan::FindCommand;
use crate::query::sort::SortSpec;
use crate::value::{DocBuf, DocWriter};

impl FindCommand {
    /// True if it has none of its parts, so that it shows no stage.
    pub(super) fn is_empty(&self) -> bool {
        self.filter.is_trivial()
            && self.sort.is_none()
            && self.skip == 0
            && self.limit.is_none()
            && self.projection.is_all()
    }

    /// Its parts as stages, in the order in which they run.
    pub(super) fn shown(&self) -> Vec<DocBuf> {
        let mut stages = Vec::new();
        let mut show = |write: &dyn Fn(&mut DocWriter)| {
            let mut stage = DocWriter::new();
            write(&mut stage);
            stages.push(stage.finish());
        };
        let limit = self.limit.and_then(|limit| i64::try_from(limit).ok());
        if !self.filter.is_trivial() {
            show(&|stage| {
                stage.begin_doc("$match");
                self.filter.write(stage);
                stage.end();
            });
        }
        if let Some(sort) = self.sort.as_ref().map(SortSpec::to_doc) {
            show(&|stage| {
                stage.begin_doc("$sort").doc("sortKey", sort.view());
                let kept = limit.and_then(|limit| limit.checked_add_unsigned(self.skip));
                kept.into_iter().for_each(|kept| {
                    stage.int64("limit", kept);
                });
                stage.end();
            });
        }
        if let (Ok(skip), true) = (i64::try_from(self.skip), self.skip > 0) {
            show(&|stage| {
                stage.int64("$skip", skip);
            });
        }
        if let (Some(limit), None) = (limit, &self.sort) {
            show(&|stage| {
                stage.int64("$limit", limit);
            });
        }
        if !self.projection.is_all() {
            show(&|stage| self.projection.write(self.projection.stage(), stage));
        }
        stages
    }
}
