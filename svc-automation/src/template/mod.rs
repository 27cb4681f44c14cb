//! Templates and conditions: the language of Jinja without anything that could leave it. There is no loader and no
//! function that reaches a file, the network or the clock, so what a text becomes depends on its scope only; a budget
//! bounds the time and the memory that it takes. Knows nothing of flows but which names a scope has.

mod budget;
mod check;
mod evaluate;
mod filters;
mod operators;
mod parse;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use minijinja::{Environment, UndefinedBehavior};
use serde_json::{Map, Value};

use budget::Budget;
use check::Check;
use evaluate::Evaluator;

/// The names that a scope has.
pub(crate) const NAMES: [&str; 7] = ["event", "data", "steps", "account", "run", "now", "today"];
/// Statements that may be used.
const STATEMENTS: [&str; 6] = ["if", "elif", "else", "endif", "for", "endfor"];

/// Why a text cannot be a template, if so. `earlier` are the steps whose answers it may use.
pub(crate) fn check(text: &str, earlier: &HashSet<&str>) -> Result<(), String> {
    if !is_template(text) {
        return Ok(());
    }
    if let Some(expression) = sole_expression(text) {
        return check_condition(expression, earlier);
    }
    Check::new(earlier).statement(&parse::template(text)?)
}

/// Why a text cannot be a condition, if so.
pub(crate) fn check_condition(text: &str, earlier: &HashSet<&str>) -> Result<(), String> {
    Check::new(earlier).expression(&parse::expression(text)?)
}

/// The filters and tests of templates.
pub(crate) struct Engine {
    environment: Environment<'static>,
}

impl Default for Engine {
    fn default() -> Self {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
        Self { environment }
    }
}

impl Engine {
    /// Begins to render what belongs together: the texts of one step share a budget.
    pub fn rendering(&self, scope: &Value) -> Rendering<'_> {
        let scope = minijinja::Value::from_serialize(scope);
        Rendering { environment: &self.environment, scope, budget: Budget::default() }
    }
}

/// Renders the texts of one step.
pub(crate) struct Rendering<'e> {
    environment: &'e Environment<'static>,
    scope: minijinja::Value,
    budget: Budget,
}

impl Rendering<'_> {
    /// What a text becomes. A text that is one expression and nothing else becomes its value, whatever type that has.
    pub fn render(&self, text: &str) -> Result<Value, String> {
        let rendered = if !is_template(text) {
            text.to_owned()
        } else if let Some(expression) = sole_expression(text) {
            return self.value(expression);
        } else {
            let template = parse::template(text)?;
            self.evaluator().text(&template)?
        };
        self.budget.output(rendered.len())?;
        Ok(Value::String(rendered))
    }

    /// The same as text, for places that take nothing else.
    pub fn render_text(&self, text: &str) -> Result<String, String> {
        Ok(match self.render(text)? {
            Value::String(text) => text,
            Value::Null => String::new(),
            other => other.to_string(),
        })
    }

    /// Every text in a JSON value rendered. Names of fields are no templates. The error begins with the place.
    pub fn render_all(&self, value: &Value) -> Result<Value, String> {
        self.render_at(value, "")
    }

    fn render_at(&self, value: &Value, place: &str) -> Result<Value, String> {
        match value {
            Value::String(text) => {
                let named = |error| if place.is_empty() { error } else { format!("{place}: {error}") };
                self.render(text).map_err(named)
            }
            Value::Array(items) => {
                let items = items.iter().enumerate();
                let rendered = items.map(|(index, item)| self.render_at(item, &format!("{place}/{index}")));
                rendered.collect::<Result<_, _>>().map(Value::Array)
            }
            Value::Object(fields) => {
                let rendered = fields.iter().map(|(name, field)| {
                    Ok((name.clone(), self.render_at(field, &format!("{place}/{name}"))?))
                });
                rendered.collect::<Result<Map<_, _>, String>>().map(Value::Object)
            }
            plain => Ok(plain.clone()),
        }
    }

    pub fn condition(&self, text: &str) -> Result<bool, String> {
        let expression = parse::expression(text)?;
        Ok(self.evaluator().value(&expression)?.is_true())
    }

    fn value(&self, text: &str) -> Result<Value, String> {
        let expression = parse::expression(text)?;
        let value = self.evaluator().present(&expression)?;
        self.budget.output(self.budget.measure(&value)?)?;
        serde_json::to_value(&value).map_err(|error| format!("`{}` is no value: {error}", text.trim()))
    }

    fn evaluator(&self) -> Evaluator<'_> {
        Evaluator::new(self.environment, &self.scope, &self.budget)
    }
}

/// Whether there is anything to render.
pub(crate) fn is_template(text: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|start| text.contains(start))
}

/// The expression of a text that is nothing but `{{ expression }}`.
fn sole_expression(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    let inner = inner.strip_prefix('-').unwrap_or(inner);
    let inner = inner.strip_suffix('-').unwrap_or(inner);
    let alone = !["{{", "}}", "{%", "{#"].iter().any(|mark| inner.contains(mark));
    alone.then_some(inner)
}
