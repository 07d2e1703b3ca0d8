//! An expression from its BSON form.

use super::datum::Datum;
use super::evaluate::{Scope, reach};
use super::globals::Globals;
use super::operators::{Arguments, Operator};
use super::tree::{Expr, Variable};
use crate::error::{Error, ErrorCode, Result};
use crate::value::{Doc, Value};

impl Expr {
    /// The expression that `value` describes; what is constant in it is evaluated.
    ///
    /// Errors: 168 for an unknown operator, 16020 and 28667 for a wrong number of arguments, 17276 for an unknown variable,
    /// and those of evaluation for what is constant.
    pub fn parse(value: Value<'_>, globals: &Globals) -> Result<Expr> {
        Parser { globals, names: Vec::new() }.value(value)
    }
}

struct Parser<'p> {
    globals: &'p Globals,
    /// The bound variables, the innermost last.
    names: Vec<String>,
}

/// The arguments of an operator that is written as an object, by name.
struct Named<'a> {
    operator: &'static str,
    doc: Doc<'a>,
}

impl<'a> Named<'a> {
    fn new(operator: &'static str, value: Value<'a>, code: ErrorCode) -> Result<Named<'a>> {
        let doc = value.as_doc().ok_or_else(|| {
            Error::new(
                code,
                format!("{operator} only supports an object as its argument, not {}", value.kind().alias()),
            )
        })?;
        Ok(Named { operator, doc })
    }

    fn allow(&self, names: &[&str], code: ErrorCode) -> Result<()> {
        match self.doc.iter().find(|(name, _)| !names.contains(name)) {
            Some((name, _)) => Err(Error::new(code, format!("Unrecognized parameter to {}: {name}", self.operator))),
            None => Ok(()),
        }
    }

    fn get(&self, name: &str, code: ErrorCode) -> Result<Value<'a>> {
        self.doc.get(name).ok_or_else(|| Error::new(code, format!("Missing '{name}' parameter to {}", self.operator)))
    }
}

impl Parser<'_> {
    fn value(&mut self, value: Value<'_>) -> Result<Expr> {
        if let Some(text) = value.as_str() {
            return match text.strip_prefix('$') {
                Some(path) => self.path(path),
                None => Ok(constant(value)),
            };
        }
        if let Some(array) = value.as_array() {
            let items = self.each(array)?;
            return self.folded(Expr::Array(items));
        }
        let Some(doc) = value.as_doc() else { return Ok(constant(value)) };
        match doc.iter().next() {
            Some((name, operand)) if name.starts_with('$') => {
                if doc.iter().nth(1).is_some() {
                    let message = format!("an object representing an expression must have exactly one field: {doc:?}");
                    return Err(Error::new(ErrorCode::Location15983, message));
                }
                self.call(name, operand)
            }
            _ => {
                let field = |(name, value): (&str, Value<'_>)| {
                    check_name(name)?;
                    if name.contains('.') {
                        let message = format!("FieldPath field names may not contain '.': {name}");
                        return Err(Error::new(ErrorCode::Location16412, message));
                    }
                    Ok((name.into(), self.value(value)?))
                };
                let fields = doc.iter().map(field).collect::<Result<_>>()?;
                self.folded(Expr::Object(fields))
            }
        }
    }

    fn each(&mut self, array: Doc<'_>) -> Result<Vec<Expr>> {
        array.iter().map(|(_, item)| self.value(item)).collect()
    }

    /// `path` without its first `$`: a field, or a variable with a second one.
    fn path(&self, path: &str) -> Result<Expr> {
        let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
        let Some(variable) = first.strip_prefix('$') else {
            return Ok(Expr::Field(Variable::Root, components(path)?));
        };
        let below = rest.map_or_else(|| Ok(Vec::new()), components)?;
        if let Some(at) = self.names.iter().rev().position(|name| name == variable) {
            return Ok(Expr::Field(Variable::Bound(at), below));
        }
        let value = match variable {
            "ROOT" | "CURRENT" => return Ok(Expr::Field(Variable::Root, below)),
            "NOW" => Datum::date(self.globals.now_ms()),
            "REMOVE" => Datum::Missing,
            _ => match self.globals.variable(variable) {
                Some(value) => value.as_ref().map(|value| value.view()).into(),
                None => {
                    let message = format!("Use of undefined variable: {variable}");
                    return Err(Error::new(ErrorCode::Location17276, message));
                }
            },
        };
        Ok(Expr::Constant(reach(value.view(), &below).view().map(Value::to_owned)))
    }

    fn call(&mut self, name: &str, operand: Value<'_>) -> Result<Expr> {
        if matches!(name, "$literal" | "$const") {
            return Ok(constant(operand));
        }
        let operator = Operator::named(name)?;
        let arguments = match operator.arguments() {
            Arguments::Positional(least, most) => self.positional(operator.name(), operand, least, most)?,
            Arguments::Named { names, required, positional } => {
                let is_named = operand.as_doc().is_some_and(|doc| doc.iter().all(|(name, _)| !name.starts_with('$')));
                let mut arguments = match (is_named, positional) {
                    (false, 1..) => self.positional(operator.name(), operand, positional, positional)?,
                    _ => self.named(operator.name(), operand, names, required)?,
                };
                arguments.resize(names.len(), Expr::MISSING);
                if operator.name() == "$getField" && arguments.get(1) == Some(&Expr::MISSING) {
                    arguments.truncate(1);
                    arguments.push(Expr::Field(Variable::Root, Vec::new()));
                }
                arguments
            }
            Arguments::Special => self.special(operator.name(), operand)?,
        };
        self.folded(Expr::Call(operator, arguments))
    }

    fn positional(&mut self, name: &str, operand: Value<'_>, least: usize, most: usize) -> Result<Vec<Expr>> {
        let arguments = match operand.as_array() {
            Some(array) => self.each(array)?,
            // `{$rand: {}}`
            None if most == 0 && operand.as_doc().is_some_and(Doc::is_empty) => Vec::new(),
            None => vec![self.value(operand)?],
        };
        let given = arguments.len();
        if (least..=most).contains(&given) {
            return Ok(arguments);
        }
        let (code, wanted) = if least == most {
            (ErrorCode::Location16020, format!("exactly {least}"))
        } else {
            (ErrorCode::Location28667, format!("at least {least}, and at most {most},"))
        };
        Err(Error::new(code, format!("Expression {name} takes {wanted} arguments. {given} were passed in.")))
    }

    fn named(&mut self, name: &'static str, operand: Value<'_>, names: &[&str], required: usize) -> Result<Vec<Expr>> {
        let (shape, unknown, missing) = match name {
            "$cond" => (ErrorCode::Location16020, ErrorCode::Location17083, ErrorCode::Location17080),
            "$dateTrunc" => (ErrorCode::Location5439007, ErrorCode::Location5439008, ErrorCode::Location5439009),
            "$dateDiff" => (ErrorCode::Location5166301, ErrorCode::Location5166302, ErrorCode::Location5166303),
            "$dateAdd" | "$dateSubtract" => {
                (ErrorCode::Location5166400, ErrorCode::Location5166401, ErrorCode::Location5166402)
            }
            "$getField" => (ErrorCode::Location3041701, ErrorCode::Location3041701, ErrorCode::Location3041702),
            _ => (ErrorCode::Location40535, ErrorCode::Location40535, ErrorCode::Location40539),
        };
        let given = Named::new(name, operand, shape)?;
        given.allow(names, unknown)?;
        let argument = |(at, argument): (usize, &&str)| match given.doc.get(argument) {
            Some(value) => self.value(value),
            None if at >= required => Ok(Expr::MISSING),
            None => given.get(argument, missing).map(|_| Expr::MISSING),
        };
        names.iter().enumerate().map(argument).collect()
    }

    /// The operators with a syntax of their own, as the arguments that their functions expect.
    fn special(&mut self, name: &'static str, operand: Value<'_>) -> Result<Vec<Expr>> {
        match name {
            "$switch" => self.switch(name, operand),
            "$let" => {
                let given = Named::new(name, operand, ErrorCode::Location16874)?;
                given.allow(&["vars", "in"], ErrorCode::Location16875)?;
                let variables = given.get("vars", ErrorCode::Location16876)?;
                let body = given.get("in", ErrorCode::Location16877)?;
                let variables = Named::new(name, variables, ErrorCode::FailedToParse)?.doc;
                let names = variables.iter().map(|(name, _)| name);
                let values = variables.iter().map(|(_, value)| self.value(value));
                let values: Vec<Expr> = values.collect::<Result<_>>()?;
                self.bound(values, names, body)
            }
            "$map" => {
                let given = Named::new(name, operand, ErrorCode::Location16878)?;
                given.allow(&["input", "as", "in"], ErrorCode::Location16879)?;
                let input = self.value(given.get("input", ErrorCode::Location16880)?)?;
                let body = given.get("in", ErrorCode::Location16882)?;
                self.bound(vec![input], [name_of(&given)?].into_iter(), body)
            }
            "$filter" => {
                let given = Named::new(name, operand, ErrorCode::Location28646)?;
                given.allow(&["input", "as", "cond", "limit"], ErrorCode::Location28647)?;
                let input = self.value(given.get("input", ErrorCode::Location28648)?)?;
                let limit = given.doc.get("limit").map_or(Ok(Expr::MISSING), |limit| self.value(limit))?;
                let test = given.get("cond", ErrorCode::Location28650)?;
                self.bound(vec![input, limit], [name_of(&given)?].into_iter(), test)
            }
            _ => {
                let given = Named::new(name, operand, ErrorCode::Location40075)?;
                given.allow(&["input", "initialValue", "in"], ErrorCode::Location40076)?;
                let input = self.value(given.get("input", ErrorCode::Location40077)?)?;
                let initial = self.value(given.get("initialValue", ErrorCode::Location40078)?)?;
                let body = given.get("in", ErrorCode::Location40079)?;
                self.bound(vec![input, initial], ["value", "this"].into_iter(), body)
            }
        }
    }

    /// `outside`, and behind it `body`, parsed with more variables.
    fn bound<'n>(
        &mut self,
        mut outside: Vec<Expr>,
        names: impl Iterator<Item = &'n str>,
        body: Value<'_>,
    ) -> Result<Vec<Expr>> {
        let known = self.names.len();
        for name in names {
            if !name.starts_with(|first: char| first.is_ascii_lowercase() || !first.is_ascii()) && name != "CURRENT" {
                let message = format!("'{name}' starts with an invalid character for a user variable name");
                return Err(Error::new(ErrorCode::FailedToParse, message));
            }
            self.names.push(name.to_owned());
        }
        outside.push(self.value(body)?);
        self.names.truncate(known);
        Ok(outside)
    }

    fn switch(&mut self, name: &'static str, operand: Value<'_>) -> Result<Vec<Expr>> {
        let given = Named::new(name, operand, ErrorCode::Location40060)?;
        given.allow(&["branches", "default"], ErrorCode::Location40067)?;
        let none = || Error::new(ErrorCode::Location40068, "$switch requires at least one branch");
        let branches = given.doc.get("branches").ok_or_else(none)?;
        let branches = branches
            .as_array()
            .ok_or_else(|| Error::new(ErrorCode::Location40061, "$switch expected an array for 'branches'"))?;
        let mut arguments = Vec::new();
        for (_, branch) in branches {
            let branch = Named::new(name, branch, ErrorCode::Location40062)?;
            branch.allow(&["case", "then"], ErrorCode::Location40063)?;
            arguments.push(self.value(branch.get("case", ErrorCode::Location40064)?)?);
            arguments.push(self.value(branch.get("then", ErrorCode::Location40065)?)?);
        }
        if arguments.is_empty() {
            return Err(none());
        }
        if let Some(default) = given.doc.get("default") {
            arguments.push(self.value(default)?);
        }
        Ok(arguments)
    }

    /// The constant that `expr` comes to, where all its parts are constant.
    fn folded(&self, expr: Expr) -> Result<Expr> {
        let is_constant = |expr: &Expr| matches!(expr, Expr::Constant(_));
        let constant = match &expr {
            Expr::Object(fields) => fields.iter().all(|(_, field)| is_constant(field)),
            Expr::Array(items) => items.iter().all(is_constant),
            Expr::Call(operator, items) => items.iter().all(is_constant) && operator.name() != "$rand",
            Expr::Constant(_) | Expr::Field(..) => false,
        };
        if !constant {
            return Ok(expr);
        }
        let env = self.globals.env();
        let value = expr.evaluate(&Scope::of(Doc::EMPTY, &**env))?.view().map(Value::to_owned);
        Ok(Expr::Constant(value))
    }
}

fn constant(value: Value<'_>) -> Expr {
    Expr::Constant(Some(value.to_owned()))
}

/// What `as` names the element.
fn name_of<'a>(given: &Named<'a>) -> Result<&'a str> {
    match given.doc.get("as") {
        None => Ok("this"),
        Some(name) => name.as_str().ok_or_else(|| {
            Error::new(ErrorCode::FailedToParse, format!("'as' of {} must be a string", given.operator))
        }),
    }
}

/// The names of a dotted path.
fn components(path: &str) -> Result<Vec<Box<str>>> {
    if path.is_empty() {
        return Err(Error::new(ErrorCode::Location16872, "'$' by itself is not a valid FieldPath"));
    }
    path.split('.')
        .map(|name| {
            check_name(name)?;
            Ok(name.into())
        })
        .collect()
}

fn check_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::new(ErrorCode::Location15998, "FieldPath field names may not be empty strings"));
    }
    if name.starts_with('$') {
        let message = format!("FieldPath field names may not start with '$': {name}");
        return Err(Error::new(ErrorCode::Location16410, message));
    }
    Ok(())
}
