//! The one handler of all operations. The order of its checks is part of the contract: key, rate limit, scope,
//! size and type, idempotency key, body, `If-Match`. Ids, versions and state are checked by the service.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;
use chassis_base::Error;
use chassis_rpc::call::{
    BODY_STREAM, CARRIED_FAULTS, CONDITIONAL, DRY_RUN, EXPORT, HEAD_ONLY, IDEMPOTENCY_KEY, PRECONDITION,
    REQUEST_ID,
};
use chassis_rpc::mesh::is_idempotency_key;
use chassis_rpc::{token, trace};
use chassis_transcode::contract::{Answer, Operation, variable};
use chassis_transcode::{Bound, Expansion, Handling, Ignored, ResponsePlan, TableFormat};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Request};
use prost::Message;
use proto::api::{CarriedFaults, Precondition, Problem};
use tokio::time::Instant;
use tonic::metadata::MetadataMap;

use super::admission::{Admitted, admit};
use super::app::App;
use super::batch::Origin;
use super::byte_budget::Owner;
use super::concurrency_limit::{LimitReached, Permit};
use super::problem::Refusal;
use super::response::{self, Counted};
use super::upload::{self, Upload};
use super::upstream::{Upstream, UpstreamCall};
use super::{accept, body, conditional, download, expand, own, preference, rehearsal, tables};
use crate::runtime::NAME;

/// A service gives up this much earlier than the gateway, so that its own answer still arrives.
const DEADLINE_MARGIN: Duration = Duration::from_millis(50);

/// Handles one request of an operation. The rate-limit headers are on refusals too.
pub(super) async fn handle(
    app: &App,
    operation: &Operation,
    request: Request<Body>,
    id: &str,
    from: IpAddr,
) -> Response {
    let (parts, body) = request.into_parts();
    let mut limit_headers = HeaderMap::new();
    let mut applied = None;
    let answer = match enter(app, operation, &parts, from, &mut limit_headers).await {
        Ok((admitted, _permit)) => {
            applied = preference::applied(&admitted, &parts.headers);
            let owner = Owner::new(from, connection(app, &parts));
            let wait = Duration::from_secs(operation.policy.max_wait.into());
            let (deadline, sent) = (Instant::now() + app.deadline + wait, AtomicBool::new(false));
            let call = Incoming { app, operation, parts, admitted, id, from, owner, deadline, sent };
            match tokio::time::timeout_at(deadline, call.answer(body)).await {
                Ok(answer) => answer,
                Err(_) => Err(call.overdue()),
            }
        }
        Err(refusal) => Err(refusal),
    };
    let mut response = answer.unwrap_or_else(|refusal| refusal.into_response(id));
    response.headers_mut().extend(limit_headers);
    response.headers_mut().extend(applied);
    response
}

/// Who makes the request, and a permit for the service that it is for. Permits are counted by account, and the account
/// is the result of the look-up of the key; so look-ups have a limit of their own.
async fn enter(
    app: &App,
    operation: &Operation,
    parts: &Parts,
    from: IpAddr,
    limit_headers: &mut HeaderMap,
) -> Result<(Admitted, Permit), Refusal> {
    let admitted = {
        let _permit = app.admissions.try_acquire().map_err(|_| {
            metrics::counter!("shed_total", "peer" => "gateway", "limit" => "full").increment(1);
            Refusal::from(LimitReached::Service)
        })?;
        admit(app, operation, parts, from, limit_headers).await?
    };
    // Who may wait for long does not take the permits of those who do not.
    let limit = if operation.policy.max_wait > 0 { &app.waits } else { &app.concurrency };
    let permit = limit.acquire(&operation.peer, admitted.requester(from))?;
    Ok((admitted, permit))
}

/// The connection of the client. `None` behind a proxy, whose connection brings the requests of many clients.
fn connection(app: &App, parts: &Parts) -> Option<SocketAddr> {
    let connection = parts.extensions.get::<ConnectInfo<SocketAddr>>().filter(|_| !app.proxies.is_any());
    connection.map(|info| info.0)
}

/// The shape of an answer that could have several.
enum Shape<'a> {
    Envelope { expanded: Vec<&'a Expansion> },
    Table(TableFormat),
}

/// A request that was admitted.
struct Incoming<'a> {
    app: &'a App,
    operation: &'a Operation,
    parts: Parts,
    admitted: Admitted,
    id: &'a str,
    from: IpAddr,
    owner: Owner,
    deadline: Instant,
    /// Whether the service may have received it.
    sent: AtomicBool,
}

impl Incoming<'_> {
    /// Whether the request is a write.
    fn changes(&self) -> bool {
        !matches!(self.parts.method, Method::GET | Method::HEAD)
    }

    fn overdue(&self) -> Refusal {
        let refusal = Refusal::new(Problem::Timeout, "The request took too long.");
        if self.sent.load(Ordering::Relaxed) { self.after_call(refusal) } else { refusal }
    }

    /// Adds to the refusal of a write that the service may have carried it out.
    fn after_call(&self, refusal: Refusal) -> Refusal {
        if self.changes() { refusal.in_doubt() } else { refusal }
    }

    async fn answer(&self, body: Body) -> Result<Response, Refusal> {
        let (budgets, owner) = (&self.app.budgets, self.owner);
        // Held until the answer is complete: until then the request is in memory in one form or another.
        let mut reserved = budgets.requests.empty(owner);
        let field = self.operation.request.upload();
        let (upload, body) = if field.is_some() {
            reserved.grow(upload::COST)?;
            let upload = Upload::open(&self.parts, body).await?;
            let description = upload.description.clone();
            (Some(upload), Some(description))
        } else {
            (None, body::read(self.operation, &self.parts.headers, body, &mut reserved).await?)
        };
        let key = self.idempotency_key()?;
        let path = self.path_values();
        let mut bound = self
            .operation
            .request
            .bind_with(&path, self.parts.uri.query(), body.as_deref(), self.handling())
            .map_err(|malformed| Refusal::new(Problem::Malformed, malformed.detail))?;
        drop(body);
        let message = std::mem::take(&mut bound.message);
        let wanted = expand::asked(self.app, self.operation, &self.admitted, self.parts.uri.query())?;
        let table =
            accept::table(&self.parts.headers).filter(|_| !self.changes() && self.operation.is_list());
        if table.is_some() && !wanted.is_empty() {
            return Err(tables::refuse_expansion());
        }
        let shape = self.shape()?;
        let dry_run = rehearsal::is_asked(self.operation, &self.parts.method, &self.parts.headers)?;
        let headers = &self.parts.headers;
        let condition = conditional::precondition(self.operation, &self.parts.method, headers, &path)?;
        let is_conditional = condition.is_some();
        let mut outgoing = self.outgoing(&bound, message, key, condition)?;
        // In the path, so that a service of the release before refuses the call instead of carrying it out.
        let prefixes =
            [(EXPORT, self.operation.is_export()), (CONDITIONAL, is_conditional), (DRY_RUN, dry_run)];
        for (prefix, _) in prefixes.iter().filter(|(_, is)| *is) {
            outgoing.path = prefixed(prefix, &outgoing.path)?;
        }
        // Set before the call: when the deadline drops this future, the service may have received the request.
        self.sent.store(true, Ordering::Relaxed);
        let refused = |status: tonic::Status| {
            Refusal::from_status(&status, |pointer| self.operation.request.locate(&bound, pointer))
        };
        // A service that reads a record by its id may not look at faults that were found before.
        let overlooked = || {
            let found = &bound.faults;
            if found.is_empty() { Ok(()) } else { Err(refused(Error::from(found.clone()).into())) }
        };
        let counted = Counted { budget: &budgets.answers, owner };
        match &self.operation.response {
            Answer::Envelope(plan) => {
                let answer = if let (Some(upload), Some(field)) = (upload, field) {
                    upload.send(self.upstream()?, &outgoing, field).await?
                } else if self.operation.peer == NAME {
                    own::answer(self.app, &self.admitted, &outgoing, &bound.faults, &self.origin()).await
                } else {
                    self.upstream()?.call(&outgoing).await
                };
                let answer = answer.map_err(refused)?;
                overlooked()?;
                if dry_run {
                    let Admitted::Key(caller) = &self.admitted else { return Err(rehearsal::unsupported()) };
                    return rehearsal::answer(
                        self.app,
                        self.operation,
                        plan,
                        &answer,
                        &bound.ignored,
                        caller,
                        counted,
                    )
                    .await;
                }
                self.shown(plan, &answer, &bound.ignored, shape, &path, counted).await
            }
            Answer::HttpBody => {
                let answer = self.upstream()?.call(&outgoing).await.map_err(refused)?;
                overlooked()?;
                let answer = response::http_body(self.operation, answer, counted).await;
                answer.map_err(|refusal| self.after_call(refusal))
            }
            Answer::Stream => {
                let reserved = budgets.downloads.reserve_or_wait(owner, download::COST).await?;
                let answer = self.upstream()?.begin(&outgoing).await.map_err(refused)?;
                overlooked()?;
                response::download(self.operation, answer, reserved)
            }
            Answer::Export(plan) => {
                let reserved = budgets.downloads.reserve_or_wait(owner, tables::EXPORT_COST).await?;
                let answer = self.upstream()?.begin(&outgoing).await.map_err(refused)?;
                overlooked()?;
                let format = accept::export(&self.parts.headers);
                tables::export(self.operation, plan, answer.into_inner(), format, reserved)
            }
        }
    }

    /// The shape that the caller wants of a record or a list.
    fn shape(&self) -> Result<Shape<'_>, Refusal> {
        let expanded = expand::asked(self.app, self.operation, &self.admitted, self.parts.uri.query())?;
        let is_list = !self.changes() && self.operation.is_list();
        match accept::table(&self.parts.headers).filter(|_| is_list) {
            None => Ok(Shape::Envelope { expanded }),
            Some(format) if expanded.is_empty() => Ok(Shape::Table(format)),
            Some(_) => Err(tables::refuse_expansion()),
        }
    }

    /// What the service has answered, in that shape.
    async fn shown(
        &self,
        plan: &ResponsePlan,
        answer: &tonic::Response<Bytes>,
        ignored: &Ignored,
        shape: Shape<'_>,
        path: &[(&str, &str)],
        counted: Counted<'_>,
    ) -> Result<Response, Refusal> {
        let (operation, wire) = (self.operation, answer.get_ref());
        let wanted = match shape {
            Shape::Table(format) => {
                return tables::page(operation, plan, wire, ignored, format, counted).await;
            }
            Shape::Envelope { expanded } => expanded,
        };
        // What is expanded changes without the record.
        if wanted.is_empty() && !self.changes() && self.is_known(plan, wire) {
            return Ok(response::not_modified(plan, wire));
        }
        let expanded = match &self.admitted {
            Admitted::Key(caller) if !wanted.is_empty() => {
                Some(expand::expand(self.app, operation, caller, plan, wire, wanted).await?)
            }
            _ => None,
        };
        let answer = response::envelope(operation, plan, answer, ignored, expanded.as_ref(), path, counted);
        answer.await.map_err(|refusal| self.after_call(refusal))
    }

    /// Where the request comes from, for those that come inside it.
    fn origin(&self) -> Origin<'_> {
        Origin { parts: &self.parts, id: self.id, from: self.from, owner: self.owner }
    }

    /// What becomes of names that nobody knows.
    fn handling(&self) -> Handling {
        preference::handling(&self.admitted, &self.parts.headers)
    }

    /// Whether the caller has the record as it is now.
    fn is_known(&self, plan: &ResponsePlan, answer: &[u8]) -> bool {
        let is_volatile = self.operation.answered.as_ref().is_some_and(|answered| answered.is_volatile);
        let version = plan.data_version(answer).filter(|_| !is_volatile);
        version.is_some_and(|version| conditional::is_known(&self.parts.headers, version))
    }

    /// The service that answers.
    fn upstream(&self) -> Result<&Upstream, Refusal> {
        self.app.upstreams.get(&self.operation.peer).ok_or_else(|| {
            tracing::error!(peer = self.operation.peer, "PEERS has no address for this service");
            Refusal::new(Problem::Unavailable, "This part of the service is not running.")
        })
    }

    /// Honoured on every POST with an API key. Ignored on other methods, and without an account to store it for.
    fn idempotency_key(&self) -> Result<Option<&HeaderValue>, Refusal> {
        let honoured = self.parts.method == Method::POST && !self.operation.is_public();
        let key = self.parts.headers.get(IDEMPOTENCY_KEY).filter(|_| honoured);
        match key {
            Some(key) if !is_idempotency_key(key.as_bytes()) => Err(Refusal::bad_header(
                "Idempotency-Key",
                "Idempotency-Key must have 1 to 255 visible ASCII characters",
            )),
            key => Ok(key),
        }
    }

    /// The values of the path's variables as they were sent: the router has matched the shape already.
    fn path_values(&self) -> Vec<(&str, &str)> {
        let template = self.operation.path.split('/');
        let variables = template.zip(self.parts.uri.path().split('/'));
        variables.filter_map(|(name, value)| Some((variable(name)?, value))).collect()
    }

    fn outgoing(
        &self,
        bound: &Bound,
        message: Vec<u8>,
        key: Option<&HeaderValue>,
        condition: Option<Precondition>,
    ) -> Result<UpstreamCall, Refusal> {
        let mut headers = HeaderMap::with_capacity(8);
        let (service, sent) = (&self.operation.peer, &self.parts.headers);
        headers.insert(token::HEADER, self.admitted.context_token(self.app, service, sent));
        // The request-id layer made or checked it, so it is always a header value.
        if let Ok(mut id) = HeaderValue::try_from(self.id) {
            // Not secret, but no two requests have the same: HTTP/2 then does not keep it, in place of the token, for the next.
            id.set_sensitive(true);
            headers.insert(REQUEST_ID, id);
        }
        if let Some(key) = key {
            headers.insert(IDEMPOTENCY_KEY, key.clone());
        }
        if matches!(self.operation.response, Answer::Stream) {
            headers.insert(BODY_STREAM, HeaderValue::from_static("true"));
        }
        if self.parts.method == Method::HEAD {
            headers.insert(HEAD_ONLY, HeaderValue::from_static("true"));
        }
        if !bound.faults.is_empty() {
            headers.insert(CARRIED_FAULTS, binary(&CarriedFaults::from(bound.faults.clone()))?);
        }
        if let Some(condition) = condition {
            headers.insert(PRECONDITION, binary(&condition)?);
        }
        trace::pass_trace(&self.parts.headers, &mut headers);
        Ok(UpstreamCall {
            path: self.operation.grpc_path.clone(),
            message: message.into(),
            metadata: MetadataMap::from_headers(headers),
            // A little less than what is left, so that the service's own answer comes before this deadline.
            timeout: (self.deadline - DEADLINE_MARGIN).saturating_duration_since(Instant::now()),
            repeatable: !self.changes() || key.is_some(),
            changes: self.changes(),
        })
    }
}

fn prefixed(prefix: &str, path: &PathAndQuery) -> Result<PathAndQuery, Refusal> {
    PathAndQuery::try_from(format!("{prefix}{path}"))
        .map_err(|_| Refusal::new(Problem::Internal, "Something went wrong on our side."))
}

/// A message as a binary metadata entry.
fn binary(message: &impl Message) -> Result<HeaderValue, Refusal> {
    HeaderValue::try_from(STANDARD_NO_PAD.encode(message.encode_to_vec()))
        .map_err(|_| Refusal::new(Problem::Internal, "Something went wrong on our side."))
}
