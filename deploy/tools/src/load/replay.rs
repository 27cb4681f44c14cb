//! Turns a recording into scripts for pgbench that do the same again and again.
//!
//! What the calls have in common stays as it is. An id that only one call has is new: the script makes a new one. An id of
//! a record that exists becomes a random one of its kind. A number that grows with every call for a record, such as a
//! version or the number of an invoice, grows on. Of what else differs (a name, a counter's slot) the script draws what one of the calls had; long
//! values and the time of the call stay those of the last one. Calls that differ in their statements become scripts of
//! their own.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;

use deploy_tools::Result;
use regex_lite::{Captures, Regex};

use crate::marks::{Existing, MARK, Marked, Pick, Tokens};
use crate::record::Call;

/// Values up to this many bytes are drawn from those of all calls.
const MAX_DRAWN: usize = 48;
/// More clients than pgbench has, as a rule; those above share records with others.
const CLIENTS: usize = 64;
/// The moment from which the growing numbers count, in milliseconds: they must stay small enough to be multiplied.
const EPOCH_MS: i64 = 1_790_000_000_000;

/// One script; `weight` says how often it is run in relation to the others.
#[derive(Debug)]
pub(crate) struct Script {
    pub text: String,
    pub weight: usize,
}

/// What pgbench runs.
#[derive(Debug, Default)]
pub(crate) struct Scripts {
    pub scripts: Vec<Script>,
    /// Values of the variables `value0`, `value1`, …. A value in the script itself could have what pgbench takes for a
    /// variable.
    pub values: Vec<String>,
}

/// Types of the parameters of each statement.
pub(crate) type Types = HashMap<String, Vec<String>>;

impl Scripts {
    pub(crate) fn new(calls: &[Call], types: &Types, existing: &Existing<'_>) -> Result<Self> {
        let mut variants = BTreeMap::<Vec<&str>, Vec<&Call>>::new();
        for call in calls {
            variants.entry(call.texts()).or_default().push(call);
        }
        let tokens = Tokens::new(calls, existing)?;
        let mut all = Self::default();
        for (texts, calls) in variants {
            let marked = calls.iter().map(|call| tokens.mark(call)).collect::<Result<Vec<_>>>()?;
            let mut text = marked.last().map(|last| head(last, calls.len())).unwrap_or_default();
            for (number, statement) in texts.iter().enumerate() {
                let types = types.get(*statement).map_or(&[][..], Vec::as_slice);
                let expression =
                    |(parameter, kind): (usize, &String)| all.expression(&marked, number, parameter, kind);
                let values = types.iter().enumerate().map(expression).collect::<Result<Vec<_>>>()?;
                text.push_str(&with_values(statement, &values)?);
                text.push_str(";\n");
            }
            all.scripts.push(Script { text, weight: calls.len() });
        }
        Ok(all)
    }

    /// What a parameter becomes.
    fn expression(
        &mut self,
        calls: &[Marked<'_>],
        statement: usize,
        parameter: usize,
        kind: &str,
    ) -> Result<String> {
        let marked: Vec<_> = calls.iter().map(|call| call.marked(statement, parameter)).collect();
        let mut last = marked.last().cloned().flatten();
        if marked.iter().any(|value| *value != last) {
            let recorded: Vec<_> = calls.iter().map(|call| call.value(statement, parameter)).collect();
            // The time of the call itself only goes forward. It need not vary, and statements have many of it.
            let is_call_time = kind.starts_with("timestamp") && recorded.is_sorted();
            let is_short = |value: &String| value.len() <= MAX_DRAWN && !value.contains(MARK);
            if is_growing(calls, statement, parameter, kind) {
                last = last.map(|value| grow(&value, kind)).transpose()?;
            } else if marked.iter().flatten().all(is_short) && !is_call_time {
                return Ok(format!("((:{})::text[])[:drawn]::{kind}", self.variable(&array(&recorded))));
            }
        }
        let Some(value) = last else { return Ok(format!("null::{kind}")) };
        // Text and expressions take turns.
        let pieces = value.split(MARK).enumerate().filter(|(_, piece)| !piece.is_empty());
        let pieces = pieces.map(|(number, piece)| match number % 2 {
            0 => format!("(:{})", self.variable(piece)),
            _ => format!("({piece})"),
        });
        let pieces: Vec<String> = pieces.collect();
        Ok(match pieces.as_slice() {
            // pgbench has no empty variables.
            [] => format!("''::{kind}"),
            [piece] => format!("{piece}::{kind}"),
            pieces => format!("({}::text)::{kind}", pieces.join("::text || ")),
        })
    }

    /// The name of the variable with this value.
    fn variable(&mut self, value: &str) -> String {
        let known = self.values.iter().position(|known| known == value).unwrap_or_else(|| {
            self.values.push(value.to_owned());
            self.values.len() - 1
        });
        format!("value{known}")
    }
}

/// What is computed before the statements of each transaction, for as many ids as the last call has.
fn head(last: &Marked<'_>, calls: usize) -> String {
    let mut text = String::from("\\set ms :ms + 1\n");
    // As the service's UUIDv7, new ids grow with time: so new rows come to the end of an index here too. Writing to a
    // String cannot fail.
    for number in 0..last.new {
        let _ = writeln!(text, "\\set high{number} (:ms << 16) | 28672 | random(0, 4095)");
        let _ = writeln!(text, "\\set low{number} random(-9223372036854775808, -4611686018427387905)");
    }
    for (number, Pick { count, after, .. }) in last.picked.iter().enumerate() {
        let share = count / CLIENTS;
        let pick = match after {
            Some((first, places)) => format!("(:pick{first} - 1 + {places}) % {count} + 1"),
            // Each client has records of its own, as each connection to the API: scripts have no retries.
            None if share > 1 => format!("random(0, {}) * {CLIENTS} + :client_id % {CLIENTS} + 1", share - 1),
            None => format!("random(1, {count})"),
        };
        let _ = writeln!(text, "\\set pick{number} {pick}");
    }
    text.push_str("\\set key random(1000000000000000, 4611686018427387903)\n");
    let _ = writeln!(text, "\\set growing ((:ms - {EPOCH_MS}) * 1024 + :client_id) * 16");
    let _ = writeln!(text, "\\set drawn random(1, {calls})");
    text
}

/// Whether it is a number, an array of numbers or a text that ends with a number, and the numbers grow by the same step with
/// every call of the same path.
fn is_growing(calls: &[Marked<'_>], statement: usize, parameter: usize, kind: &str) -> bool {
    let mut last = HashMap::<&str, (&str, Vec<i64>)>::new();
    let mut steps = HashSet::new();
    for marked in calls {
        let value = marked.value(statement, parameter).unwrap_or_default();
        let Some(now) = numbers(value, kind) else { return false };
        let (text, numbers) = now.clone();
        if let Some((before, smaller)) = last.insert(&marked.call.sent.path, now) {
            if before != text {
                return false;
            }
            steps.extend(smaller.iter().zip(&numbers).map(|(before, now)| now - before));
        }
    }
    steps.len() == 1 && !steps.contains(&0)
}

/// The numbers in a value, and the text before them.
fn numbers<'v>(value: &'v str, kind: &str) -> Option<(&'v str, Vec<i64>)> {
    let brackets: &[char] = &['{', '}'];
    let (text, numbers) = match kind {
        "text" => value.split_at(value.trim_end_matches(|end: char| end.is_ascii_digit()).len()),
        _ if kind.starts_with("bigint") => ("", value.trim_matches(brackets)),
        _ => return None,
    };
    let numbers: Result<Vec<i64>, _> = numbers.split(',').map(str::parse).collect();
    Some((text, numbers.ok()?))
}

/// The same with numbers that grow; the offset tells apart several in one value.
fn grow(value: &str, kind: &str) -> Result<String> {
    let mut count = 0;
    let pattern = if kind == "text" { r"\d+$" } else { r"-?\d+" };
    let grown = Regex::new(pattern)?.replace_all(value, |_: &Captures<'_>| {
        count += 1;
        format!("{MARK}:growing::bigint + {}{MARK}", count - 1)
    });
    Ok(grown.into_owned())
}

/// An array of texts as PostgreSQL writes it.
fn array(values: &[Option<&str>]) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let element = |value: Option<&str>| value.map_or_else(|| "NULL".to_owned(), quoted);
    format!("{{{}}}", values.iter().copied().map(element).collect::<Vec<_>>().join(","))
}

/// The statement with an expression in the place of each parameter.
fn with_values(text: &str, values: &[String]) -> Result<String> {
    if Regex::new(r"(?:^|[^:]):[[:alpha:]_]")?.is_match(text) {
        return Err(format!("pgbench takes a colon before a word for a variable: {text}").into());
    }
    let value = |found: &Captures<'_>| {
        let number = found[1].parse::<usize>().unwrap_or(0);
        // pgbench refuses what is left.
        values.get(number.wrapping_sub(1)).unwrap_or(&found[0].to_owned()).clone()
    };
    Ok(Regex::new(r"\$(\d+)")?.replace_all(text, value).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Sent;
    use crate::statement_log::Statement;

    const KNOWN: &str = "019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05";

    /// The statement that two calls with these parameters become.
    fn replayed(kind: &str, first: &str, second: Option<&str>) -> String {
        let call = |number: usize, parameter: Option<&str>| {
            let sent = Sent { path: "/x".to_owned(), idempotency_key: format!("key-{number}") };
            let parameters = vec![parameter.map(str::to_owned)];
            Call { sent, statements: vec![Statement { text: "select $1".to_owned(), parameters }] }
        };
        let types = Types::from([("select $1".to_owned(), vec![kind.to_owned()])]);
        let calls = [call(1, Some(first)), call(2, second)];
        let all = Scripts::new(&calls, &types, &[&[KNOWN.to_owned()]]).unwrap();
        all.scripts[0].text.lines().last().unwrap().to_owned()
    }

    #[test]
    fn a_parameter_becomes_what_it_is_in_the_calls() {
        let new = "encode(int8send(:high0) || int8send(:low0), 'hex')";
        let (one, two) = ("019a8c5e-0000-7000-8000-000000000001", "019a8c5e-0000-7000-8000-000000000002");
        let becomes = |kind: &str, first: &str, second: &str, expected: &str| {
            assert_eq!(replayed(kind, first, Some(second)), format!("select {expected}::{kind};"));
        };
        becomes("text", "same", "same", "(:value0)");
        becomes("text", "", "", "''");
        becomes("text", "key-1", "key-2", "(:key)");
        becomes("uuid", one, two, &format!("({new}::uuid)"));
        becomes("uuid", KNOWN, KNOWN, &format!("(('{{{KNOWN}}}'::uuid[])[:pick0])"));
        becomes("bigint", "7", "7", "(:value0)");
        becomes("bigint", "7", "8", "(:growing::bigint + 0)");
        becomes("text", "2026-0007", "2026-0008", "((:value0)::text || (:growing::bigint + 0)::text)");
        becomes("text", "a-7", "b-8", "((:value0)::text[])[:drawn]");
        let growing = "((:value0)::text || (:growing::bigint + 0)::text || (:value1)::text || \
                       (:growing::bigint + 1)::text || (:value2)::text)";
        becomes("bigint[]", "{7,3}", "{8,4}", growing);
        let array = format!("((:value0)::text || ({new}::uuid)::text || (:value1)::text)");
        becomes("uuid[]", &format!("{{{one}}}"), &format!("{{{two}}}"), &array);
        let bytes = |digit: &str| format!("\\x{}", digit.repeat(32));
        becomes("bytea", &bytes("a"), &bytes("b"), &format!("((:value0)::text || ({new})::text)"));
        assert_eq!(replayed("date", "2026-01-01", None), "select ((:value0)::text[])[:drawn]::date;");
    }

    #[test]
    fn what_pgbench_would_take_for_a_variable_is_refused() {
        assert!(with_values("select 'a:b'", &[]).is_err());
        assert_eq!(with_values("select '12:30'::time", &[]).unwrap(), "select '12:30'::time");
    }
}
