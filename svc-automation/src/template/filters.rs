//! Filters, tests and functions: those of `minijinja`, behind limits. The result of most is at most a fixed multiple of
//! their arguments, which are measured. For the others the size of the result is computed and charged before they run.

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Environment, Value};

use super::budget::{Budget, ELEMENT, MAX_VALUE};
use super::parse::explain;

/// The filters that may be used.
pub(super) const FILTERS: &[&str] = &[
    "abs",
    "attr",
    "batch",
    "bool",
    "capitalize",
    "chain",
    "count",
    "d",
    "default",
    "dictsort",
    "e",
    "escape",
    "first",
    "float",
    "format",
    "groupby",
    "indent",
    "int",
    "items",
    "join",
    "last",
    "length",
    "lines",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "round",
    "safe",
    "select",
    "selectattr",
    "slice",
    "sort",
    "split",
    "string",
    "sum",
    "title",
    "trim",
    "unique",
    "pprint",
    "upper",
    "zip",
];
/// Filters that make nothing and do not read the content of a value.
const CHEAP: [&str; 11] =
    ["abs", "attr", "bool", "count", "d", "default", "first", "float", "int", "length", "round"];
/// Tests that do not read the content of a value.
const CHEAP_TESTS: [&str; 13] = [
    "boolean",
    "defined",
    "false",
    "float",
    "integer",
    "iterable",
    "mapping",
    "none",
    "number",
    "sequence",
    "string",
    "true",
    "undefined",
];
/// The number of groups of `batch` and `slice`.
const MAX_GROUPS: usize = 10_000;
/// The width of a field of `format`, in characters.
const MAX_WIDTH: usize = 1000;

/// Applies a filter. The first argument is the value before the bar.
pub(super) fn apply(
    environment: &Environment<'_>,
    budget: &Budget,
    name: &str,
    arguments: &[Value],
) -> Result<Value, String> {
    budget.operation()?;
    if CHEAP.contains(&name) {
        return filter(environment, name, arguments);
    }
    let mut sizes = Vec::with_capacity(arguments.len());
    for argument in arguments {
        sizes.push(budget.measure(argument)?);
    }
    let made = match name {
        "map" if arguments.get(1).is_some_and(|name| !name.is_kwargs()) => {
            return each(environment, budget, arguments);
        }
        "replace" => replaced(arguments),
        "join" => joined(arguments, &sizes),
        "indent" => indented(arguments, &sizes),
        "format" => formatted(arguments, &sizes),
        "batch" | "slice" => grouped(arguments, &sizes),
        _ => sizes.iter().fold(0, |total: usize, size| total.saturating_add(*size)).min(MAX_VALUE),
    };
    budget.value(made)?;
    let made = filter(environment, name, arguments)?;
    let made = if made.kind() == ValueKind::Iterable || matches!(name, "chain" | "zip") {
        collected(&made)?
    } else {
        made
    };
    budget.measure(&made)?;
    Ok(made)
}

fn filter(environment: &Environment<'_>, name: &str, arguments: &[Value]) -> Result<Value, String> {
    environment.empty_state().apply_filter(name, arguments).map_err(|error| explain(&error))
}

/// Whether a test holds.
pub(super) fn holds(
    environment: &Environment<'_>,
    budget: &Budget,
    name: &str,
    arguments: &[Value],
) -> Result<bool, String> {
    if !CHEAP_TESTS.contains(&name) {
        for argument in arguments {
            budget.measure(argument)?;
        }
    }
    environment.empty_state().perform_test(name, arguments).map_err(|error| explain(&error))
}

/// `map` with the name of a filter: applied here value by value, so that the limits hold for each.
fn each(environment: &Environment<'_>, budget: &Budget, arguments: &[Value]) -> Result<Value, String> {
    let (Some(list), Some(name)) = (arguments.first(), arguments.get(1).and_then(Value::as_str)) else {
        return Err("map needs the name of a filter".to_owned());
    };
    let rest = arguments.get(2..).unwrap_or_default();
    let mut made = Vec::new();
    for item in list.try_iter().map_err(|error| explain(&error))? {
        let of_item: Vec<Value> = std::iter::once(item).chain(rest.iter().cloned()).collect();
        made.push(apply(environment, budget, name, &of_item)?);
    }
    let made = Value::from(made);
    budget.measure(&made)?;
    Ok(made)
}

/// Collects a lazy value now, while it can be measured: `minijinja` would make its elements when they are read.
fn collected(value: &Value) -> Result<Value, String> {
    let is_map = value.kind() == ValueKind::Map;
    let mut items = Vec::new();
    for item in value.try_iter().map_err(|error| explain(&error))? {
        if item.kind() == ValueKind::Invalid {
            return Err("it is not made of lists".to_owned());
        }
        if items.len() > MAX_VALUE / ELEMENT {
            return Err("it has too many elements".to_owned());
        }
        items.push(item);
    }
    if !is_map {
        return Ok(Value::from(items));
    }
    Ok(items.into_iter().map(|key| (key.clone(), value.get_item(&key).unwrap_or_default())).collect())
}

fn text(arguments: &[Value], position: usize) -> String {
    arguments.get(position).map(ToString::to_string).unwrap_or_default()
}

fn replaced(arguments: &[Value]) -> usize {
    let (value, from, to) = (text(arguments, 0), text(arguments, 1), text(arguments, 2));
    let found = if from.is_empty() { value.len() + 1 } else { value.matches(&from).count() };
    found.saturating_mul(to.len()).saturating_add(value.len())
}

fn joined(arguments: &[Value], sizes: &[usize]) -> usize {
    let between = arguments.get(1).map_or(0, |joiner| joiner.to_string().len());
    let count = arguments.first().and_then(Value::len).unwrap_or_default();
    count.saturating_mul(between).saturating_add(total(sizes))
}

fn indented(arguments: &[Value], sizes: &[usize]) -> usize {
    let named = arguments.iter().find(|argument| argument.is_kwargs());
    let named = named.and_then(|named| named.get_attr("width").ok()).and_then(|width| width.as_usize());
    let width = arguments.get(1).and_then(Value::as_usize).or(named).unwrap_or(4);
    let lines = text(arguments, 0).split('\n').count();
    lines.saturating_add(1).saturating_mul(width).saturating_add(total(sizes))
}

/// The size of a formatted text: each field may hold all arguments, and is as wide as its digits say.
fn formatted(arguments: &[Value], sizes: &[usize]) -> usize {
    let pattern = text(arguments, 0);
    let fields = pattern.matches('%').count();
    let widths =
        pattern.split(|character: char| !character.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let widths: usize =
        widths.map(|digits| digits.parse().unwrap_or(usize::MAX)).fold(0, usize::saturating_add);
    // `*` takes the width from the arguments.
    let starred = pattern.contains('*');
    if starred || widths > MAX_WIDTH.saturating_mul(fields.max(1)) {
        return usize::MAX;
    }
    let of_arguments = total(sizes.get(1..).unwrap_or_default());
    fields.saturating_mul(of_arguments).saturating_add(widths).saturating_add(pattern.len())
}

fn grouped(arguments: &[Value], sizes: &[usize]) -> usize {
    let groups = arguments.get(1).and_then(Value::as_usize).unwrap_or_default();
    if groups > MAX_GROUPS {
        return usize::MAX;
    }
    groups.saturating_mul(ELEMENT * 2).saturating_add(total(sizes))
}

fn total(sizes: &[usize]) -> usize {
    sizes.iter().fold(0, |total, size| total.saturating_add(*size))
}

/// The numbers of `range(upper)` and `range(lower, upper, step)`.
pub(super) fn range(arguments: &[Value], budget: &Budget) -> Result<Value, String> {
    let numbers: Option<Vec<i64>> = arguments.iter().map(Value::as_i64).collect();
    let (lower, upper, step) = match numbers.as_deref() {
        Some([upper]) => (0, *upper, 1),
        Some([lower, upper]) => (*lower, *upper, 1),
        Some([lower, upper, step]) if *step != 0 => (*lower, *upper, *step),
        _ => return Err("range needs one to three whole numbers".to_owned()),
    };
    let distance = (i128::from(upper) - i128::from(lower)) * i128::from(step.signum());
    let count = distance.max(0).unsigned_abs().div_ceil(u128::from(step.unsigned_abs()));
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    budget.value(count.saturating_mul(ELEMENT))?;
    let numbers = std::iter::successors(Some(lower), |number| number.checked_add(step));
    Ok(numbers.take(count).map(Value::from).collect())
}

/// A map of the fields of its arguments.
pub(super) fn dict(arguments: &[Value], budget: &Budget) -> Result<Value, String> {
    let mut fields: Vec<(Value, Value)> = Vec::new();
    for argument in arguments {
        if argument.kind() != ValueKind::Map {
            return Err("dict needs a map, or names with values".to_owned());
        }
        budget.measure(argument)?;
        for key in argument.try_iter().map_err(|error| explain(&error))? {
            let value = argument.get_item(&key).unwrap_or_default();
            fields.push((key, value));
        }
    }
    let made: Value = fields.into_iter().collect();
    budget.measure(&made)?;
    Ok(made)
}

/// Keyword arguments, as `minijinja` takes them: as the last argument.
pub(super) fn named(arguments: Vec<(&str, Value)>) -> Option<Value> {
    (!arguments.is_empty()).then(|| Value::from(arguments.into_iter().collect::<Kwargs>()))
}
