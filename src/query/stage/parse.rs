//! The stages of a pipeline, parsed.

use super::accumulator::{Accumulation, COVARIANCES};
use super::foreign::Foreign;
use super::group::{GroupSpec, Key};
use super::out::Out;
use super::reshape::{RootSpec, UnwindSpec};
use super::source::DocumentSource;
use super::spec::{Shown, Spec, Step, visit_all};
use crate::error::{Error, ErrorCode, Result};
use crate::query::expr::{BoundExpr, Expr, Globals};
use crate::query::filter::Filter;
use crate::query::find_options::FindOptions;
use crate::query::projection::Projection;
use crate::query::sort::SortSpec;
use crate::value::{Doc, DocBuf, DocWriter, OwnedValue, Value, check_path};

/// The parts of a find in the order in which they run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Filter,
    Sort,
    Skip,
    Limit,
    Projection,
    /// Nothing more belongs to it.
    End,
}

/// A pipeline in the making.
pub(super) struct Parser<'g> {
    pub globals: &'g Globals,
    pub steps: Vec<Shown>,
    /// Where the rows go, if they are written.
    pub out: Option<Out>,
    /// The stage in front that gives documents of its own, if there is one.
    pub source: Option<DocumentSource>,
    /// What the steps need of other collections.
    pub others: Vec<Foreign>,
    /// How far the last find has come, its projection apart.
    part: Part,
}

impl<'g> Parser<'g> {
    /// One without steps.
    pub fn new(globals: &'g Globals) -> Parser<'g> {
        let (steps, others) = (Vec::new(), Vec::new());
        Parser { globals, steps, out: None, source: None, others, part: Part::Filter }
    }

    /// Adds the stages of a pipeline.
    ///
    /// Errors: as `Aggregation::parse`.
    pub fn stages(&mut self, pipeline: Doc<'_>) -> Result<()> {
        let count = pipeline.iter().count();
        for (place, (_, stage)) in pipeline.iter().enumerate() {
            self.stage_at(stage, place, place + 1 == count)?;
        }
        Ok(())
    }

    /// Adds the stage that stands at a place; answers its name.
    ///
    /// Errors: as `Aggregation::parse`.
    pub fn stage_at<'s>(&mut self, stage: Value<'s>, place: usize, is_last: bool) -> Result<&'s str> {
        let message = "Each element of the 'pipeline' array must be an object";
        let mut fields = stage.as_doc().ok_or_else(|| Error::type_mismatch(message))?.iter();
        let (Some((name, argument)), None) = (fields.next(), fields.next()) else {
            let message = "A pipeline stage specification object must contain exactly one field.";
            return Err(Error::new(ErrorCode::Location40323, message));
        };
        if name == "$geoNear" && place > 0 {
            let message = "$geoNear is only valid as the first stage in a pipeline.";
            return Err(Error::new(ErrorCode::Location40602, message));
        }
        if !self.out(name, argument, is_last)? {
            match self.source(name, argument, place)? {
                Some(found) => self.source = Some(found),
                None => self.stage(name, argument)?,
            }
        }
        Ok(name)
    }

    /// True where what was added so far reads a variable of a pipeline around.
    ///
    /// Errors: never.
    pub fn reads_outer(&mut self) -> Result<bool> {
        let (mut reads, count) = (false, self.globals.outer_count());
        let mut visit = |expr: &mut BoundExpr| {
            reads |= expr.reads().outer.is_some_and(|number| number < count);
            Ok(())
        };
        self.source.iter_mut().try_for_each(|source| source.visit(&mut visit))?;
        visit_all(&mut self.steps, &mut visit)?;
        Ok(reads)
    }

    /// Forgets what was added, and what it needs of other collections but for the first so many.
    pub fn forget(&mut self, known: usize) {
        (self.source, self.part) = (None, Part::Filter);
        self.others.truncate(known);
        self.steps.clear();
        self.begin_find();
    }

    /// A find, which shows itself.
    pub fn begin_find(&mut self) {
        self.steps.push((Step::Find(Box::default()), DocWriter::new().finish()));
    }

    /// Adds a stage, and what `explain` shows for it.
    pub fn push(&mut self, spec: impl Spec + 'static, name: &str, argument: Value<'_>) {
        self.push_step(Step::Other(Box::new(spec)), name, argument);
    }

    /// The same of a step.
    pub fn push_step(&mut self, step: Step, name: &str, argument: Value<'_>) {
        let mut shown = DocWriter::new();
        shown.value(name, argument);
        self.steps.push((step, shown.finish()));
    }

    /// The find that a part belongs to: the last one where that has not come further, else a new one.
    pub fn find(&mut self, part: Part) -> &mut FindOptions {
        // What leaves some rows out may do so before they are projected.
        let begins = |find: &FindOptions| {
            self.part > part || !find.projection.is_all() && !matches!(part, Part::Skip | Part::Limit)
        };
        if self.steps.last().is_none_or(|(step, _)| !matches!(step, Step::Find(find) if !begins(find))) {
            self.begin_find();
            self.part = Part::Filter;
        }
        if part != Part::Projection {
            self.part = part;
        }
        match self.steps.last_mut() {
            Some((Step::Find(find), _)) => find,
            _ => unreachable!("a find was pushed"),
        }
    }

    /// A sort. A later one takes the place of an earlier one; one of fields that a projection leaves as they are is done before it.
    pub fn sort_rows(&mut self, sort: SortSpec) {
        if let (true, Some((Step::Find(find), _))) = (self.part <= Part::Sort, self.steps.last_mut())
            && sort.parts().iter().all(|part| find.projection.leaves_root(part.path.first()))
        {
            find.sort = Some(sort);
            self.part = Part::Sort;
        } else {
            self.find(Part::Sort).sort = Some(sort);
        }
    }

    fn stage(&mut self, name: &str, argument: Value<'_>) -> Result<()> {
        let object = |code: ErrorCode, message: &str| argument.as_doc().ok_or_else(|| Error::new(code, message));
        match name {
            "$match" => {
                let filter = object(ErrorCode::Location15959, "the match filter must be an expression in an object")?;
                let filter = Filter::parse(filter, self.globals)?;
                let find = self.find(Part::Filter);
                find.filter = Filter::and(vec![std::mem::take(&mut find.filter), filter]);
            }
            "$sort" => {
                let sort = SortSpec::parse(argument, self.globals.collation())?;
                self.sort_rows(sort);
            }
            "$skip" => {
                let skip = count(name, argument, ErrorCode::Location5107200)?;
                let find = self.find(Part::Skip);
                find.skip = find.skip.saturating_add(skip);
            }
            "$limit" => {
                let limit = count(name, argument, ErrorCode::Location2107201)?;
                if limit == 0 {
                    return Err(Error::new(ErrorCode::Location15958, "the limit must be positive"));
                }
                let find = self.find(Part::Limit);
                find.limit = Some(find.limit.map_or(limit, |known| known.min(limit)));
            }
            "$project" => {
                let fields = object(ErrorCode::Location15969, "$project specification must be an object")?;
                if fields.is_empty() {
                    let message = "$project specification must have at least one field";
                    return Err(Error::new(ErrorCode::Location51272, message));
                }
                let projection = Projection::parse(fields, self.globals)?;
                self.find(Part::Projection).projection = projection;
            }
            "$addFields" | "$set" => {
                let fields = object(ErrorCode::Location40272, "$addFields specification stage must be an object")?;
                let projection = Projection::parse_set(fields, self.globals)?;
                self.find(Part::Projection).projection = projection;
            }
            "$unset" => {
                let mut dropped = DocWriter::new();
                for path in strings(argument)? {
                    check_path(path)?;
                    dropped.int32(path, 0);
                }
                let projection = Projection::parse(dropped.finish().view(), self.globals)?;
                self.find(Part::Projection).projection = projection;
            }
            "$group" => {
                let spec = self.group(argument)?;
                self.push_step(Step::Group(Box::new(spec)), name, argument);
            }
            "$count" => self.count_rows(argument)?,
            "$sortByCount" => {
                let code = match (argument.as_str(), argument.as_doc().map(|doc| doc.iter().next())) {
                    (Some(path), _) => (!path.starts_with('$')).then_some(ErrorCode::Location40148),
                    (_, Some(first)) => {
                        let is_operator = first.is_some_and(|(name, _)| name.starts_with('$'));
                        (!is_operator).then_some(ErrorCode::Location40147)
                    }
                    _ => Some(ErrorCode::Location40149),
                };
                if let Some(code) = code {
                    let message = "the sortByCount field must be a $-prefixed path or an expression object";
                    return Err(Error::new(code, message));
                }
                self.push_count(argument, "count")?;
                let mut sort = DocWriter::new();
                sort.int32("count", -1);
                self.sort_rows(SortSpec::parse(sort.finish().view().as_value(), self.globals.collation())?);
            }
            "$_internalInhibitOptimization" => {
                let message = "$_internalInhibitOptimization must take an empty object";
                if object(ErrorCode::FailedToParse, message)?.iter().next().is_some() {
                    return Err(Error::new(ErrorCode::FailedToParse, message));
                }
                // What is behind it is not pushed down, nor put together with what is before.
                self.begin_find();
                self.part = Part::End;
            }
            "$unwind" => {
                let spec = UnwindSpec::parse(argument)?;
                self.push(spec, name, argument);
            }
            "$bucket" => self.bucket(argument)?,
            "$bucketAuto" => self.bucket_auto(argument)?,
            "$densify" => self.densify(argument)?,
            "$downsample" => self.downsample(argument)?,
            "$facet" => self.facet(argument)?,
            "$fill" => self.fill(argument)?,
            "$geoNear" => self.near(argument)?,
            "$graphLookup" => self.graph_lookup(argument)?,
            "$lookup" => self.lookup(argument)?,
            "$unionWith" => self.union_with(argument)?,
            "$_internalUnpackBucket" | "$_unpackBucket" => self.unpack(name, argument)?,
            "$redact" => self.redact(argument)?,
            "$sample" => self.sample(argument)?,
            "$setWindowFields" => self.windows(argument)?,
            "$replaceWith" => {
                self.replace_root(argument)?;
            }
            "$replaceRoot" => {
                let options = object(ErrorCode::Location40229, "expected an object as specification for $replaceRoot")?;
                if options.iter().any(|(name, _)| name != "newRoot") {
                    return Err(Error::new(ErrorCode::Location40230, "unrecognized option to $replaceRoot stage"));
                }
                let new_root = options.get("newRoot").ok_or_else(|| {
                    Error::new(ErrorCode::Location40231, "no newRoot specified for the $replaceRoot stage")
                })?;
                self.replace_root(new_root)?;
            }
            _ => {
                let message = format!("Unrecognized pipeline stage name: '{name}'");
                return Err(Error::new(ErrorCode::Location40324, message));
            }
        }
        Ok(())
    }

    pub fn expr(&self, value: Value<'_>) -> Result<BoundExpr> {
        Ok(BoundExpr::new(Expr::parse(value, self.globals)?, self.globals.clone()))
    }

    pub fn constant(&self, value: OwnedValue) -> BoundExpr {
        BoundExpr::new(Expr::Constant(Some(value)), self.globals.clone())
    }

    /// A group that only counts its rows, in the field `name`.
    fn push_count(&mut self, key: Value<'_>, name: &str) -> Result<()> {
        let mut group = DocWriter::new();
        group.value("_id", key).begin_doc(name).int32("$sum", 1).end();
        self.push_group(&group.finish())
    }

    /// A `$group`.
    pub fn push_group(&mut self, group: &DocBuf) -> Result<()> {
        self.stage("$group", group.view().as_value())
    }

    fn replace_root(&mut self, new_root: Value<'_>) -> Result<()> {
        let spec = RootSpec(self.expr(new_root)?);
        let mut options = DocWriter::new();
        options.value("newRoot", new_root);
        self.push(spec, "$replaceRoot", options.finish().view().as_value());
        Ok(())
    }

    /// `$count`: one group of all rows, without its id.
    fn count_rows(&mut self, argument: Value<'_>) -> Result<()> {
        let refuse = |code, what: &str| Err(Error::new(code, format!("the count field must be {what}")));
        let name = match argument.as_str() {
            None => return refuse(ErrorCode::Location40156, "a non-empty string"),
            Some("") => return refuse(ErrorCode::Location40157, "a non-empty string"),
            Some(name) if name.starts_with('$') => {
                return refuse(ErrorCode::Location40158, "no path: it begins with $");
            }
            Some(name) if name.contains('\0') => return refuse(ErrorCode::Location40159, "a name without a null byte"),
            Some(name) if name.contains('.') => return refuse(ErrorCode::Location40160, "a name without a dot"),
            Some(name) => name,
        };
        self.push_count(Value::NULL, name)?;
        let mut without_id = DocWriter::new();
        without_id.int32("_id", 0);
        let projection = Projection::parse(without_id.finish().view(), self.globals)?;
        self.find(Part::Projection).projection = projection;
        Ok(())
    }

    pub fn group(&self, argument: Value<'_>) -> Result<GroupSpec> {
        let Some(doc) = argument.as_doc() else {
            return Err(Error::new(ErrorCode::Location15947, "a group's fields must be specified in an object"));
        };
        let (mut key, mut fields) = (None, Vec::new());
        for (name, value) in doc {
            if name == "_id" {
                if key.replace(self.key(value)?).is_some() {
                    return Err(Error::new(ErrorCode::Location15948, "a group's _id may only be specified once"));
                }
                continue;
            }
            let refuse = |code, problem: &str| Err(Error::new(code, format!("The field '{name}' {problem}")));
            if name.contains('.') {
                return refuse(ErrorCode::Location40235, "cannot contain '.'");
            }
            if name.starts_with('$') {
                return refuse(ErrorCode::Location40236, "cannot be an operator name");
            }
            let Some(accumulation) = value.as_doc() else {
                return refuse(ErrorCode::Location40234, "must be an accumulator object");
            };
            let mut operators = accumulation.iter();
            let (Some((operator, input)), None) = (operators.next(), operators.next()) else {
                return refuse(ErrorCode::Location40238, "must specify one accumulator");
            };
            if COVARIANCES.contains(&operator) {
                let message = ["unknown group operator '", operator, "'"].concat();
                return Err(Error::new(ErrorCode::Location15952, message));
            }
            fields.push(Accumulation::parse(name, operator, input, self.globals)?);
        }
        let key =
            key.ok_or_else(|| Error::new(ErrorCode::Location15955, "a group specification must include an _id"))?;
        let collation = self.globals.collation().clone();
        Ok(GroupSpec { key, fields, collation, unsorted_by: None, in_order: Vec::new() })
    }

    fn key(&self, value: Value<'_>) -> Result<Key> {
        match value.as_doc() {
            Some(object) if object.iter().next().is_some_and(|(name, _)| !name.starts_with('$')) => {
                let fields = object.iter().map(|(name, value)| Ok((name.into(), self.expr(value)?)));
                // Parsed as a whole as well: names of fields have rules of their own.
                self.expr(value)?;
                fields.collect::<Result<Vec<_>>>().map(Key::Object)
            }
            _ => self.expr(value).map(Key::One),
        }
    }
}

/// Checks the fields of a stage's argument.
///
/// Errors: 40415 for one that is not among `known`, 40414 where one of `required` is missing.
pub(super) fn check_fields(stage: &str, doc: Doc<'_>, known: &[&str], required: &[&str]) -> Result<()> {
    if let Some((name, _)) = doc.iter().find(|(name, _)| !known.contains(name)) {
        return Err(Error::new(ErrorCode::IDLUnknownField, format!("BSON field '{stage}.{name}' is an unknown field")));
    }
    match required.iter().find(|name| doc.get(name).is_none()) {
        None => Ok(()),
        Some(name) => {
            let message = format!("BSON field '{stage}.{name}' is missing but a required field");
            Err(Error::new(ErrorCode::IDLFailedToParse, message))
        }
    }
}

/// An integer that is not negative.
fn count(name: &str, value: Value<'_>, code: ErrorCode) -> Result<u64> {
    value.as_integer().and_then(|n| u64::try_from(n).ok()).ok_or_else(|| {
        Error::new(
            code,
            format!("invalid argument to {name} stage: expected a non-negative 64-bit integer in: {value:?}"),
        )
    })
}

/// A string or an array of strings.
fn strings(value: Value<'_>) -> Result<Vec<&str>> {
    let found: Option<Vec<&str>> = match value.as_array() {
        Some(array) if !array.is_empty() => array.iter().map(|(_, item)| item.as_str()).collect(),
        Some(_) => None,
        None => {
            let message = "$unset specification must be a string or an array";
            return value.as_str().map(|one| vec![one]).ok_or_else(|| Error::new(ErrorCode::Location31002, message));
        }
    };
    let message = "$unset specification must be a string or an array containing only string values";
    found.ok_or_else(|| Error::new(ErrorCode::Location31120, message))
}
