//! Turns a recording into scripts for pgbench that do the same again and again.
//!
//! What the calls have in common stays as it is. An id that only one call has is new: the script makes a new one. An id of
//! a record that exists becomes a random one of its kind. A number that grows with every call for a record, such as a
//! version, grows on. Of what else differs (a name, a counter's slot) the script draws what one of the calls had; long
//! values and the time of the call stay those of the last one. Calls that differ in their statements become scripts of
//! their own.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use crate::pieces::{Marked, Piece, Pieces, growing, shared_tokens};
use crate::record::Call;
use crate::statement_log::Statement;

/// Values up to this many bytes are drawn from those of all calls.
const MAX_DRAWN: usize = 48;
/// Existing records that a script draws from; pgbench keeps them as part of the statement.
const MAX_EXISTING: usize = 1_000;
/// The moment from which the growing numbers count, in milliseconds: they must stay small enough to be multiplied.
const EPOCH_MS: i64 = 1_790_000_000_000;

/// One script; `weight` says how often it is run in relation to the others.
#[derive(Debug)]
pub(crate) struct Script {
    pub text: String,
    pub weight: usize,
}

/// A variable of pgbench.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    pub name: String,
    pub value: String,
}

/// Types of the parameters of each statement.
pub(crate) type Types = HashMap<String, Vec<String>>;

/// The scripts of a recording, and the variables that they need. `existing` has the ids of records by kind.
pub(crate) fn scripts(
    calls: &[Call],
    types: &Types,
    existing: &[&[String]],
) -> Result<(Vec<Script>, Vec<Variable>), String> {
    let mut variants = BTreeMap::<Vec<&str>, Vec<&Call>>::new();
    for call in calls {
        let texts = call.statements.iter().map(|statement| statement.text.as_str()).collect();
        variants.entry(texts).or_default().push(call);
    }
    let shared = shared_tokens(calls);
    let mut variables = Variables::default();
    let mut scripts = Vec::new();
    for calls in variants.values() {
        let mut marked: Vec<Marked<'_>> =
            calls.iter().map(|call| Marked::new(call, existing, &shared)).collect();
        let statements = &calls[calls.len() - 1].statements;
        let mut body = String::new();
        for (number, statement) in statements.iter().enumerate() {
            let none = Vec::new();
            let types = types.get(&statement.text).unwrap_or(&none);
            let values: Vec<String> = (0..statement.parameters.len())
                .map(|parameter| {
                    let kind = types.get(parameter).map_or("text", String::as_str);
                    let value = Value::new(&mut marked, number, parameter, kind);
                    value.expression(kind, existing, &mut variables)
                })
                .collect();
            // Writing to a String cannot fail.
            let _ = writeln!(body, "{};", with_values(&statement.text, &values)?);
        }
        let head = marked.last().map(|last| head(last, calls.len(), existing));
        let text = head.unwrap_or_default() + &body;
        scripts.push(Script { text, weight: calls.len() });
    }
    Ok((scripts, variables.0))
}

/// What is computed before the statements of each transaction, for as many ids as the last call has.
fn head(last: &Marked<'_>, calls: usize, existing: &[&[String]]) -> String {
    let mut text = String::from("\\set ms :ms + 1\n");
    // As the service's UUIDv7, new ids grow with time: so new rows come to the end of an index here too.
    for number in 0..last.new.len() {
        let _ = writeln!(text, "\\set high{number} (:ms << 16) | 28672 | random(0, 4095)");
        let _ = writeln!(text, "\\set low{number} random(-9223372036854775808, -4611686018427387905)");
    }
    for (number, pick) in last.picked.iter().enumerate() {
        let count = existing[pick.kind].len().min(MAX_EXISTING);
        let _ = writeln!(text, "\\set pick{number} random(1, {count})");
    }
    text.push_str("\\set key random(1000000000000000, 4611686018427387903)\n");
    let _ = writeln!(text, "\\set growing ((:ms - {EPOCH_MS}) * 1024 + :client_id) * 16");
    let _ = writeln!(text, "\\set drawn random(1, {calls})");
    text
}

/// What a parameter becomes.
enum Value<'a> {
    /// The same in every transaction, but for the ids in it.
    Fixed(Pieces),
    /// One of these.
    Drawn(Vec<Option<&'a str>>),
}

impl<'a> Value<'a> {
    fn new(calls: &mut [Marked<'a>], statement: usize, parameter: usize, kind: &str) -> Self {
        let values: Vec<Pieces> = calls.iter_mut().map(|call| call.pieces(statement, parameter)).collect();
        let last = values.last().cloned().flatten();
        if values.iter().all(|value| *value == last) {
            return Self::Fixed(last);
        }
        if kind.starts_with("bigint")
            && let Some(growing) = growing(calls, statement, parameter)
        {
            return Self::Fixed(Some(growing));
        }
        let texts: Vec<Option<&str>> = calls.iter().map(|call| call.value(statement, parameter)).collect();
        // The time of the call itself only goes forward. It need not vary, and statements have many of it.
        let is_call_time = kind.starts_with("timestamp") && texts.is_sorted();
        if values.iter().all(is_short_text) && !is_call_time { Self::Drawn(texts) } else { Self::Fixed(last) }
    }

    fn expression(&self, kind: &str, existing: &[&[String]], variables: &mut Variables) -> String {
        let pieces = match self {
            Self::Fixed(None) => return format!("null::{kind}"),
            Self::Fixed(Some(pieces)) => pieces,
            Self::Drawn(values) => {
                let name = variables.name_of(&array(values));
                return format!("((:{name})::text[])[:drawn]::{kind}");
            }
        };
        match pieces.as_slice() {
            // pgbench has no empty variables.
            [Piece::Text(text)] if text.is_empty() => format!("''::{kind}"),
            [piece] => format!("({})::{kind}", expression(piece, existing, variables)),
            pieces => {
                let text = |piece: &Piece| format!("({})::text", expression(piece, existing, variables));
                let parts: Vec<String> = pieces.iter().map(text).collect();
                format!("({})::{kind}", parts.join(" || "))
            }
        }
    }
}

/// Short text, or NULL, without anything to be made new.
fn is_short_text(value: &Pieces) -> bool {
    match value.as_deref() {
        None => true,
        Some([Piece::Text(text)]) => text.len() <= MAX_DRAWN,
        Some(_) => false,
    }
}

fn expression(piece: &Piece, existing: &[&[String]], variables: &mut Variables) -> String {
    let new = |number: &usize| format!("encode(int8send(:high{number}) || int8send(:low{number}), 'hex')");
    match piece {
        Piece::Text(text) => format!(":{}", variables.name_of(text)),
        Piece::New { number, dashed: true } => format!("{}::uuid", new(number)),
        Piece::New { number, dashed: false } => new(number),
        Piece::Picked { number, kind } => {
            let ids = &existing[*kind][..existing[*kind].len().min(MAX_EXISTING)];
            format!("('{{{}}}'::uuid[])[:pick{number}]", ids.join(","))
        }
        Piece::IdempotencyKey => ":key".to_owned(),
        Piece::Growing(0) => ":growing".to_owned(),
        Piece::Growing(offset) => format!(":growing::bigint + {offset}"),
    }
}

/// Variables by their values.
#[derive(Default)]
struct Variables(Vec<Variable>);

impl Variables {
    fn name_of(&mut self, value: &str) -> String {
        if let Some(known) = self.0.iter().find(|variable| variable.value == value) {
            return known.name.clone();
        }
        let name = format!("value{}", self.0.len());
        self.0.push(Variable { name: name.clone(), value: value.to_owned() });
        name
    }
}

/// An array of texts as PostgreSQL writes it.
fn array(values: &[Option<&str>]) -> String {
    let quoted = |value: Option<&str>| match value {
        Some(text) => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
        None => "NULL".to_owned(),
    };
    format!("{{{}}}", values.iter().copied().map(quoted).collect::<Vec<_>>().join(","))
}

/// The statement with an expression in the place of each parameter.
fn with_values(text: &str, values: &[String]) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let next = letters.peek().copied().unwrap_or(' ');
        if letter == '$' && next.is_ascii_digit() {
            let mut number = 0;
            while let Some(digit) = letters.next_if(char::is_ascii_digit) {
                number = number * 10 + digit.to_digit(10).unwrap_or(0) as usize;
            }
            out.push_str(values.get(number.wrapping_sub(1)).ok_or("a parameter was not logged")?);
            continue;
        }
        if letter == ':' && !out.ends_with(':') && (next.is_alphabetic() || next == '_') {
            return Err(format!("pgbench takes a colon before a word for a variable of its own: {text}"));
        }
        out.push(letter);
    }
    Ok(out)
}

/// Sends events to nobody, by a prefix before each listener: delivering them would take time from what is measured.
pub(crate) fn silence_events(statements: &mut [Statement], listeners: &[&str], prefix: &str) {
    for statement in statements.iter_mut().filter(|statement| statement.text.contains("insert into outbox")) {
        for value in statement.parameters.iter_mut().flatten() {
            let Some(names) = value.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) else {
                continue;
            };
            let names: Vec<&str> = names.split(',').collect();
            if names.iter().all(|name| listeners.contains(name)) {
                // Each keeps a name of its own: two listeners of one event are two rows with different keys.
                *value = format!("{{{prefix}{}}}", names.join(&format!(",{prefix}")));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Sent;

    const KNOWN: &str = "019a8c5e-7d1b-7c3a-9f20-4b8d2a6e1c05";

    fn call(number: usize, text: &str, parameters: &[Option<&str>]) -> Call {
        let parameters = parameters.iter().map(|value| value.map(str::to_owned)).collect();
        let sent = Sent { path: "/x".to_owned(), idempotency_key: format!("key-{number}") };
        Call { sent, statements: vec![Statement { text: text.to_owned(), parameters }] }
    }

    /// The statement that two calls with these parameters become.
    fn replayed(kind: &str, first: Option<&str>, second: Option<&str>) -> String {
        let calls = [call(1, "select $1", &[first]), call(2, "select $1", &[second])];
        let types = Types::from([("select $1".to_owned(), vec![kind.to_owned()])]);
        let (scripts, _) = scripts(&calls, &types, &[&[KNOWN.to_owned()]]).unwrap();
        scripts[0].text.lines().last().unwrap().to_owned()
    }

    #[test]
    fn a_parameter_becomes_what_it_is_in_the_calls() {
        let new = "encode(int8send(:high0) || int8send(:low0), 'hex')";
        let (one, two) = ("019a8c5e-0000-7000-8000-000000000001", "019a8c5e-0000-7000-8000-000000000002");
        let array = |id: &str| format!("{{{id}}}");
        assert_eq!(replayed("text", Some("same"), Some("same")), "select (:value0)::text;");
        assert_eq!(replayed("text", Some(""), Some("")), "select ''::text;");
        assert_eq!(replayed("date", None, None), "select null::date;");
        assert_eq!(replayed("text", Some("key-1"), Some("key-2")), "select (:key)::text;");
        assert_eq!(replayed("uuid", Some(one), Some(two)), format!("select ({new}::uuid)::uuid;"));
        assert_eq!(replayed("bigint", Some("7"), Some("8")), "select (:growing)::bigint;");
        assert_eq!(replayed("smallint", Some("7"), None), "select ((:value0)::text[])[:drawn]::smallint;");
        assert_eq!(
            replayed("uuid", Some(KNOWN), Some(KNOWN)),
            format!("select (('{{{KNOWN}}}'::uuid[])[:pick0])::uuid;")
        );
        let whole = format!("select ((:value0)::text || ({new}::uuid)::text || (:value1)::text)::uuid[];");
        assert_eq!(replayed("uuid[]", Some(&array(one)), Some(&array(two))), whole);
    }

    #[test]
    fn listeners_of_events_become_strangers() {
        let mut calls = [call(1, "insert into outbox", &[Some("{work,crm}"), Some("{file,file}"), None])];
        silence_events(&mut calls[0].statements, &["work", "crm"], "no-");
        let values: Vec<_> = calls[0].statements[0].parameters.iter().map(Option::as_deref).collect();
        assert_eq!(values, [Some("{no-work,no-crm}"), Some("{file,file}"), None]);
    }

    #[test]
    fn what_pgbench_would_take_for_a_variable_is_refused() {
        assert!(with_values("select 'a:b'", &[]).is_err());
        assert_eq!(with_values("select '12:30'::time", &[]).unwrap(), "select '12:30'::time");
    }
}
