//! Checks a template before it is used: everything that can be known without the values of its names.

use std::collections::HashSet;

use minijinja::machinery::ast::{CallArg, Expr, Stmt};

use super::evaluate::{is_cycle, path};
use super::filters::FILTERS;

/// The names of a scope.
const NAMES: [&str; 7] = ["event", "data", "steps", "account", "run", "now", "today"];
/// Statements that may be used.
const STATEMENTS: [&str; 6] = ["if", "elif", "else", "endif", "for", "endfor"];
/// Functions that may be used.
const FUNCTIONS: [&str; 2] = ["range", "dict"];
/// Tests that may be used.
const TESTS: &[&str] = &[
    "boolean",
    "defined",
    "divisibleby",
    "endingwith",
    "eq",
    "equalto",
    "escaped",
    "even",
    "false",
    "filter",
    "float",
    "ge",
    "greaterthan",
    "gt",
    "in",
    "int",
    "integer",
    "iterable",
    "le",
    "lessthan",
    "lower",
    "lt",
    "mapping",
    "ne",
    "none",
    "number",
    "odd",
    "safe",
    "sameas",
    "sequence",
    "startingwith",
    "string",
    "test",
    "true",
    "undefined",
    "upper",
    "==",
    "!=",
];
/// The same as in `evaluate`, so that a template which passes the check can be evaluated.
const MAX_DEPTH: usize = 200;

pub(super) struct Check<'c> {
    earlier: &'c HashSet<&'c str>,
    /// The names that the enclosing loops bind.
    local: Vec<&'c str>,
    depth: usize,
}

impl<'c> Check<'c> {
    pub(super) fn new(earlier: &'c HashSet<&'c str>) -> Self {
        Self { earlier, local: Vec::new(), depth: 0 }
    }

    fn enter(&mut self) -> Result<(), String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err("it is nested too deeply".to_owned()) } else { Ok(()) }
    }

    fn statements(&mut self, statements: &'c [Stmt<'c>]) -> Result<(), String> {
        statements.iter().try_for_each(|statement| self.statement(statement))
    }

    pub(super) fn statement(&mut self, statement: &'c Stmt<'c>) -> Result<(), String> {
        self.enter()?;
        match statement {
            Stmt::Template(template) => self.statements(&template.children)?,
            Stmt::EmitRaw(_) => {}
            Stmt::EmitExpr(emitted) => self.expression(&emitted.expr)?,
            Stmt::IfCond(condition) => {
                self.expression(&condition.expr)?;
                self.statements(&condition.true_body)?;
                self.statements(&condition.false_body)?;
            }
            Stmt::ForLoop(repeated) if !repeated.recursive => {
                self.expression(&repeated.iter)?;
                let around = self.local.len();
                self.bind(&repeated.target)?;
                self.local.push("loop");
                if let Some(condition) = &repeated.filter_expr {
                    self.expression(condition)?;
                }
                self.statements(&repeated.body)?;
                self.local.truncate(around);
                self.statements(&repeated.else_body)?;
            }
            _ => {
                let allowed = STATEMENTS.join(", ");
                return Err(format!("it has a statement that cannot be used here; statements are {allowed}"));
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn bind(&mut self, target: &'c Expr<'c>) -> Result<(), String> {
        match target {
            Expr::Var(variable) => self.local.push(variable.id),
            Expr::List(list) => list.items.iter().try_for_each(|target| self.bind(target))?,
            _ => return Err("a loop needs names for its values".to_owned()),
        }
        Ok(())
    }

    pub(super) fn expression(&mut self, expression: &'c Expr<'c>) -> Result<(), String> {
        self.enter()?;
        match expression {
            Expr::Const(_) => {}
            Expr::Var(variable) => self.name(variable.id)?,
            Expr::GetAttr(attribute) => {
                self.step(&attribute.expr, attribute.name)?;
                self.expression(&attribute.expr)?;
            }
            Expr::GetItem(item) => {
                if let Expr::Const(key) = &item.subscript_expr {
                    self.step(&item.expr, key.value.as_str().unwrap_or_default())?;
                }
                self.expression(&item.expr)?;
                self.expression(&item.subscript_expr)?;
            }
            Expr::BinOp(operation) => {
                self.expression(&operation.left)?;
                self.expression(&operation.right)?;
            }
            Expr::UnaryOp(operation) => self.expression(&operation.expr)?,
            Expr::Compare(chain) => {
                self.expression(&chain.expr)?;
                chain.ops.iter().try_for_each(|next| self.expression(&next.expr))?;
            }
            Expr::IfExpr(choice) => {
                self.expression(&choice.test_expr)?;
                self.expression(&choice.true_expr)?;
                choice.false_expr.iter().try_for_each(|otherwise| self.expression(otherwise))?;
            }
            Expr::Filter(filter) => {
                self.filter(filter.name, &filter.args)?;
                filter.expr.iter().try_for_each(|of| self.expression(of))?;
            }
            Expr::Test(test) => {
                if !TESTS.contains(&test.name) {
                    return Err(format!("there is no test `{}`", test.name));
                }
                self.expression(&test.expr)?;
                self.arguments(&test.args)?;
            }
            Expr::Slice(slice) => {
                self.expression(&slice.expr)?;
                let bounds = [&slice.start, &slice.stop, &slice.step].into_iter().flatten();
                bounds.into_iter().try_for_each(|bound| self.expression(bound))?;
            }
            Expr::Call(call) => {
                match &call.expr {
                    Expr::Var(function) if FUNCTIONS.contains(&function.id) => {}
                    Expr::GetAttr(method) if is_cycle(method) => self.expression(&method.expr)?,
                    other => return Err(format!("`{}` cannot be called", path(other))),
                }
                self.arguments(&call.args)?;
            }
            Expr::List(list) => list.items.iter().try_for_each(|item| self.expression(item))?,
            Expr::Map(map) => {
                map.keys.iter().chain(&map.values).try_for_each(|part| self.expression(part))?;
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn filter(&mut self, name: &str, arguments: &'c [CallArg<'c>]) -> Result<(), String> {
        if !FILTERS.contains(&name) {
            return Err(format!("there is no filter `{name}`"));
        }
        self.arguments(arguments)
    }

    fn arguments(&mut self, arguments: &'c [CallArg<'c>]) -> Result<(), String> {
        arguments.iter().try_for_each(|argument| match argument {
            CallArg::Pos(expression) | CallArg::Kwarg(_, expression) => self.expression(expression),
            CallArg::PosSplat(_) | CallArg::KwargSplat(_) => {
                Err("arguments cannot be unpacked here".to_owned())
            }
        })
    }

    fn name(&self, name: &str) -> Result<(), String> {
        if self.local.contains(&name) || NAMES.contains(&name) {
            return Ok(());
        }
        let defined = NAMES.join(", ");
        Err(format!("`{name}` is not defined here; defined are {defined}"))
    }

    /// A step that is used must come before this one.
    fn step(&self, of: &Expr<'_>, step: &str) -> Result<(), String> {
        let is_steps = matches!(of, Expr::Var(of) if of.id == "steps" && !self.local.contains(&"steps"));
        if is_steps && !self.earlier.contains(step) {
            return Err(format!("there is no step `{step}` before this one"));
        }
        Ok(())
    }
}
