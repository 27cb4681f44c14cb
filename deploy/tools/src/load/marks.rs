//! Finds in the values of a recorded call what must not stay as it is: new ids, ids of existing records and the idempotency
//! key.

use std::collections::{HashMap, HashSet};

use deploy_tools::Result;
use regex_lite::{Captures, Regex};

use crate::record::Call;

/// Stands before and after an expression of SQL within a value.
pub(crate) const MARK: char = '\u{1}';
/// Existing records that a script draws from; pgbench keeps them as part of the statement.
const MAX_EXISTING: usize = 1_000;
/// An id, or a short row of bytes, as secrets and fingerprints are: 16 to 32 of them, of which the first 16 are made new.
const TOKEN: &str =
    r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|^\\x([0-9a-fA-F]{32})[0-9a-fA-F]{0,32}$";
/// Matches nothing.
const NOTHING: &str = r"[^\s\S]";

/// Ids of records, by kind.
pub(crate) type Existing<'a> = [&'a [String]];

/// What the ids in the values of all calls are.
pub(crate) struct Tokens<'a> {
    pattern: Regex,
    /// The existing records of the same kind.
    existing: HashMap<&'a str, &'a [String]>,
    /// Those that more than one call has: these are not new.
    shared: HashSet<&'a str>,
}

impl<'a> Tokens<'a> {
    pub(crate) fn new(calls: &'a [Call], existing: &Existing<'a>) -> Result<Self> {
        let existing = existing.iter().flat_map(|kind| kind.iter().map(|id| (id.as_str(), *kind))).collect();
        let mut tokens = Self { pattern: Regex::new(TOKEN)?, existing, shared: HashSet::new() };
        let mut seen = HashSet::new();
        for call in calls {
            let found: HashSet<&str> = tokens.of(call).into_iter().collect();
            tokens.shared.extend(found.intersection(&seen));
            seen.extend(found);
        }
        Ok(tokens)
    }

    /// In the order in which the call has them.
    fn of<'c>(&self, call: &'c Call) -> Vec<&'c str> {
        let values = call.statements.iter().flat_map(|statement| &statement.parameters).flatten();
        let found = values.flat_map(|value| self.pattern.captures_iter(value));
        found.filter_map(|found| found.get(1).or(found.get(0))).map(|token| token.as_str()).collect()
    }

    pub(crate) fn mark(&self, call: &'a Call) -> Result<Marked<'a>> {
        let mut marks = HashMap::new();
        let (mut new, mut picked) = (0, Vec::new());
        for token in self.of(call) {
            if marks.contains_key(token) {
                continue;
            }
            if let Some(kind) = self.existing.get(token) {
                let ids = &kind[..kind.len().min(MAX_EXISTING)];
                let pick = format!("('{{{}}}'::uuid[])[:pick{}]", ids.join(","), picked.len());
                marks.insert(token.to_owned(), pick);
                let same = |other: &Pick| std::ptr::eq(other.kind, *kind);
                let first = picked.iter().position(same);
                let place = picked.iter().filter(|other| same(other)).count();
                picked.push(Pick { kind, count: ids.len(), after: first.map(|first| (first, place)) });
            } else if !self.shared.contains(token) {
                let id = format!("encode(int8send(:high{new}) || int8send(:low{new}), 'hex')");
                marks.insert(token.to_owned(), format!("{id}::uuid"));
                // Also where it stands without dashes.
                marks.insert(token.replace('-', ""), id);
                new += 1;
            }
        }
        let key = &call.sent.idempotency_key;
        if !key.is_empty() {
            marks.insert(key.clone(), ":key".to_owned());
        }
        let needles: Vec<String> = marks.keys().map(|mark| regex_lite::escape(mark)).collect();
        let pattern = if needles.is_empty() { NOTHING.to_owned() } else { needles.join("|") };
        Ok(Marked { call, pattern: Regex::new(&pattern)?, marks, new, picked })
    }
}

/// A call whose ids are known for what they are.
pub(crate) struct Marked<'a> {
    pub call: &'a Call,
    /// The expression for each.
    marks: HashMap<String, String>,
    pattern: Regex,
    /// How many ids are new.
    pub new: usize,
    /// The existing records that it names.
    pub picked: Vec<Pick<'a>>,
}

/// An existing record that a script draws.
pub(crate) struct Pick<'a> {
    kind: &'a [String],
    /// Among so many.
    pub count: usize,
    /// It is so many places after another one of the same kind: a call that names two of them names different ones.
    pub after: Option<(usize, usize)>,
}

impl<'a> Marked<'a> {
    /// A parameter as it was recorded.
    pub(crate) fn value(&self, statement: usize, parameter: usize) -> Option<&'a str> {
        self.call.statements[statement].parameters.get(parameter)?.as_deref()
    }

    /// The same with expressions in the place of ids, each between two [`MARK`]s.
    pub(crate) fn marked(&self, statement: usize, parameter: usize) -> Option<String> {
        let value = self.value(statement, parameter)?;
        let expression = |found: &Captures<'_>| format!("{MARK}{}{MARK}", self.marks[&found[0]]);
        Some(self.pattern.replace_all(value, expression).into_owned())
    }
}
