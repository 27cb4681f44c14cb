//! Templates and conditions: a sandboxed Jinja. There is no loader and no function that reaches files, the network or the
//! clock, so the result of a template depends on its scope only; a budget bounds its time and memory. Knows nothing of
//! flows but the names of their scope.

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

/// The error says why a text is not a valid template. `earlier` are the steps whose results it may use.
pub(crate) fn check(text: &str, earlier: &HashSet<&str>) -> Result<(), String> {
    if !is_template(text) {
        return Ok(());
    }
    if let Some(expression) = sole_expression(text) {
        return check_condition(expression, earlier);
    }
    Check::new(earlier).statement(&parse::template(text)?)
}

/// The error says why a text is not a valid condition.
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
    /// Starts the rendering of one step, whose texts share a budget.
    pub(crate) fn rendering(&self, scope: &Value) -> Rendering<'_> {
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
    /// Renders a text. A text that is one expression and nothing else becomes its value, of whatever type.
    pub(crate) fn render(&self, text: &str) -> Result<Value, String> {
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

    /// Renders to text, for fields that take nothing else.
    pub(crate) fn render_text(&self, text: &str) -> Result<String, String> {
        Ok(match self.render(text)? {
            Value::String(text) => text,
            Value::Null => String::new(),
            other => other.to_string(),
        })
    }

    /// Renders every text in a JSON value. Names of fields are not templates. The error begins with the pointer of the text.
    pub(crate) fn render_all(&self, value: &Value) -> Result<Value, String> {
        self.render_at(value, "")
    }

    fn render_at(&self, value: &Value, pointer: &str) -> Result<Value, String> {
        match value {
            Value::String(text) => {
                let at = |error| if pointer.is_empty() { error } else { format!("{pointer}: {error}") };
                self.render(text).map_err(at)
            }
            Value::Array(items) => {
                let items = items.iter().enumerate();
                let rendered = items.map(|(index, item)| self.render_at(item, &format!("{pointer}/{index}")));
                rendered.collect::<Result<_, _>>().map(Value::Array)
            }
            Value::Object(fields) => {
                let rendered = fields.iter().map(|(name, field)| {
                    Ok((name.clone(), self.render_at(field, &format!("{pointer}/{name}"))?))
                });
                rendered.collect::<Result<Map<_, _>, String>>().map(Value::Object)
            }
            plain => Ok(plain.clone()),
        }
    }

    pub(crate) fn condition(&self, text: &str) -> Result<bool, String> {
        let expression = parse::expression(text)?;
        Ok(self.evaluator().value(&expression)?.is_true())
    }

    fn value(&self, text: &str) -> Result<Value, String> {
        let expression = parse::expression(text)?;
        let value = self.evaluator().defined(&expression)?;
        self.budget.output(self.budget.measure(&value)?)?;
        serde_json::to_value(&value).map_err(|error| format!("`{}` is not a value: {error}", text.trim()))
    }

    fn evaluator(&self) -> Evaluator<'_> {
        Evaluator::new(self.environment, &self.scope, &self.budget)
    }
}

/// Whether a text has anything to render.
pub(crate) fn is_template(text: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|start| text.contains(start))
}

/// The expression of a text that is nothing but `{{ expression }}`.
fn sole_expression(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    let inner = inner.strip_prefix('-').unwrap_or(inner);
    let inner = inner.strip_suffix('-').unwrap_or(inner);
    let is_sole = !["{{", "}}", "{%", "{#"].iter().any(|mark| inner.contains(mark));
    is_sole.then_some(inner)
}
