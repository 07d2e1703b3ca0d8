//! Converts an expression back to BSON.

use super::operators::{Binds, Operator, Syntax};
use super::tree::{Expr, Variable};
use crate::value::DocWriter;

impl Expr {
    /// Writes a field whose value parses to this expression. Bound variables get new names.
    pub fn write(&self, name: &str, writer: &mut DocWriter) {
        Unparser { writer, names: Vec::new() }.field(name, self);
    }
}

struct Unparser<'w> {
    writer: &'w mut DocWriter,
    /// The bound variables, innermost last.
    names: Vec<String>,
}

impl Unparser<'_> {
    fn field(&mut self, name: &str, expr: &Expr) {
        match expr {
            Expr::Constant(None) => {
                self.writer.string(name, "$$REMOVE");
            }
            Expr::Constant(Some(value)) => {
                self.writer.begin_doc(name).value("$const", value.view()).end();
            }
            Expr::Field(from, path) => {
                let mut text = "$$".to_owned();
                match from {
                    Variable::Root if path.is_empty() => text.push_str("ROOT"),
                    Variable::Root => text.clear(),
                    // The names of these are lost; code that shows a stage that reads one shows the original.
                    Variable::Outer(number) => text.push_str(&["outer", &number.to_string()].concat()),
                    Variable::Bound(at) => {
                        let place = self.names.len().checked_sub(at + 1);
                        text.push_str(place.and_then(|place| self.names.get(place)).map_or("", String::as_str));
                    }
                }
                for component in path {
                    text.push(if text.is_empty() { '$' } else { '.' });
                    text.push_str(component);
                }
                self.writer.string(name, &text);
            }
            Expr::Object(fields) => {
                self.writer.begin_doc(name);
                fields.iter().for_each(|(name, field)| self.field(name, field));
                self.writer.end();
            }
            Expr::Array(items) => self.array(name, items),
            Expr::Call(operator, arguments) => {
                self.writer.begin_doc(name);
                self.call(operator, arguments);
                self.writer.end();
            }
        }
    }

    fn array(&mut self, name: &str, items: &[Expr]) {
        self.writer.begin_array(name);
        items.iter().enumerate().for_each(|(at, item)| self.field(&at.to_string(), item));
        self.writer.end();
    }

    fn call(&mut self, operator: &Operator, arguments: &[Expr]) {
        if let Syntax::Positional(..) = operator.syntax {
            return self.array(operator.name(), arguments);
        }
        self.writer.begin_doc(operator.name());
        let bound = self.names.len();
        match &operator.syntax {
            Syntax::Named(names) => {
                for (at, (name, argument)) in names.names.iter().zip(arguments).enumerate() {
                    if at >= names.required && *argument == Expr::MISSING {
                        continue;
                    }
                    match names.binds {
                        _ if at + 1 != names.required => {}
                        Binds::Nothing => {}
                        Binds::Element => {
                            let name = variable(bound);
                            self.writer.string("as", &name);
                            self.names.push(name);
                        }
                        Binds::ValueAndThis => self.names.extend(["value".to_owned(), "this".to_owned()]),
                    }
                    self.field(name, argument);
                    self.names.truncate(bound);
                }
            }
            Syntax::Let => {
                let count = arguments.len().saturating_sub(1);
                self.writer.begin_doc("vars");
                arguments.iter().take(count).enumerate().for_each(|(at, one)| self.field(&variable(bound + at), one));
                self.writer.end();
                self.names.extend((bound..bound + count).map(variable));
                arguments.iter().skip(count).for_each(|body| self.field("in", body));
                self.names.truncate(bound);
            }
            // `$switch`.
            _ => {
                let (branches, default) = arguments.as_chunks();
                self.writer.begin_array("branches");
                for (at, [case, then]) in branches.iter().enumerate() {
                    self.writer.begin_doc(&at.to_string());
                    self.field("case", case);
                    self.field("then", then);
                    self.writer.end();
                }
                self.writer.end();
                default.iter().for_each(|default| self.field("default", default));
            }
        }
        self.writer.end();
    }
}

/// The name of a bound variable, by the number of variables around it.
fn variable(number: usize) -> String {
    format!("v{number}")
}
