//! Templates and conditions: minijinja without anything that could leave it. There is no loader and no function that
//! reaches a file, the network or the clock, so what a text becomes depends on its scope only; fuel bounds how long that
//! takes. Knows nothing of flows but which names a scope has.

use std::collections::HashSet;

use minijinja::{AutoEscape, Environment, Expression, UndefinedBehavior};
use serde_json::{Map, Value};

/// Instructions of one template or condition.
const FUEL: u64 = 50_000;
/// Bytes that one template may make.
const MOST: usize = 256 * 1024;
/// The names that a scope has.
pub(crate) const NAMES: [&str; 7] = ["event", "data", "steps", "account", "run", "now", "today"];
/// Functions of the engine that may be used.
const FUNCTIONS: [&str; 2] = ["range", "dict"];
/// Statements that may be used. None of them keeps a value: one that did could double it again and again.
const STATEMENTS: [&str; 6] = ["if", "elif", "else", "endif", "for", "endfor"];

pub(crate) struct Engine {
    environment: Environment<'static>,
}

impl Default for Engine {
    fn default() -> Self {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_fuel(Some(FUEL));
        for function in ["debug", "namespace"] {
            environment.remove_global(function);
        }
        Self { environment }
    }
}

impl Engine {
    /// Why a text cannot be a template, if so. `earlier` are the steps whose answers it may use.
    pub fn check(&self, text: &str, earlier: &HashSet<&str>) -> Result<(), String> {
        if !is_template(text) {
            return Ok(());
        }
        if let Some(statement) = foreign_statement(text) {
            let allowed = STATEMENTS.join(", ");
            return Err(format!("`{statement}` cannot be used here; statements are {allowed}"));
        }
        if let Some(expression) = sole_expression(text) {
            return self.check_condition(expression, earlier);
        }
        let template = self.environment.template_from_str(text).map_err(|error| explain(&error))?;
        check_names(&template.undeclared_variables(true), earlier)
    }

    /// Why a text cannot be a condition, if so.
    pub fn check_condition(&self, text: &str, earlier: &HashSet<&str>) -> Result<(), String> {
        let expression = self.expression(text)?;
        check_names(&expression.undeclared_variables(true), earlier)
    }

    /// What a text becomes. A text that is one expression and nothing else becomes its value, whatever type that has.
    pub fn render(&self, text: &str, scope: &Value) -> Result<Value, String> {
        if !is_template(text) {
            return Ok(Value::String(text.to_owned()));
        }
        if let Some(expression) = sole_expression(text) {
            return self.value(expression, scope);
        }
        let rendered = self.environment.render_str(text, scope).map_err(|error| explain(&error))?;
        if rendered.len() > MOST {
            return Err(format!("makes a text of more than {MOST} bytes"));
        }
        Ok(Value::String(rendered))
    }

    /// The same as text, for places that take nothing else.
    pub fn render_text(&self, text: &str, scope: &Value) -> Result<String, String> {
        Ok(match self.render(text, scope)? {
            Value::String(text) => text,
            Value::Null => String::new(),
            other => other.to_string(),
        })
    }

    /// Every text in a JSON value rendered. Names of fields are no templates. The error begins with the place.
    pub fn render_all(&self, value: &Value, scope: &Value) -> Result<Value, String> {
        self.render_at(value, scope, "")
    }

    fn render_at(&self, value: &Value, scope: &Value, place: &str) -> Result<Value, String> {
        match value {
            Value::String(text) => {
                let named = |error| if place.is_empty() { error } else { format!("{place}: {error}") };
                self.render(text, scope).map_err(named)
            }
            Value::Array(items) => {
                let items = items.iter().enumerate();
                let rendered =
                    items.map(|(index, item)| self.render_at(item, scope, &format!("{place}/{index}")));
                rendered.collect::<Result<_, _>>().map(Value::Array)
            }
            Value::Object(fields) => {
                let rendered = fields.iter().map(|(name, field)| {
                    Ok((name.clone(), self.render_at(field, scope, &format!("{place}/{name}"))?))
                });
                rendered.collect::<Result<Map<_, _>, String>>().map(Value::Object)
            }
            plain => Ok(plain.clone()),
        }
    }

    pub fn condition(&self, text: &str, scope: &Value) -> Result<bool, String> {
        let expression = self.expression(text)?;
        Ok(expression.eval(scope).map_err(|error| explain(&error))?.is_true())
    }

    /// The engine panics over what follows a `}}` that closes nothing, so such a text does not come to it.
    fn expression<'t>(&self, text: &'t str) -> Result<Expression<'_, 't>, String> {
        if closes_nothing(text) {
            return Err("`}}` closes nothing here".to_owned());
        }
        self.environment.compile_expression(text).map_err(|error| explain(&error))
    }

    fn value(&self, expression: &str, scope: &Value) -> Result<Value, String> {
        let compiled = self.expression(expression)?;
        let value = compiled.eval(scope).map_err(|error| explain(&error))?;
        if value.is_undefined() {
            return Err(format!("`{}` is not there", expression.trim()));
        }
        serde_json::to_value(&value).map_err(|error| format!("`{}` is no value: {error}", expression.trim()))
    }
}

/// Whether an expression has a `}}` outside of texts and brackets.
fn closes_nothing(expression: &str) -> bool {
    let (mut depth, mut bytes) = (0_isize, expression.bytes().peekable());
    while let Some(byte) = bytes.next() {
        match byte {
            b'}' if depth == 0 && bytes.peek() == Some(&b'}') => return true,
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            b'"' | b'\'' => {
                while let Some(inside) = bytes.next().filter(|inside| *inside != byte) {
                    if inside == b'\\' {
                        bytes.next();
                    }
                }
            }
            _ => {}
        }
    }
    false
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

/// The first statement that may not be used.
fn foreign_statement(text: &str) -> Option<&str> {
    let statements = text.split("{%").skip(1);
    let words = statements.filter_map(|rest| {
        let rest = rest.trim_start_matches(['-', '+']).trim_start();
        rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
    });
    words.into_iter().find(|word| !STATEMENTS.contains(word))
}

fn check_names(used: &HashSet<String>, earlier: &HashSet<&str>) -> Result<(), String> {
    let mut used: Vec<&String> = used.iter().collect();
    used.sort();
    for name in used {
        let mut parts = name.split('.');
        let first = parts.next().unwrap_or_default();
        if !NAMES.contains(&first) && !FUNCTIONS.contains(&first) {
            let known = NAMES.join(", ");
            return Err(format!("`{first}` is not known here; known are {known}"));
        }
        if let ("steps", Some(step)) = (first, parts.next())
            && !earlier.contains(step)
        {
            return Err(format!("there is no step `{step}` before this one"));
        }
    }
    Ok(())
}

/// In one line, without what the engine calls its templates.
fn explain(error: &minijinja::Error) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn scope() -> Value {
        json!({"data": {"number": "INV-1", "total": 121.5, "client": null}, "steps": {"ask": {"answer": {"n": 3}}}})
    }

    fn render(text: &str) -> Result<Value, String> {
        Engine::default().render(text, &scope())
    }

    #[test]
    fn a_sole_expression_keeps_its_type_and_other_texts_stay_texts() {
        assert_eq!(render("{{ data.total }}"), Ok(json!(121.5)));
        assert_eq!(render(" {{- steps.ask.answer -}} "), Ok(json!({"n": 3})));
        assert_eq!(render("{{ data.client }}"), Ok(Value::Null));
        assert_eq!(render("Invoice {{ data.number }}: {{ data.total }}"), Ok(json!("Invoice INV-1: 121.5")));
        assert_eq!(render("no template"), Ok(json!("no template")));
        assert_eq!(render("<b>{{ data.number }}</b>"), Ok(json!("<b>INV-1</b>")));
    }

    #[test]
    fn what_is_not_there_is_an_error_and_not_an_empty_text() {
        for text in ["{{ data.colour }}", "A {{ data.colour }}", "{{ data.colour.name }}"] {
            assert!(render(text).is_err(), "{text}");
        }
        assert_eq!(render("{{ data.colour or 'red' }}"), Ok(json!("red")));
        assert_eq!(render("{{ data.colour | default('red') }}"), Ok(json!("red")));
    }

    #[test]
    fn a_value_is_rendered_to_its_leaves_and_a_fault_has_its_place() {
        let engine = Engine::default();
        let value = json!({"a": ["{{ data.number }}", 1], "{{ b }}": true});
        assert_eq!(engine.render_all(&value, &scope()), Ok(json!({"a": ["INV-1", 1], "{{ b }}": true})));
        let error = engine.render_all(&json!({"a": [{"b": "{{ data.x }}"}]}), &scope()).unwrap_err();
        assert!(error.starts_with("/a/0/b: "), "{error}");
    }

    #[test]
    fn work_without_end_runs_out_of_fuel() {
        let text = "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}";
        assert!(render(text).unwrap_err().contains("fuel"));
    }

    #[test]
    fn names_statements_and_steps_are_checked_before_they_are_used() {
        let (engine, earlier) = (Engine::default(), HashSet::from(["ask"]));
        for right in ["{{ steps.ask.answer.n }}", "{% if data.x %}a{% endif %}", "plain", "{{ range(3) }}"] {
            assert_eq!(engine.check(right, &earlier), Ok(()), "{right}");
        }
        for wrong in [
            "{{ data. }}",
            "{{ evnt.type }}",
            "{{ steps.later.answer }}",
            "{% set x = 1 %}",
            "{% include 'a' %}",
            "{{ namespace() }}",
            "{% for x in data.a %}",
            "a {{ b",
        ] {
            assert!(engine.check(wrong, &earlier).is_err(), "{wrong}");
        }
        assert!(engine.check_condition("data.total > 100 and not steps.ask.error", &earlier).is_ok());
        assert!(engine.check_condition("data.total >", &earlier).is_err());
        for wrong in ["}}A", "1 }} A", "1 -}} A", "'a' }}", "(1) }} (2)", "\"\\\"\" }} b"] {
            assert!(engine.check_condition(wrong, &earlier).is_err(), "{wrong}");
        }
        for right in ["{'a': {'b': 1}} and 1", "data.x == '}} b'", "\"\\\"}}\" == data.x"] {
            assert_eq!(engine.check_condition(right, &earlier), Ok(()), "{right}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[ -~{}%#\u{e9}]{0,60}") {
            let engine = Engine::default();
            let _ = engine.check(&text, &HashSet::new());
            let _ = engine.render(&text, &scope());
            let _ = engine.condition(&text, &scope());
        }
    }
}
