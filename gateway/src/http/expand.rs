//! `expand`: the records that an answer refers to, shown as their own GET shows them, under `expanded` of each record.
//!
//! Which references can be expanded is declared with them in `proto`. The records of one kind take one call to the service that
//! owns them, however many rows a page has and however many references lead to that kind.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chassis_transcode::contract::Operation;
use chassis_transcode::records::RecordKind;
use chassis_transcode::{EXPAND, Expansion, ResponsePlan};
use futures::future::try_join_all;
use http::uri::PathAndQuery;
use proto::api::{Fault, Problem};
use proto::log::{BatchGetRecordsRequest, BatchGetRecordsResponse, LoggedRecord};

use super::admission::{self, Admitted};
use super::app::App;
use super::problem::{Entry, FaultLocation, Refusal, unusable};
use super::service_call;
use crate::keys::Caller;

/// The most bytes that are expanded: a record that all of a page refers to is there once for each.
const MAX_BYTES: usize = 8 << 20;
/// How many records one call asks for.
const MAX_IDS: usize = 200;
const BATCH_GET: PathAndQuery = PathAndQuery::from_static("/admin.log.v1.LogService/BatchGetRecords");

/// What a request asks to expand; nothing if the answer has no references.
pub(super) fn asked<'a>(
    app: &App,
    operation: &'a Operation,
    admitted: &Admitted,
    query: Option<&str>,
) -> Result<Vec<&'a Expansion>, Refusal> {
    let Admitted::Key(caller) = admitted else { return Ok(Vec::new()) };
    if operation.expansions.is_empty() {
        return Ok(Vec::new());
    }
    let (mut wanted, mut faults): (Vec<&Expansion>, Vec<Entry>) = (Vec::new(), Vec::new());
    for name in Expansion::asked(query) {
        match operation.expansions.iter().find(|expansion| expansion.name == name) {
            Some(found) if !wanted.contains(&found) => wanted.push(found),
            Some(_) => {}
            None => faults.push(unknown(&name, &operation.expansions)),
        }
    }
    if !faults.is_empty() {
        let detail = format!("{} of `{EXPAND}` cannot be expanded.", faults.len());
        return Err(Refusal { errors: faults, ..Refusal::new(Problem::Validation, detail) });
    }
    for expansion in &wanted {
        let kind = app.records.get(&expansion.kind);
        if let Some(kind) = kind.filter(|kind| !kind.is_readable(|scope| caller.has_scope(scope))) {
            return Err(admission::lacks_scope(&kind.scope));
        }
    }
    Ok(wanted)
}

fn unknown(name: &str, expansions: &[Expansion]) -> Entry {
    let names: Vec<&str> = expansions.iter().map(|expansion| expansion.name.as_str()).collect();
    // What was sent may be long.
    let name: String = name.chars().take(50).collect();
    Entry {
        location: FaultLocation::Parameter(EXPAND.to_owned()),
        code: Fault::NotAllowed.code(),
        detail: format!("`{name}` is not a reference of this record; use {}", names.join(", ")),
    }
}

/// The records that an answer refers to, as JSON.
pub(super) struct Expanded<'a> {
    /// For each name, what each record of the answer refers to.
    references: Vec<(&'a Expansion, Vec<&'a str>)>,
    /// By kind and id.
    records: HashMap<&'a str, HashMap<String, Vec<u8>>>,
}

/// Reads the records that an answer refers to.
pub(super) async fn expand<'a>(
    app: &App,
    operation: &'a Operation,
    caller: &Caller,
    plan: &ResponsePlan,
    answer: &'a [u8],
    wanted: Vec<&'a Expansion>,
) -> Result<Expanded<'a>, Refusal> {
    let mut references = Vec::with_capacity(wanted.len());
    let mut by_kind: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for expansion in wanted {
        let ids = expansion.ids(plan, answer).map_err(|error| unusable(operation, &error))?;
        by_kind.entry(&expansion.kind).or_default().extend(ids.iter().filter(|id| !id.is_empty()));
        references.push((expansion, ids));
    }
    let read_all = by_kind.into_iter().filter(|(_, ids)| !ids.is_empty()).map(async |(kind, ids)| {
        let Some(shown) = app.records.get(kind) else {
            return Err(unusable(operation, &format_args!("there are no records of the kind {kind}")));
        };
        let ids: Vec<String> = ids.into_iter().map(str::to_owned).collect();
        let mut records = HashMap::with_capacity(ids.len());
        // A page has fewer; a list without pages may have more.
        for ids in ids.chunks(MAX_IDS) {
            records.extend(read(app, operation, caller, kind, shown, ids).await?);
        }
        Ok((kind, records))
    });
    let records = try_join_all(read_all).await?.into_iter().collect();
    let expanded = Expanded { references, records };
    if expanded.len() > MAX_BYTES {
        let detail =
            "What `expand` asks for is longer than 8 MiB on this page. Ask for a smaller `per_page`.";
        return Err(Refusal::new(Problem::TooLarge, detail));
    }
    Ok(expanded)
}

/// Records of one kind as JSON, by their ids.
async fn read(
    app: &App,
    operation: &Operation,
    caller: &Caller,
    kind: &str,
    shown: &RecordKind,
    ids: &[String],
) -> Result<Vec<(String, Vec<u8>)>, Refusal> {
    let request = BatchGetRecordsRequest { kind: kind.to_owned(), record_ids: ids.to_vec() };
    let found: Result<BatchGetRecordsResponse, _> =
        service_call::read(app, &caller.account, &shown.service, BATCH_GET, &request, app.deadline).await;
    let found = found.map_err(|status| Refusal::from_status(&status, |_| located()))?;
    if !found.records.is_empty() && found.message != shown.message {
        let error = format_args!("{} is not of the kind {kind}", found.message).to_string();
        return Err(unusable(operation, &error));
    }
    let json = |record: LoggedRecord| {
        let mut json = Vec::with_capacity(record.image.len() * 2);
        let rendered = shown.plan().render(&record.image, &mut json);
        rendered.map_err(|error| unusable(operation, &error))?;
        Ok((record.id, json))
    };
    found.records.into_iter().map(json).collect()
}

fn located() -> chassis_transcode::Location {
    chassis_transcode::Location::Parameter(EXPAND.to_owned())
}

impl Expanded<'_> {
    /// How many bytes of JSON they are at most.
    pub(super) fn len(&self) -> usize {
        let shown = |(expansion, ids): &(&Expansion, Vec<&str>)| {
            ids.iter().map(|id| self.find(expansion, id).map_or(0, Vec::len)).sum::<usize>()
        };
        self.references.iter().map(shown).sum()
    }

    fn find(&self, expansion: &Expansion, id: &str) -> Option<&Vec<u8>> {
        self.records.get(expansion.kind.as_str())?.get(id)
    }

    /// Appends the field `expanded` to the record at this place. What is not there any more is `null`.
    pub(super) fn write(&self, place: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(b",\"expanded\":{");
        for (index, (expansion, ids)) in self.references.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            out.push(b'"');
            // The name of a field, which needs no escapes.
            out.extend_from_slice(expansion.name.as_bytes());
            out.extend_from_slice(b"\":");
            let record = ids.get(place).and_then(|id| self.find(expansion, id));
            out.extend_from_slice(record.map_or(b"null", Vec::as_slice));
        }
        out.push(b'}');
    }
}
