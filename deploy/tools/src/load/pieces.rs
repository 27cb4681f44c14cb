//! What the values of a recorded call are made of: new ids, ids of existing records, the idempotency key, numbers that
//! grow, and text.

use std::collections::{HashMap, HashSet};

use crate::record::Call;

const DASHED: usize = 36;
const SIMPLE: usize = 32;

/// Ids and secrets that more than one call has: these are not new.
pub(crate) fn shared_tokens(calls: &[Call]) -> HashSet<String> {
    let (mut seen, mut shared) = (HashSet::new(), HashSet::new());
    for call in calls {
        let values = call.statements.iter().flat_map(|statement| &statement.parameters).flatten();
        let tokens: HashSet<&str> = values.flat_map(|value| tokens(value)).collect();
        shared.extend(tokens.iter().filter(|token| seen.contains(**token)).map(|token| (*token).to_owned()));
        seen.extend(tokens);
    }
    shared
}

/// Ids in a value, and the value itself when it is a short row of bytes, as secrets and fingerprints are.
fn tokens(value: &str) -> impl Iterator<Item = &str> {
    let ids = (0..value.len()).filter_map(|at| id_at(value, at));
    ids.chain(random_bytes(value).map(|_| value))
}

fn id_at(value: &str, at: usize) -> Option<&str> {
    let id = value.get(at..at + DASHED)?;
    let right = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    id.bytes().enumerate().all(right).then_some(id)
}

/// The digits of 16 to 32 bytes.
fn random_bytes(value: &str) -> Option<&str> {
    let digits = value.strip_prefix("\\x")?;
    let fits = (SIMPLE..=2 * SIMPLE).contains(&digits.len());
    (fits && digits.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(digits)
}

/// A piece of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    /// A new id, by its number within the call.
    New {
        number: usize,
        dashed: bool,
    },
    /// The id of an existing record, by its number within the call.
    Picked {
        number: usize,
        kind: usize,
    },
    IdempotencyKey,
    /// A number that grows with every call for a record; the offset tells apart several in one value.
    Growing(usize),
}

pub(crate) type Pieces = Option<Vec<Piece>>;

pub(crate) struct Pick<'a> {
    id: &'a str,
    pub kind: usize,
}

/// A call whose ids are known for what they are.
pub(crate) struct Marked<'a> {
    call: &'a Call,
    existing: HashMap<&'a str, usize>,
    shared: &'a HashSet<String>,
    pub new: Vec<String>,
    pub picked: Vec<Pick<'a>>,
}

impl<'a> Marked<'a> {
    pub(crate) fn new(call: &'a Call, existing: &'a [&'a [String]], shared: &'a HashSet<String>) -> Self {
        let ids = existing.iter().enumerate();
        let existing = ids.flat_map(|(kind, ids)| ids.iter().map(move |id| (id.as_str(), kind))).collect();
        Self { call, existing, shared, new: Vec::new(), picked: Vec::new() }
    }

    /// A parameter as it was recorded.
    pub(crate) fn value(&self, statement: usize, parameter: usize) -> Option<&'a str> {
        self.call.statements[statement].parameters.get(parameter)?.as_deref()
    }

    pub(crate) fn pieces(&mut self, statement: usize, parameter: usize) -> Pieces {
        let value = self.value(statement, parameter)?;
        let mut pieces = Vec::new();
        let mut text = String::new();
        let mut at = 0;
        if random_bytes(value).is_some() && !self.shared.contains(value) {
            pieces.push(Piece::Text("\\x".to_owned()));
            pieces.push(Piece::New { number: self.number_of_new(value), dashed: false });
            at = 2 + SIMPLE;
        }
        while let Some(letter) = value[at..].chars().next() {
            let Some((piece, length)) = self.piece_at(value, at) else {
                text.push(letter);
                at += letter.len_utf8();
                continue;
            };
            if !text.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut text)));
            }
            pieces.push(piece);
            at += length;
        }
        if !text.is_empty() || pieces.is_empty() {
            pieces.push(Piece::Text(text));
        }
        Some(pieces)
    }

    /// What begins at a position of a value, and its length; nothing when it is plain text.
    fn piece_at(&mut self, value: &'a str, at: usize) -> Option<(Piece, usize)> {
        let key = self.call.sent.idempotency_key.as_str();
        if !key.is_empty() && value[at..].starts_with(key) {
            return Some((Piece::IdempotencyKey, key.len()));
        }
        if let Some(id) = id_at(value, at) {
            if let Some(kind) = self.existing.get(id).copied() {
                let found = self.picked.iter().position(|pick| pick.id == id);
                let number = found.unwrap_or(self.picked.len());
                if found.is_none() {
                    self.picked.push(Pick { id, kind });
                }
                return Some((Piece::Picked { number, kind }, DASHED));
            }
            let is_new = !self.shared.contains(id);
            return is_new.then(|| (Piece::New { number: self.number_of_new(id), dashed: true }, DASHED));
        }
        let simple = value.get(at..at + SIMPLE)?;
        let number = self.new.iter().position(|id| id.replace('-', "") == simple)?;
        Some((Piece::New { number, dashed: false }, SIMPLE))
    }

    fn number_of_new(&mut self, id: &str) -> usize {
        self.new.iter().position(|known| known == id).unwrap_or_else(|| {
            self.new.push(id.to_owned());
            self.new.len() - 1
        })
    }
}

/// The pieces of a number, or an array of numbers, that grows by the same step with every call of the same path.
pub(crate) fn growing(calls: &[Marked<'_>], statement: usize, parameter: usize) -> Option<Vec<Piece>> {
    let mut last = HashMap::<&str, Vec<i64>>::new();
    let mut steps = HashSet::new();
    let mut pieces = Vec::new();
    for marked in calls {
        let value = marked.value(statement, parameter)?;
        let inner = value.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let numbers: Vec<i64> =
            inner.unwrap_or(value).split(',').map(str::parse).collect::<Result<_, _>>().ok()?;
        let elements = (0..numbers.len()).flat_map(|at| {
            let comma = (at > 0).then(|| Piece::Text(",".to_owned()));
            comma.into_iter().chain([Piece::Growing(at)])
        });
        let (open, close) = if inner.is_some() { ("{", "}") } else { ("", "") };
        pieces = std::iter::once(Piece::Text(open.to_owned())).chain(elements).collect();
        pieces.push(Piece::Text(close.to_owned()));
        pieces.retain(|piece| *piece != Piece::Text(String::new()));
        if let Some(before) = last.insert(&marked.call.sent.path, numbers.clone()) {
            steps.extend(before.iter().zip(&numbers).map(|(before, now)| now - before));
        }
    }
    (steps.len() == 1 && !steps.contains(&0)).then_some(pieces)
}
