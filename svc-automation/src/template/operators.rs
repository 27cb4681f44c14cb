//! Operators on values. Each charges the size of its result before it makes it.

use minijinja::Value;
use minijinja::machinery::ast::BinOpKind;
use minijinja::value::ValueKind;

use super::budget::{Budget, ELEMENT};

/// The value of `left op right` for every operator but `and` and `or`. Both sides are defined.
pub(super) fn binary(op: BinOpKind, left: &Value, right: &Value, budget: &Budget) -> Result<Value, String> {
    match op {
        BinOpKind::Eq | BinOpKind::Ne | BinOpKind::Lt | BinOpKind::Lte | BinOpKind::Gt | BinOpKind::Gte => {
            compare(op, left, right, budget).map(Value::from)
        }
        BinOpKind::In => contains(right, left, budget).map(Value::from),
        BinOpKind::Concat => concat(left, right, budget),
        BinOpKind::Add if is_list(left) && is_list(right) => {
            let size = length(left).saturating_add(length(right)).saturating_mul(ELEMENT);
            budget.value(size)?;
            let joined: Vec<Value> = items(left)?.chain(items(right)?).collect();
            let joined = Value::from(joined);
            budget.measure(&joined)?;
            Ok(joined)
        }
        BinOpKind::Add if left.as_str().is_some() && right.as_str().is_some() => concat(left, right, budget),
        BinOpKind::Mul if is_repeatable(left) || is_repeatable(right) => repeat(left, right, budget),
        _ => calculate(op, left, right),
    }
}

pub(super) fn compare(op: BinOpKind, left: &Value, right: &Value, budget: &Budget) -> Result<bool, String> {
    match (left.as_str(), right.as_str()) {
        (Some(left), Some(right)) => budget.work(left.len().min(right.len()))?,
        _ if left.as_object().is_some() && right.as_object().is_some() => {
            budget.measure(left)?;
            budget.measure(right)?;
        }
        _ => {}
    }
    Ok(match op {
        BinOpKind::Eq => left == right,
        BinOpKind::Ne => left != right,
        BinOpKind::Lt => left < right,
        BinOpKind::Lte => left <= right,
        BinOpKind::Gt => left > right,
        _ => left >= right,
    })
}

pub(super) fn contains(container: &Value, searched: &Value, budget: &Budget) -> Result<bool, String> {
    if container.kind() == ValueKind::Map {
        return Ok(container.get_item(searched).is_ok_and(|found| !found.is_undefined()));
    }
    budget.measure(container)?;
    budget.measure(searched)?;
    match container.as_str() {
        Some(text) => Ok(match searched.as_str() {
            Some(searched) => text.contains(searched),
            None => text.contains(&searched.to_string()),
        }),
        None if is_list(container) => Ok(items(container)?.any(|item| item == *searched)),
        None => Err(format!("a {} contains nothing", container.kind())),
    }
}

fn concat(left: &Value, right: &Value, budget: &Budget) -> Result<Value, String> {
    let size = budget.measure(left)?.saturating_add(budget.measure(right)?);
    budget.value(size)?;
    Ok(Value::from(format!("{left}{right}")))
}

/// Repeats a text or a list.
fn repeat(left: &Value, right: &Value, budget: &Budget) -> Result<Value, String> {
    let (what, times) = if is_repeatable(left) { (left, right) } else { (right, left) };
    let times = integer(times).and_then(|times| usize::try_from(times).ok());
    let times = times.ok_or("texts and lists can only be multiplied with whole numbers")?;
    budget.value(budget.measure(what)?.saturating_mul(times))?;
    if let Some(text) = what.as_str() {
        return Ok(Value::from(text.repeat(times)));
    }
    let once: Vec<Value> = items(what)?.collect();
    let all: Vec<Value> = std::iter::repeat_n(once, times).flatten().collect();
    Ok(Value::from(all))
}

fn calculate(op: BinOpKind, left: &Value, right: &Value) -> Result<Value, String> {
    let impossible = || format!("cannot calculate with a {} and a {}", left.kind(), right.kind());
    let failed = || format!("cannot calculate with {left} and {right}");
    if let (Some(a), Some(b)) = (integer(left), integer(right))
        && !matches!(op, BinOpKind::Div)
    {
        let result = match op {
            BinOpKind::Add => a.checked_add(b),
            BinOpKind::Sub => a.checked_sub(b),
            BinOpKind::Mul => a.checked_mul(b),
            BinOpKind::FloorDiv => a.checked_div_euclid(b),
            BinOpKind::Rem => a.checked_rem_euclid(b),
            BinOpKind::Pow => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
            _ => None,
        };
        return result.map(whole).ok_or_else(failed);
    }
    let (a, b) = float(left).zip(float(right)).ok_or_else(impossible)?;
    Ok(Value::from(match op {
        BinOpKind::Add => a + b,
        BinOpKind::Sub => a - b,
        BinOpKind::Mul => a * b,
        BinOpKind::Div => a / b,
        BinOpKind::FloorDiv => a.div_euclid(b),
        BinOpKind::Rem => a % b,
        BinOpKind::Pow => a.powf(b),
        _ => return Err(impossible()),
    }))
}

pub(super) fn negate(value: &Value) -> Result<Value, String> {
    let negative = match integer(value) {
        Some(number) => number.checked_neg().map(whole),
        None => float(value).map(|number| Value::from(-number)),
    };
    negative.ok_or_else(|| format!("a {} cannot be negated", value.kind()))
}

/// The slice from `start` to `end`, as in Python.
pub(super) fn slice(
    value: &Value,
    [start, end, step]: [Option<i64>; 3],
    budget: &Budget,
) -> Result<Value, String> {
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err("the step of a slice cannot be 0".to_owned());
    }
    if value.is_none() {
        return Ok(Value::from(Vec::<Value>::new()));
    }
    budget.measure(value)?;
    if let Some(text) = value.as_str() {
        let characters: Vec<char> = text.chars().collect();
        budget.work(characters.len() * size_of::<char>())?;
        let part: String =
            indices(characters.len(), start, end, step).map(|index| characters[index]).collect();
        return Ok(Value::from(part));
    }
    if !is_list(value) {
        return Err(format!("a {} cannot be sliced", value.kind()));
    }
    let all: Vec<Value> = items(value)?.collect();
    let part: Vec<Value> = indices(all.len(), start, end, step).map(|index| all[index].clone()).collect();
    Ok(Value::from(part))
}

/// The indices of a slice, all below `length`.
fn indices(length: usize, start: Option<i64>, end: Option<i64>, step: i64) -> impl Iterator<Item = usize> {
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let (lowest, highest) = if step > 0 { (0, length) } else { (-1, length - 1) };
    let bound =
        |index: i64| if index < 0 { index.saturating_add(length) } else { index }.clamp(lowest, highest);
    let (first, last) = if step > 0 { (lowest, highest) } else { (highest, lowest) };
    let (first, end) = (start.map_or(first, bound), end.map_or(last, bound));
    std::iter::successors(Some(first), move |index| index.checked_add(step))
        .take_while(move |index| if step > 0 { *index < end } else { *index > end })
        .filter_map(|index| usize::try_from(index).ok())
}

pub(super) fn is_list(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable)
}

fn is_repeatable(value: &Value) -> bool {
    value.as_str().is_some() || is_list(value)
}

fn length(value: &Value) -> usize {
    value.len().unwrap_or(usize::MAX)
}

fn items(value: &Value) -> Result<minijinja::value::ValueIter, String> {
    value.try_iter().map_err(|error| super::parse::explain(&error))
}

fn integer(value: &Value) -> Option<i128> {
    let is_integer = value.is_integer() || value.kind() == ValueKind::Bool;
    if is_integer { i128::try_from(value.clone()).ok() } else { None }
}

fn float(value: &Value) -> Option<f64> {
    let is_number = matches!(value.kind(), ValueKind::Number | ValueKind::Bool);
    if is_number { f64::try_from(value.clone()).ok() } else { None }
}

fn whole(number: i128) -> Value {
    i64::try_from(number).map_or_else(|_| Value::from(number), Value::from)
}
