//! The change feed: what has changed in an account, merged from the logs of the services.
//!
//! A reader's cursor holds its position in each log, so the gateway stores nothing about readers. One answer takes one
//! call to each service that has kinds of interest, in parallel. A reader that waits has a stream to each of them, and
//! the logs are read again when one of them has something.

mod cursor;
mod merge;

use std::collections::BTreeMap;
use std::time::Duration;

use chassis_base::Error;
use chassis_transcode::records::RecordKind;
use futures::future::try_join_all;
use futures::stream::{FuturesUnordered, StreamExt};
use http::uri::PathAndQuery;
use prost::Message;
use proto::api::{Fault, Problem};
use proto::gateway::{Change, ChangesMeta, ListChangesRequest, ListChangesResponse};
use proto::log::log_service_client::LogServiceClient;
use proto::log::{
    FollowLogRequest, LogEntry, ReadHistoryRequest, ReadHistoryResponse, ReadLogRequest, ReadLogResponse,
};
use proto::{At, Check, Faults};
use tokio::time::{Instant, sleep, sleep_until};
use tonic::{Code, Request, Status};

use self::cursor::Cursor;
use self::merge::{Merge, merge};
use super::app::App;
use super::service_call;
use super::upstream::UpstreamCall;
use crate::keys::Caller;
use crate::runtime::NAME;

const READ_LOG: PathAndQuery = PathAndQuery::from_static("/admin.log.v1.LogService/ReadLog");
const READ_HISTORY: PathAndQuery = PathAndQuery::from_static("/admin.log.v1.LogService/ReadHistory");
const DEFAULT_LIMIT: i32 = 100;
/// How long to wait before a service is asked again whose stream has failed.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);

/// Answers `GET /v1/changes`. `faults` are those of the query.
pub(super) async fn list(
    app: &App,
    caller: &Caller,
    call: &UpstreamCall,
    faults: &Faults,
) -> Result<ListChangesResponse, Status> {
    let mut request = ListChangesRequest::decode(call.message.clone())
        .map_err(|error| Status::internal(error.to_string()))?;
    let mut faults = faults.clone();
    request.check(&At::ROOT, None, &mut faults);
    let reading = Reading { app, caller, timeout: app.deadline.min(call.timeout) };
    let feed = Feed::new(&reading, &request, &mut faults);
    if !faults.is_empty() {
        return Err(Error::from(faults).into());
    }
    match feed? {
        Feed::History { kind, cursor } => reading.history(&kind, cursor, &request).await,
        Feed::Changes { kinds, cursor } => {
            let waits_until = Instant::now() + seconds(request.wait.unwrap_or_default());
            reading.changes(&kinds, cursor, limit(&request), waits_until).await
        }
    }
}

fn limit(request: &ListChangesRequest) -> i32 {
    request.limit.unwrap_or(DEFAULT_LIMIT)
}

fn seconds(wait: i32) -> Duration {
    Duration::from_secs(wait.unsigned_abs().into())
}

/// What a request asks for.
enum Feed {
    /// The changes of these kinds, by service.
    Changes { kinds: BTreeMap<String, Vec<String>>, cursor: Cursor },
    /// The changes of one record.
    History { kind: RecordKind, cursor: Cursor },
}

impl Feed {
    fn new(reading: &Reading<'_>, request: &ListChangesRequest, faults: &mut Faults) -> Result<Self, Error> {
        let Some(cursor) = Cursor::decode(&request.after) else {
            let detail = "must be a cursor of an earlier answer: `meta.cursor` or the `cursor` of a change";
            faults.add(&At::ROOT.name("after"), Fault::BadFormat, detail);
            return Ok(Self::Changes { kinds: BTreeMap::new(), cursor: Cursor::default() });
        };
        if request.kind.is_empty() && request.id.is_empty() {
            return Ok(Self::Changes { kinds: reading.kinds(&request.kinds, faults)?, cursor });
        }
        for (name, value) in [("kind", &request.kind), ("id", &request.id)] {
            if value.is_empty() {
                let detail = "`kind` and `id` go together: they name the record whose history is asked for";
                faults.add(&At::ROOT.name(name), Fault::Required, detail);
            }
        }
        if let Some(kind) = reading.app.records.get(&request.kind) {
            reading.allow(kind)?;
            return Ok(Self::History { kind: kind.clone(), cursor });
        }
        if !request.kind.is_empty() {
            reading.unknown_kind("kind", &request.kind, faults);
        }
        Ok(Self::Changes { kinds: BTreeMap::new(), cursor })
    }
}

/// One request for changes.
struct Reading<'a> {
    app: &'a App,
    caller: &'a Caller,
    /// For each call to a service.
    timeout: Duration,
}

impl Reading<'_> {
    /// The kinds that a comma-separated list names, by service; all that the key may read if it is empty.
    fn kinds(&self, names: &str, faults: &mut Faults) -> Result<BTreeMap<String, Vec<String>>, Error> {
        let mut kinds: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut add = |name: &str, kind: &RecordKind| {
            let of_service = kinds.entry(kind.service.clone()).or_default();
            if !of_service.iter().any(|have| have == name) {
                of_service.push(name.to_owned());
            }
        };
        let names: Vec<&str> = names.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        if names.is_empty() {
            for (name, kind) in self.app.records.iter().filter(|(_, kind)| self.may_read(kind)) {
                add(name, kind);
            }
            return Ok(kinds);
        }
        for name in names {
            match self.app.records.get(name) {
                Some(kind) => {
                    self.allow(kind)?;
                    add(name, kind);
                }
                None => self.unknown_kind("kinds", name, faults),
            }
        }
        Ok(kinds)
    }

    fn may_read(&self, kind: &RecordKind) -> bool {
        kind.is_readable(|scope| self.caller.has_scope(scope))
    }

    fn allow(&self, kind: &RecordKind) -> Result<(), Error> {
        if self.may_read(kind) {
            return Ok(());
        }
        let detail = format!("This API key lacks the scope {}. Make a key that has it.", kind.scope);
        Err(Error::problem(Problem::InsufficientScope, detail))
    }

    fn unknown_kind(&self, parameter: &str, name: &str, faults: &mut Faults) {
        let known: Vec<&str> = self.app.records.iter().map(|(name, _)| name).collect();
        let detail = format!("`{name}` is not a kind of record; use one of {}", known.join(", "));
        faults.add(&At::ROOT.name(parameter), Fault::NotAllowed, &detail);
    }

    /// The next changes. Waits until there are some, until a moment.
    async fn changes(
        &self,
        kinds: &BTreeMap<String, Vec<String>>,
        mut cursor: Cursor,
        limit: i32,
        waits_until: Instant,
    ) -> Result<ListChangesResponse, Status> {
        loop {
            let Merge { entries, cursor: next, more } = self.read(kinds, cursor, limit).await?;
            let is_done = !entries.is_empty() || more || Instant::now() >= waits_until;
            if is_done || !self.wait(kinds, &next, waits_until).await {
                let shown = entries.into_iter().filter_map(|it| self.shown(it.entry, &it.cursor));
                let meta = ChangesMeta { cursor: next.encode(), more };
                return Ok(ListChangesResponse { data: shown.collect(), meta: Some(meta) });
            }
            cursor = next;
        }
    }

    async fn read(
        &self,
        kinds: &BTreeMap<String, Vec<String>>,
        cursor: Cursor,
        limit: i32,
    ) -> Result<Merge, Status> {
        let pages = kinds.iter().map(async |(service, kinds)| {
            let after = cursor.position(service);
            let request = ReadLogRequest { after, kinds: kinds.clone(), limit };
            let page: ReadLogResponse = self.call(service, READ_LOG, &request).await?;
            Ok::<_, Status>((service.clone(), page))
        });
        let pages: BTreeMap<_, _> = try_join_all(pages).await?.into_iter().collect();
        Ok(merge(cursor, pages, usize::try_from(limit).unwrap_or(1)))
    }

    /// Returns false if there was nothing until that moment, or this process is about to stop.
    async fn wait(&self, kinds: &BTreeMap<String, Vec<String>>, cursor: &Cursor, until: Instant) -> bool {
        let mut streams: FuturesUnordered<_> =
            kinds.iter().map(|(service, kinds)| self.change_of(service, kinds, cursor)).collect();
        let mut stop = self.app.stop.clone();
        tokio::select! {
            Some(()) = streams.next() => true,
            () = sleep_until(until) => false,
            _ = stop.changed() => false,
        }
    }

    /// Returns when the service has a change of these kinds after the cursor, or refuses the cursor.
    async fn change_of(&self, service: &str, kinds: &[String], cursor: &Cursor) {
        loop {
            match self.follow(service, kinds, cursor).await {
                Ok(true) => return,
                Ok(false) => {}
                Err(status) if status.code() == Code::OutOfRange => return,
                Err(status) => tracing::debug!(service, %status, "waiting for changes of a service failed"),
            }
            sleep(RETRY_INTERVAL).await;
        }
    }

    /// Follows the log of a service until it has a change of these kinds. Returns false if the stream ends before.
    async fn follow(&self, service: &str, kinds: &[String], cursor: &Cursor) -> Result<bool, Status> {
        let message = FollowLogRequest { after: cursor.position(service), kinds: kinds.to_vec() };
        let peer = self.app.runtime.peers.get(service).ok_or_else(|| Status::internal("no such service"))?;
        let (now, account) = (self.app.runtime.clock.now(), &self.caller.account);
        let request: Request<FollowLogRequest> =
            self.app.runtime.mesh_request(service, account, NAME, now, message)?;
        let mut stream = LogServiceClient::new(peer.channel()).follow_log(request).await?.into_inner();
        while let Some(answer) = stream.message().await? {
            if !answer.entries.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn history(
        &self,
        kind: &RecordKind,
        mut cursor: Cursor,
        request: &ListChangesRequest,
    ) -> Result<ListChangesResponse, Status> {
        // As it is stored; other ids, such as codes, are as they are.
        let id = chassis_base::id::parse(&request.id).map(|id| id.to_string());
        let asked = ReadHistoryRequest {
            kind: request.kind.clone(),
            record_id: id.unwrap_or_else(|| request.id.clone()),
            after: cursor.version,
            limit: limit(request),
        };
        let ReadHistoryResponse { entries, more } = self.call(&kind.service, READ_HISTORY, &asked).await?;
        let mut data = Vec::with_capacity(entries.len());
        for entry in entries {
            cursor.version = entry.version;
            data.extend(self.shown(entry, &cursor));
        }
        Ok(ListChangesResponse { data, meta: Some(ChangesMeta { cursor: cursor.encode(), more }) })
    }

    /// The entry as integrators see it. One that cannot be shown is left out: it must not keep readers from going on.
    fn shown(&self, entry: LogEntry, cursor: &Cursor) -> Option<Change> {
        let change = entry.change();
        let record = if entry.message.is_empty() { None } else { Some(self.json(&entry)?) };
        let LogEntry { at, actor, request_id, kind, record_id: id, version, .. } = entry;
        let cursor = cursor.encode();
        Some(Change { cursor, kind, id, version, change: change.into(), at, actor, request_id, record })
    }

    fn json(&self, entry: &LogEntry) -> Option<String> {
        let rendered = || {
            let kind = self.app.records.get(&entry.kind).filter(|kind| kind.message == entry.message);
            let kind = kind.ok_or_else(|| format!("{} is not the message of its kind", entry.message))?;
            let mut json = Vec::with_capacity(entry.image.len() * 2);
            kind.plan().render(&entry.image, &mut json).map_err(|error| error.to_string())?;
            String::from_utf8(json).map_err(|error| error.to_string())
        };
        rendered()
            .inspect_err(|reason| {
                tracing::error!(reason, kind = entry.kind, "an image of the log cannot be shown");
            })
            .ok()
    }

    async fn call<M: Message + Default>(
        &self,
        service: &str,
        path: PathAndQuery,
        message: &impl Message,
    ) -> Result<M, Status> {
        service_call::read(self.app, &self.caller.account, service, path, message, self.timeout).await
    }
}
