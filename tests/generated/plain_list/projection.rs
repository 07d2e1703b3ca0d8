//! A projection of one document.

use bson::{Bson, Document};

/// The fields of `row` that `projection`, a document of dotted paths and 0 or 1, keeps. A path that ends with a NUL byte names a field that will be
/// computed: it is removed, and its parent keeps its position, even a scalar.
pub fn project(row: &Document, projection: &Document) -> Document {
    let inclusion = projection.iter().any(|(path, keep)| path != "_id" && keep.as_i32() == Some(1))
        || projection.keys().all(|path| path == "_id") && projection.get_i32("_id").ok() == Some(1);
    let mut paths: Vec<&str> = projection.keys().map(String::as_str).filter(|path| *path != "_id").collect();
    // An inclusion keeps the id unless it excludes it.
    let drops_id = projection.get_i32("_id").ok() == Some(0);
    if inclusion != drops_id {
        paths.push("_id");
    }
    if projection.is_empty() { row.clone() } else { object(row, &paths, inclusion) }
}

fn object(of: &Document, paths: &[&str], inclusion: bool) -> Document {
    let mut left = Document::new();
    for (name, value) in of {
        let below: Vec<&str> =
            paths.iter().filter_map(|path| path.strip_prefix(name.as_str())?.strip_prefix('.')).collect();
        let kept = if paths.contains(&name.as_str()) && !name.contains('.') {
            inclusion.then(|| value.clone())
        } else if name.contains('.') || below.is_empty() {
            // Paths do not reach names with a dot.
            (!inclusion).then(|| value.clone())
        } else {
            inner(value, &below, inclusion)
        };
        left.extend(kept.map(|value| (name.clone(), value)));
    }
    left
}

fn inner(value: &Bson, paths: &[&str], inclusion: bool) -> Option<Bson> {
    match value {
        Bson::Document(of) => Some(Bson::Document(object(of, paths, inclusion))),
        Bson::Array(items) => {
            Some(Bson::Array(items.iter().filter_map(|item| inner(item, paths, inclusion)).collect()))
        }
        scalar => (!inclusion || paths.iter().any(|path| path.ends_with('\0'))).then(|| scalar.clone()),
    }
}
