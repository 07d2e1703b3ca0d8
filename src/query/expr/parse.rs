//! Parses an expression from BSON.

use super::datum::Datum;
use super::evaluate::reach;
use super::globals::{Globals, Known};
use super::operators::{Binds, Names, Op, Operator, Syntax};
use super::tree::{Expr, Variable};
use crate::error::{Error, ErrorCode, Result};
use crate::listed::IntoList;
use crate::value::{Doc, Value, check_name, check_path};

impl Expr {
    /// The expression that `value` describes. Constant parts are evaluated.
    ///
    /// Errors: 168 for an unknown operator; 16020 and 28667 for a wrong number of arguments; 17276 for an unknown
    /// variable; those of evaluating constant parts.
    pub fn parse(value: Value<'_>, globals: &Globals) -> Result<Expr> {
        ExprParser { globals, names: Vec::new() }.value(value)
    }

    /// The same with the current object as a variable of its own, for `BoundExpr::value_within`.
    ///
    /// Errors: those of `parse`.
    pub fn parse_within(value: Value<'_>, globals: &Globals) -> Result<Expr> {
        ExprParser { globals, names: vec!["CURRENT".to_owned()] }.value(value)
    }

    /// Checks the name of a field of an object of expressions.
    ///
    /// Errors: 16412 for a dot, and those of `check_name`.
    pub fn check_field(name: &str) -> Result<()> {
        check_name(name)?;
        if name.contains('.') {
            return Err(problem(ErrorCode::Location16412, "FieldPath", "must not contain a dot:", name));
        }
        Ok(())
    }
}

struct ExprParser<'p> {
    globals: &'p Globals,
    /// The bound variables, innermost last.
    names: Vec<String>,
}

/// The arguments of an operator that are written as an object, by name.
struct NamedArguments<'a> {
    operator: &'static str,
    doc: Doc<'a>,
}

impl<'a> NamedArguments<'a> {
    /// Codes for a value that is not an object and for an unknown name.
    fn new(
        operator: &'static str,
        value: Value<'a>,
        names: &[&str],
        codes: [ErrorCode; 2],
    ) -> Result<NamedArguments<'a>> {
        let [shape, unknown] = codes;
        let doc =
            value.as_doc().ok_or_else(|| problem(shape, operator, "needs an object, not", value.kind().alias()))?;
        match doc.iter().find(|(name, _)| !names.contains(name)) {
            Some((name, _)) => Err(problem(unknown, operator, "has the unknown parameter", name)),
            None => Ok(NamedArguments { operator, doc }),
        }
    }

    fn get(&self, name: &str, code: ErrorCode) -> Result<Value<'a>> {
        self.doc.get(name).ok_or_else(|| problem(code, self.operator, "lacks the parameter", name))
    }
}

#[cold]
#[inline(never)]
fn problem(code: ErrorCode, subject: &str, what: &str, name: &str) -> Error {
    Error::new(code, format!("{subject} {what} '{name}'"))
}

impl ExprParser<'_> {
    fn value(&mut self, value: Value<'_>) -> Result<Expr> {
        if let Some(path) = value.as_str().and_then(|text| text.strip_prefix('$')) {
            return self.path(path);
        }
        if let Some(array) = value.as_array() {
            let items = self.each(array)?;
            return Expr::Array(items).with_constants_evaluated(self.globals);
        }
        let Some(doc) = value.as_doc() else { return Ok(constant(value)) };
        let mut fields = Vec::new();
        for (name, value) in doc {
            if name.starts_with('$') && fields.is_empty() {
                if doc.iter().nth(1).is_some() {
                    return Err(problem(
                        ErrorCode::Location15983,
                        "An expression",
                        "must be the only field of its object:",
                        name,
                    ));
                }
                return self.call(name, value);
            }
            Expr::check_field(name)?;
            fields.push((name.into(), self.value(value)?));
        }
        Expr::Object(fields).with_constants_evaluated(self.globals)
    }

    fn each(&mut self, array: Doc<'_>) -> Result<Vec<Expr>> {
        let mut items = Vec::new();
        for (_, item) in array {
            items.push(self.value(item)?);
        }
        Ok(items)
    }

    /// `path` is without its first `$`: a field, or with a second one a variable.
    fn path(&self, path: &str) -> Result<Expr> {
        let named = path.strip_prefix('$');
        let mut below = components(named.unwrap_or(path))?;
        // A field belongs to the current object.
        let variable = named.map(|_| below.remove(0));
        let variable = variable.as_deref().unwrap_or("CURRENT");
        if let Some(at) = self.names.iter().rev().position(|name| name == variable) {
            return Ok(Expr::Field(Variable::Bound(at), below));
        }
        let value = match variable {
            "ROOT" | "CURRENT" => return Ok(Expr::Field(Variable::Root, below)),
            "NOW" => Datum::date(self.globals.now_ms()),
            "REMOVE" => Datum::Missing,
            _ => match self.globals.variable(variable) {
                Some(Known::Outer(number)) => {
                    self.globals.outer().note(*number);
                    return Ok(Expr::Field(Variable::Outer(*number), below));
                }
                Some(Known::Value(value)) => value.as_ref().map(|value| value.view()).into(),
                None => return Err(problem(ErrorCode::Location17276, "Use of", "undefined variable", variable)),
            },
        };
        Ok(Expr::Constant(reach(value.view(), &below).view().map(Value::to_owned)))
    }

    fn call(&mut self, name: &str, operand: Value<'_>) -> Result<Expr> {
        if matches!(name, "$literal" | "$const") {
            return Ok(constant(operand));
        }
        let operator = Operator::named(name)?;
        let arguments = match &operator.syntax {
            Syntax::Positional(least, most) => self.positional(operator.name(), operand, *least, *most)?,
            Syntax::Named(names) => {
                let is_named = operand.as_doc().is_some_and(|doc| doc.iter().all(|(name, _)| !name.starts_with('$')));
                let mut arguments = if names.positional > 0 && !is_named {
                    self.positional(operator.name(), operand, names.positional, names.positional)?
                } else {
                    self.named(operator.name(), operand, names)?
                };
                arguments.resize(names.names.len(), Expr::MISSING);
                if let (Op::GetField, Some(input @ &mut Expr::MISSING)) = (operator.op, arguments.last_mut()) {
                    *input = self.path("$CURRENT")?;
                }
                // A field of the document: nothing else of it needs to be read.
                if let (Op::GetField, [Expr::Constant(Some(name)), Expr::Field(Variable::Root, path)]) =
                    (operator.op, arguments.as_slice())
                    && let (Some(name), []) = (name.view().as_str(), path.as_slice())
                    && !name.is_empty()
                    && !name.starts_with('$')
                    && !name.contains('.')
                {
                    return Ok(Expr::Field(Variable::Root, vec![name.into()]));
                }
                arguments
            }
            Syntax::Let => self.bindings(operand)?,
            Syntax::Switch => self.switch(operand)?,
        };
        if operator.op == Op::Rand {
            self.globals.note_random();
        }
        Expr::Call(operator, arguments).with_constants_evaluated(self.globals)
    }

    fn positional(&mut self, name: &str, operand: Value<'_>, least: usize, most: usize) -> Result<Vec<Expr>> {
        let arguments = match operand.as_array() {
            Some(array) => self.each(array)?,
            // `{$rand: {}}`
            None if most == 0 && operand.as_doc().is_some_and(Doc::is_empty) => Vec::new(),
            None => vec![self.value(operand)?],
        };
        let named = arguments.len();
        if (least..=most).contains(&named) {
            return Ok(arguments);
        }
        let code = if least == most { ErrorCode::Location16020 } else { ErrorCode::Location28667 };
        let least = if least == most { String::new() } else { format!("{least} to ") };
        let plural = if most == 1 { "" } else { "s" };
        let message = format!("Expression {name} takes {least}{most} argument{plural}, not {named}");
        Err(Error::new(code, message))
    }

    fn named(&mut self, operator: &'static str, operand: Value<'_>, names: &Names) -> Result<Vec<Expr>> {
        let [shape, unknown, missing @ ..] = names.codes else { return Ok(Vec::new()) };
        let mut known = names.names.to_vec();
        if names.binds == Binds::Element {
            known.push("as");
        }
        let named = NamedArguments::new(operator, operand, &known, [*shape, *unknown])?;
        let mut arguments = Vec::new();
        for (at, name) in names.names.iter().enumerate() {
            let code = missing.get(at).or(missing.last()).unwrap_or(shape);
            let value = match named.doc.get(name) {
                None if at >= names.required => {
                    arguments.push(Expr::MISSING);
                    continue;
                }
                _ => named.get(name, *code)?,
            };
            let bound = self.names.len();
            match names.binds {
                _ if at + 1 != names.required => {}
                Binds::Nothing => {}
                Binds::Element => {
                    self.bind(named.doc.get("as").map_or("this", |name| name.as_str().unwrap_or_default()))?;
                }
                Binds::ValueAndThis => {
                    self.bind("value")?;
                    self.bind("this")?;
                }
            }
            arguments.push(self.value(value)?);
            self.names.truncate(bound);
        }
        Ok(arguments)
    }

    /// Makes a variable known until the names are truncated.
    fn bind(&mut self, name: &str) -> Result<()> {
        if !name.starts_with(|first: char| first.is_ascii_lowercase() || !first.is_ascii()) && name != "CURRENT" {
            return Err(problem(ErrorCode::FailedToParse, "A user variable", "cannot be named", name));
        }
        self.names.push(name.to_owned());
        Ok(())
    }

    /// The arguments of `$let`: values, then the expression that uses them.
    fn bindings(&mut self, operand: Value<'_>) -> Result<Vec<Expr>> {
        let codes = [ErrorCode::Location16874, ErrorCode::Location16875];
        let named = NamedArguments::new("$let", operand, &["vars", "in"], codes)?;
        let variables = named.get("vars", ErrorCode::Location16876)?;
        let body = named.get("in", ErrorCode::Location16877)?;
        let variables = variables
            .as_doc()
            .ok_or_else(|| problem(ErrorCode::Location16876, "$let", "needs an object as", "vars"))?;
        let mut arguments = self.each(variables)?;
        let bound = self.names.len();
        for (name, _) in variables {
            self.bind(name)?;
        }
        arguments.push(self.value(body)?);
        self.names.truncate(bound);
        Ok(arguments)
    }

    /// The arguments of `$switch`: pairs of a case and its value, then the default, if there is one.
    fn switch(&mut self, operand: Value<'_>) -> Result<Vec<Expr>> {
        let codes = [ErrorCode::Location40060, ErrorCode::Location40067];
        let named = NamedArguments::new("$switch", operand, &["branches", "default"], codes)?;
        let branches = named.get("branches", ErrorCode::Location40068)?;
        let branches = branches
            .as_array()
            .ok_or_else(|| problem(ErrorCode::Location40061, "$switch", "needs an array as", "branches"))?;
        let mut arguments = Vec::new();
        for (_, branch) in branches {
            let codes = [ErrorCode::Location40062, ErrorCode::Location40063];
            let branch = NamedArguments::new("$switch", branch, &["case", "then"], codes)?;
            arguments.push(self.value(branch.get("case", ErrorCode::Location40064)?)?);
            arguments.push(self.value(branch.get("then", ErrorCode::Location40065)?)?);
        }
        if arguments.is_empty() {
            return Err(problem(ErrorCode::Location40068, "$switch", "needs at least one of", "branches"));
        }
        if let Some(default) = named.doc.get("default") {
            arguments.push(self.value(default)?);
        }
        Ok(arguments)
    }
}

fn constant(value: Value<'_>) -> Expr {
    Expr::Constant(Some(value.to_owned()))
}

/// The names of a dotted path.
fn components(path: &str) -> Result<Vec<Box<str>>> {
    if path.is_empty() {
        return Err(Error::new(ErrorCode::Location16872, "'$' by itself is not a valid FieldPath"));
    }
    check_path(path)?;
    Ok(path.split('.').map(Into::into).listed())
}
