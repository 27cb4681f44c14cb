//! Evaluates templates against a budget. `minijinja` parses them and has the filters, but does not run them: it can bound
//! the number of instructions, and not how much memory one of them takes.

use minijinja::machinery::ast::{self, BinOpKind, CallArg, CompareOpKind, Expr, Stmt, UnaryOpKind};
use minijinja::{Environment, Value};

use super::budget::{Budget, ELEMENT, MAX_TEXT};
use super::{filters, operators, parse};

/// How deep the parts of a template can be nested: each level takes room on the stack.
const MAX_DEPTH: usize = 200;

pub(super) struct Evaluator<'e> {
    environment: &'e Environment<'static>,
    scope: &'e Value,
    budget: &'e Budget,
    frames: Vec<Frame<'e>>,
    depth: usize,
}

/// One iteration of a loop.
struct Frame<'e> {
    names: Vec<(&'e str, Value)>,
    iteration: Iteration,
}

#[derive(Clone, Copy, Default)]
struct Iteration {
    index: usize,
    count: usize,
}

impl<'e> Evaluator<'e> {
    pub(super) fn new(environment: &'e Environment<'static>, scope: &'e Value, budget: &'e Budget) -> Self {
        Self { environment, scope, budget, frames: Vec::new(), depth: 0 }
    }

    /// Renders a template to text.
    pub(super) fn text(&mut self, template: &'e Stmt<'e>) -> Result<String, String> {
        let mut out = String::new();
        self.statement(template, &mut out)?;
        Ok(out)
    }

    fn statements(&mut self, statements: &'e [Stmt<'e>], out: &mut String) -> Result<(), String> {
        for statement in statements {
            self.statement(statement, out)?;
        }
        Ok(())
    }

    fn statement(&mut self, statement: &'e Stmt<'e>, out: &mut String) -> Result<(), String> {
        self.enter()?;
        match statement {
            Stmt::Template(template) => self.statements(&template.children, out)?,
            Stmt::EmitRaw(raw) => self.emit(raw.raw, out)?,
            Stmt::EmitExpr(emitted) => {
                let value = self.defined(&emitted.expr)?;
                if let Some(text) = value.as_str() {
                    self.emit(text, out)?;
                } else {
                    self.budget.measure(&value)?;
                    self.emit(&value.to_string(), out)?;
                }
            }
            Stmt::IfCond(condition) => {
                let holds = self.value(&condition.expr)?.is_true();
                self.statements(if holds { &condition.true_body } else { &condition.false_body }, out)?;
            }
            Stmt::ForLoop(repeated) => self.repeat(repeated, out)?,
            _ => return Err("it has a statement that cannot be used here".to_owned()),
        }
        self.depth -= 1;
        Ok(())
    }

    fn emit(&mut self, text: &str, out: &mut String) -> Result<(), String> {
        if out.len() + text.len() > MAX_TEXT {
            return Err(format!("makes a text of more than {} KiB", MAX_TEXT >> 10));
        }
        self.budget.work(text.len())?;
        out.push_str(text);
        Ok(())
    }

    fn repeat(&mut self, repeated: &'e ast::ForLoop<'e>, out: &mut String) -> Result<(), String> {
        let over = self.defined(&repeated.iter)?;
        let count = over.len().unwrap_or_default();
        self.budget.work(count.saturating_mul(ELEMENT))?;
        let items = over.try_iter().map_err(|error| parse::explain(&error))?;
        let mut iterations: Vec<Vec<(&'e str, Value)>> = Vec::new();
        for item in items {
            self.budget.operation()?;
            let mut names = Vec::new();
            bind(&repeated.target, item, &mut names)?;
            if let Some(condition) = &repeated.filter_expr {
                self.frames.push(Frame { names, iteration: Iteration::default() });
                let holds = self.value(condition)?.is_true();
                let Some(frame) = self.frames.pop() else { continue };
                if holds {
                    iterations.push(frame.names);
                }
            } else {
                iterations.push(names);
            }
        }
        let count = iterations.len();
        for (index, names) in iterations.into_iter().enumerate() {
            self.frames.push(Frame { names, iteration: Iteration { index, count } });
            self.statements(&repeated.body, out)?;
            self.frames.pop();
        }
        if count == 0 { self.statements(&repeated.else_body, out) } else { Ok(()) }
    }

    fn enter(&mut self) -> Result<(), String> {
        self.budget.operation()?;
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err("it is nested too deeply".to_owned()) } else { Ok(()) }
    }

    /// The value of an expression, which must be defined.
    pub(super) fn defined(&mut self, expression: &'e Expr<'e>) -> Result<Value, String> {
        let value = self.value(expression)?;
        if value.is_undefined() { Err(undefined(expression)) } else { Ok(value) }
    }

    /// The value of an expression; may be undefined.
    pub(super) fn value(&mut self, expression: &'e Expr<'e>) -> Result<Value, String> {
        self.enter()?;
        let value = match expression {
            Expr::Const(constant) => constant.value.clone(),
            Expr::Var(variable) => self.lookup(variable.id),
            Expr::GetAttr(attribute) => {
                let of = self.defined(&attribute.expr)?;
                of.get_attr(attribute.name).unwrap_or_default()
            }
            Expr::GetItem(item) => {
                let of = self.defined(&item.expr)?;
                let key = self.defined(&item.subscript_expr)?;
                of.get_item(&key).unwrap_or_default()
            }
            Expr::BinOp(operation) => self.binary(operation)?,
            Expr::UnaryOp(operation) => match operation.op {
                UnaryOpKind::Not => Value::from(!self.value(&operation.expr)?.is_true()),
                UnaryOpKind::Neg => operators::negate(&self.defined(&operation.expr)?)?,
            },
            Expr::Compare(chain) => self.compare(chain)?,
            Expr::IfExpr(choice) => self.choose(choice)?,
            Expr::Filter(filter) => self.filter(filter)?,
            Expr::Test(test) => self.test(test)?,
            Expr::Slice(slice) => self.slice(slice)?,
            Expr::Call(call) => self.call(call)?,
            Expr::List(list) => self.list(&list.items)?,
            Expr::Map(map) => self.map(map)?,
        };
        self.depth -= 1;
        Ok(value)
    }

    fn lookup(&self, name: &str) -> Value {
        for frame in self.frames.iter().rev() {
            if let Some((_, value)) = frame.names.iter().find(|(bound, _)| *bound == name) {
                return value.clone();
            }
            if name == "loop" {
                return loop_variable(frame.iteration);
            }
        }
        self.scope.get_attr(name).unwrap_or_default()
    }

    fn binary(&mut self, operation: &'e ast::BinOp<'e>) -> Result<Value, String> {
        let ast::BinOp { op, left, right } = operation;
        if matches!(op, BinOpKind::ScAnd | BinOpKind::ScOr) {
            let left = self.value(left)?;
            let is_decided = left.is_true() == matches!(op, BinOpKind::ScOr);
            return if is_decided { Ok(left) } else { self.value(right) };
        }
        let (left, right) = (self.defined(left)?, self.defined(right)?);
        operators::binary(*op, &left, &right, self.budget)
    }

    fn compare(&mut self, chain: &'e ast::Compare<'e>) -> Result<Value, String> {
        let mut left = self.defined(&chain.expr)?;
        for next in &chain.ops {
            let right = self.defined(&next.expr)?;
            let op = match next.op {
                CompareOpKind::Eq => BinOpKind::Eq,
                CompareOpKind::Ne => BinOpKind::Ne,
                CompareOpKind::Lt => BinOpKind::Lt,
                CompareOpKind::Lte => BinOpKind::Lte,
                CompareOpKind::Gt => BinOpKind::Gt,
                CompareOpKind::Gte => BinOpKind::Gte,
                CompareOpKind::In | CompareOpKind::NotIn => BinOpKind::In,
            };
            let holds = operators::binary(op, &left, &right, self.budget)?.is_true();
            if holds == matches!(next.op, CompareOpKind::NotIn) {
                return Ok(Value::from(false));
            }
            left = right;
        }
        Ok(Value::from(true))
    }

    fn choose(&mut self, choice: &'e ast::IfExpr<'e>) -> Result<Value, String> {
        if self.value(&choice.test_expr)?.is_true() {
            return self.value(&choice.true_expr);
        }
        choice.false_expr.as_ref().map_or_else(|| Ok(Value::from("")), |otherwise| self.value(otherwise))
    }

    fn filter(&mut self, filter: &'e ast::Filter<'e>) -> Result<Value, String> {
        let of = filter.expr.as_ref().ok_or("a filter needs a value")?;
        let value = self.value(of)?;
        let is_missing = value.is_undefined() && !matches!(filter.name, "default" | "d");
        if is_missing {
            return Err(undefined(of));
        }
        let arguments = self.arguments(Some(value), &filter.args)?;
        filters::apply(self.environment, self.budget, filter.name, &arguments)
    }

    fn test(&mut self, test: &'e ast::Test<'e>) -> Result<Value, String> {
        let value = self.value(&test.expr)?;
        let is_missing =
            value.is_undefined() && !matches!(test.name, "defined" | "undefined" | "none" | "true" | "false");
        if is_missing {
            return Err(undefined(&test.expr));
        }
        let arguments = self.arguments(Some(value), &test.args)?;
        filters::holds(self.environment, self.budget, test.name, &arguments).map(Value::from)
    }

    fn arguments(&mut self, first: Option<Value>, given: &'e [CallArg<'e>]) -> Result<Vec<Value>, String> {
        let (mut arguments, mut named): (Vec<Value>, _) = (first.into_iter().collect(), Vec::new());
        for argument in given {
            match argument {
                CallArg::Pos(expression) => arguments.push(self.defined(expression)?),
                CallArg::Kwarg(name, expression) => named.push((*name, self.defined(expression)?)),
                CallArg::PosSplat(_) | CallArg::KwargSplat(_) => {
                    return Err("arguments cannot be unpacked here".to_owned());
                }
            }
        }
        arguments.extend(filters::named(named));
        Ok(arguments)
    }

    fn slice(&mut self, slice: &'e ast::Slice<'e>) -> Result<Value, String> {
        let value = self.defined(&slice.expr)?;
        let mut bounds = [None; 3];
        for (bound, expression) in bounds.iter_mut().zip([&slice.start, &slice.stop, &slice.step]) {
            if let Some(expression) = expression {
                let given = self.defined(expression)?;
                if !given.is_none() {
                    *bound = Some(given.as_i64().ok_or("the bounds of a slice must be whole numbers")?);
                }
            }
        }
        operators::slice(&value, bounds, self.budget)
    }

    fn call(&mut self, call: &'e ast::Call<'e>) -> Result<Value, String> {
        let arguments = self.arguments(None, &call.args)?;
        match &call.expr {
            Expr::Var(function) if function.id == "range" => filters::range(&arguments, self.budget),
            Expr::Var(function) if function.id == "dict" => filters::dict(&arguments, self.budget),
            Expr::GetAttr(method) if is_cycle(method) => {
                let iteration = self.frames.last().map(|frame| frame.iteration).unwrap_or_default();
                let position = iteration.index.checked_rem(arguments.len()).unwrap_or_default();
                arguments.get(position).cloned().ok_or_else(|| "cycle needs values".to_owned())
            }
            other => Err(format!("`{}` cannot be called", path(other))),
        }
    }

    fn list(&mut self, items: &'e [Expr<'e>]) -> Result<Value, String> {
        let mut made = Vec::with_capacity(items.len());
        for item in items {
            made.push(self.defined(item)?);
        }
        let made = Value::from(made);
        self.budget.measure(&made)?;
        Ok(made)
    }

    fn map(&mut self, map: &'e ast::Map<'e>) -> Result<Value, String> {
        let mut made = Vec::with_capacity(map.keys.len());
        for (key, value) in map.keys.iter().zip(&map.values) {
            made.push((self.defined(key)?, self.defined(value)?));
        }
        let made: Value = made.into_iter().collect();
        self.budget.measure(&made)?;
        Ok(made)
    }
}

/// Whether this is `loop.cycle`.
pub(super) fn is_cycle(method: &ast::GetAttr<'_>) -> bool {
    method.name == "cycle" && matches!(&method.expr, Expr::Var(of) if of.id == "loop")
}

/// The names of a loop's target, with their values.
fn bind<'e>(target: &'e Expr<'e>, item: Value, names: &mut Vec<(&'e str, Value)>) -> Result<(), String> {
    match target {
        Expr::Var(variable) => names.push((variable.id, item)),
        Expr::List(list) => {
            let items: Vec<Value> =
                item.try_iter().map_err(|error| parse::explain(&error))?.take(list.items.len() + 1).collect();
            if items.len() != list.items.len() {
                return Err(format!("{} values do not fit {} names", items.len(), list.items.len()));
            }
            for (target, item) in list.items.iter().zip(items) {
                bind(target, item, names)?;
            }
        }
        _ => return Err("a loop needs names for its values".to_owned()),
    }
    Ok(())
}

/// The variable `loop` of a template.
fn loop_variable(Iteration { index, count }: Iteration) -> Value {
    let left = count.saturating_sub(index);
    let fields: [(&str, Value); 7] = [
        ("index", (index + 1).into()),
        ("index0", index.into()),
        ("revindex", left.into()),
        ("revindex0", left.saturating_sub(1).into()),
        ("first", (index == 0).into()),
        ("last", (left <= 1).into()),
        ("length", count.into()),
    ];
    fields.into_iter().collect()
}

fn undefined(expression: &Expr<'_>) -> String {
    format!("`{}` is not defined", path(expression))
}

/// An expression as its author wrote it, as far as it is a path; for error messages.
pub(super) fn path(expression: &Expr<'_>) -> String {
    match expression {
        Expr::Var(variable) => variable.id.to_owned(),
        Expr::GetAttr(attribute) => format!("{}.{}", path(&attribute.expr), attribute.name),
        Expr::GetItem(item) => match &item.subscript_expr {
            Expr::Const(key) => format!("{}[{:?}]", path(&item.expr), key.value),
            key => format!("{}[{}]", path(&item.expr), path(key)),
        },
        Expr::Filter(filter) => match &filter.expr {
            Some(of) => format!("{}|{}", path(of), filter.name),
            None => filter.name.to_owned(),
        },
        Expr::Call(call) => format!("{}()", path(&call.expr)),
        _ => "…".to_owned(),
    }
}
