//! The layer in front of every rpc: authenticates the caller, sets the deadline and sheds load. Puts the [`Context`]
//! that handlers work with into the request.

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use chassis_base::Clock;
use chassis_base::error::status::{in_doubt, of_problem, unavailable};
use chassis_base::shares::Shares;
use futures::future::Either;
use http::{HeaderMap, Request, Response, Uri};
use http_body_util::BodyExt;
use prost::Message;
use proto::Faults;
use proto::api::{Access, CarriedFaults, Problem};
use proto::policy::{RPCS, Rpc};
use tokio::sync::Semaphore;
use tonic::body::Body;
use tonic::{Code, Status};
use tower::{Layer, Service};
use tracing::Instrument;

use crate::call::{
    CARRIED_FAULTS, CONDITIONAL, Context, DRY_RUN, EXPORT, IDEMPOTENCY_KEY, PRECONDITION, REQUEST_ID,
};
use crate::export;
use crate::scope::{self, Effect, Retained};
use crate::tls::Callers;
use crate::token::{self, Identity, Tokens};
use crate::trace;

/// Health checks are open to any process with a valid certificate.
const HEALTH: &str = "/grpc.health.v1.Health/";

/// Time reserved before the caller's deadline, so that the timeout response still reaches the caller.
const ANSWER_MARGIN: Duration = Duration::from_millis(200);

struct Shared {
    rpcs: HashMap<&'static str, &'static Rpc>,
    tokens: Tokens,
    clock: Clock,
    deadline: Duration,
    capacity: Arc<Semaphore>,
    accounts: Shares,
    callers: Option<Callers>,
}

#[derive(Clone)]
pub struct MeshLayer(Arc<Shared>);

impl MeshLayer {
    /// `callers` are the processes that may call; `None` when callers present no certificate.
    pub fn new(
        tokens: Tokens,
        clock: Clock,
        deadline: Duration,
        max_in_flight: usize,
        callers: Option<Callers>,
    ) -> Self {
        let capacity = Arc::new(Semaphore::new(max_in_flight));
        let accounts = Shares::new(max_in_flight.div_ceil(2));
        Self(Arc::new(Shared { rpcs: rpcs(), tokens, clock, deadline, capacity, accounts, callers }))
    }
}

fn rpcs() -> HashMap<&'static str, &'static Rpc> {
    RPCS.iter().map(|rpc| (rpc.path, rpc)).collect()
}

impl<S> Layer<S> for MeshLayer {
    type Service = MeshService<S>;

    fn layer(&self, inner: S) -> MeshService<S> {
        MeshService { inner, shared: Arc::clone(&self.0) }
    }
}

#[derive(Clone)]
pub struct MeshService<S> {
    inner: S,
    shared: Arc<Shared>,
}

type Answer = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

impl<S> Service<Request<Body>> for MeshService<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, cx: &mut task::Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Answer {
        let shared = Arc::clone(&self.shared);
        if let Some(callers) = &shared.callers
            && !request.uri().path().starts_with(HEALTH)
            && let Err(status) = callers.allow(request.extensions())
        {
            return refuse(status);
        }
        let dry_run = take_prefix(&mut request, DRY_RUN);
        let is_conditional = take_prefix(&mut request, CONDITIONAL);
        let is_export = take_prefix(&mut request, EXPORT);
        let Some(rpc) = shared.rpcs.get(request.uri().path()) else {
            // Health, reflection, or an unknown path: these need no account.
            return Box::pin(self.inner.call(request));
        };
        if dry_run && rpc.cannot_rehearse {
            let detail = "This call involves somebody outside, which cannot be undone.";
            return refuse(of_problem(Problem::CannotRehearse, detail, Vec::new(), None));
        }
        if is_export && !export::is_list(rpc.path) {
            return refuse(Status::unimplemented("this call has no list to export"));
        }
        // The permit is held until the handler returns. A request without one is refused: a queue would only add delay.
        let Ok(permit) = Arc::clone(&shared.capacity).try_acquire_owned() else {
            return shed("This service has too much to do. Repeat the request in a moment.");
        };
        let context = match shared.context(rpc, request.headers()) {
            Ok(context) if is_conditional != context.precondition.is_some() => {
                return refuse(Status::invalid_argument(
                    "the path does not say whether there is a precondition",
                ));
            }
            Ok(context) => Context { dry_run, ..context },
            Err(status) => return refuse(status),
        };
        let span = tracing::info_span!(
            "rpc",
            rpc = rpc.path,
            request_id = &*context.request_id,
            account = %context.account_id()
        );
        trace::continue_trace(&span, request.headers());
        let (name, deadline) = (rpc.path, context.deadline);
        let (effect, kept) = (Effect::default(), Retained::default());
        let account = context.account_id();
        let Some(share) = shared.accounts.enter(account) else {
            return shed("This account has too many requests in progress. Repeat the request in a moment.");
        };
        request.extensions_mut().insert(context);
        let call = scope::Call { account, dry_run, effect: effect.clone(), kept: kept.clone() };
        let answer = if is_export {
            let answer = export::answer(self.inner.clone(), request, shared.deadline);
            Either::Left(scope::call(call, answer))
        } else {
            Either::Right(scope::call(call, self.inner.call(request)))
        };
        let answer = async move {
            let started = Instant::now();
            // At the deadline the handler is dropped at its current await; `effect` says whether it had sent a commit.
            let answer = tokio::time::timeout_at(deadline.into(), answer).await;
            drop((permit, share));
            let response = match answer {
                Ok(Ok(response)) => response,
                Ok(Err(never)) => match never {},
                Err(_) => {
                    of_problem(Problem::Timeout, "The answer took too long.", Vec::new(), None).into_http()
                }
            };
            let response = report_effect(response, &effect);
            measure(name, started, response.headers());
            Ok(hold(&kept, response))
        };
        Box::pin(answer.instrument(span))
    }
}

/// Removes a prefix from the path; returns whether it was there.
fn take_prefix(request: &mut Request<Body>, prefix: &str) -> bool {
    let Some(path) = request.uri().path().strip_prefix(prefix) else { return false };
    let mut parts = request.uri().clone().into_parts();
    parts.path_and_query = path.parse().ok();
    match Uri::from_parts(parts) {
        Ok(uri) => {
            *request.uri_mut() = uri;
            true
        }
        Err(_) => false,
    }
}

fn shed(detail: &str) -> Answer {
    metrics::counter!("shed_total").increment(1);
    refuse(unavailable(detail))
}

fn refuse(status: Status) -> Answer {
    Box::pin(std::future::ready(Ok(status.into_http())))
}

/// Ties the values that the call retains to the body, so that they are dropped when the body is sent or dropped.
fn hold(kept: &Retained, response: Response<Body>) -> Response<Body> {
    let held = kept.take();
    if held.is_empty() {
        return response;
    }
    response.map(|body| {
        Body::new(body.map_frame(move |frame| {
            let _ = &held;
            frame
        }))
    })
}

/// UNAVAILABLE and DEADLINE_EXCEEDED tell the caller that a repeat is safe. After a commit may have been sent, that is
/// not true, and the response says so instead.
fn report_effect(response: Response<Body>, effect: &Effect) -> Response<Body> {
    let Some(status) = Status::from_header_map(response.headers()) else { return response };
    if !matches!(status.code(), Code::Unavailable | Code::DeadlineExceeded) {
        return response;
    }
    match effect.may_have_happened() {
        Some(done) => in_doubt(&status, done.record).into_http(),
        None => response,
    }
}

fn measure(rpc: &'static str, started: Instant, headers: &HeaderMap) {
    // An error has no body and carries its code in the headers.
    let code =
        headers.get("grpc-status").and_then(|code| code.to_str().ok()?.parse::<i32>().ok()).unwrap_or(0);
    metrics::histogram!("rpc_seconds", "rpc" => rpc, "code" => code.to_string()).record(started.elapsed());
}

impl Shared {
    fn identity(&self, rpc: &Rpc, headers: &HeaderMap) -> Option<Arc<Identity>> {
        if rpc.access == Access::Credential {
            return Some(Arc::new(Identity::nobody()));
        }
        self.tokens.verify(text(headers, token::HEADER)?, self.clock.now())
    }

    fn context(&self, rpc: &Rpc, headers: &HeaderMap) -> Result<Context, Status> {
        let identity = self.identity(rpc, headers).ok_or_else(|| {
            of_problem(Problem::Unauthenticated, "A valid context token is needed.", Vec::new(), None)
        })?;
        allow(rpc, &identity)?;
        Ok(Context {
            identity,
            request_id: text(headers, REQUEST_ID).unwrap_or_default().into(),
            rpc: rpc.path,
            idempotency_key: idempotency_key(headers)?,
            carried: Arc::new(
                carried::<CarriedFaults>(headers, CARRIED_FAULTS)?.map(Faults::from).unwrap_or_default(),
            ),
            precondition: carried(headers, PRECONDITION)?.map(Arc::new),
            dry_run: false,
            deadline: Instant::now() + timeout(headers).map_or(self.deadline, before),
            clock: self.clock.clone(),
        })
    }
}

fn allow(rpc: &Rpc, identity: &Identity) -> Result<(), Status> {
    if token::allows(&identity.scopes, rpc) {
        return Ok(());
    }
    let detail = format!("This call needs the scope {}.", token::needed_scopes(rpc).join(" and "));
    Err(of_problem(Problem::InsufficientScope, &detail, Vec::new(), None))
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// 1 to 255 visible ASCII characters.
pub fn is_idempotency_key(key: &[u8]) -> bool {
    (1..=255).contains(&key.len()) && key.iter().all(u8::is_ascii_graphic)
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<Arc<str>>, Status> {
    let Some(key) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    match key.to_str() {
        Ok(text) if is_idempotency_key(key.as_bytes()) => Ok(Some(text.into())),
        _ => Err(Status::invalid_argument("idempotency-key must have 1 to 255 visible ASCII characters")),
    }
}

/// The message in this binary metadata entry.
fn carried<M: Message + Default>(headers: &HeaderMap, name: &str) -> Result<Option<M>, Status> {
    let Some(encoded) = headers.get(name) else { return Ok(None) };
    let bytes = STANDARD_NO_PAD.decode(encoded.as_bytes().trim_ascii_end()).ok();
    let message = bytes.and_then(|bytes| M::decode(bytes.as_slice()).ok());
    message.map(Some).ok_or_else(|| Status::invalid_argument(format!("{name} cannot be read")))
}

/// Ends a little before the caller's own timeout: only the service can say whether the call had an effect, so its
/// response has to arrive in time.
fn before(timeout: Duration) -> Duration {
    timeout.saturating_sub((timeout / 20).min(ANSWER_MARGIN))
}

/// The timeout that a gRPC caller sends: up to eight digits and a unit.
fn timeout(headers: &HeaderMap) -> Option<Duration> {
    let text = text(headers, "grpc-timeout")?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let amount: u64 = digits.parse().ok().filter(|_| digits.len() <= 8)?;
    match unit {
        "H" => Some(Duration::from_hours(amount)),
        "M" => Some(Duration::from_mins(amount)),
        "S" => Some(Duration::from_secs(amount)),
        "m" => Some(Duration::from_millis(amount)),
        "u" => Some(Duration::from_micros(amount)),
        "n" => Some(Duration::from_nanos(amount)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chassis_base::AccountId;

    #[test]
    fn a_grpc_timeout_is_read() {
        let timeout = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-timeout", text.parse().unwrap());
            super::timeout(&headers)
        };
        assert_eq!(timeout("250m"), Some(Duration::from_millis(250)));
        assert_eq!(timeout("99999999H"), Some(Duration::from_hours(99_999_999)));
        for wrong in ["", "m", "10", "123456789S", "-1S", "1x"] {
            assert_eq!(timeout(wrong), None, "{wrong:?}");
        }
    }

    #[tokio::test]
    async fn what_a_call_keeps_is_held_until_its_answer_is_sent() {
        let (thing, kept) = (Arc::new(()), Retained::default());
        let account = AccountId::trust(uuid::Uuid::nil());
        let keeping = Arc::clone(&thing);
        let call = scope::Call { account, dry_run: false, effect: Effect::default(), kept: kept.clone() };
        scope::call(call, async { scope::keep(keeping) }).await;
        let body = Body::new(http_body_util::Full::new(bytes::Bytes::from_static(b"an answer")));
        let response = hold(&kept, Response::new(body));
        drop(kept);
        assert_eq!(Arc::strong_count(&thing), 2);
        drop(response);
        assert_eq!(Arc::strong_count(&thing), 1);
    }

    #[test]
    fn a_public_context_reaches_public_rpcs_and_nothing_else() {
        let (tokens, now) = (Tokens::new("secret"), chrono::DateTime::UNIX_EPOCH);
        let public = tokens.verify(&tokens.to_self().mint_public(now), now).unwrap();
        let rpc = |access, scope| Rpc {
            path: "/a.S/M",
            access,
            scope,
            and_scope: "",
            or_scope: "",
            internal: false,
            cannot_rehearse: false,
        };
        let allowed = |access, scope| allow(&rpc(access, scope), &public);
        assert!(allowed(Access::Public, "").is_ok());
        for (access, scope) in [
            (Access::Key, "clients.read"),
            (Access::Key, "any"),
            (Access::Key, token::PUBLIC_SCOPE),
            (Access::Mesh, ""),
            (Access::Unspecified, ""),
        ] {
            let refused = allowed(access, scope).unwrap_err();
            assert_eq!(refused.code(), tonic::Code::PermissionDenied, "{access:?} {scope}");
        }
        for rpc in RPCS.iter().filter(|rpc| !matches!(rpc.access, Access::Public | Access::Credential)) {
            assert!(allow(rpc, &public).is_err(), "{}", rpc.path);
        }
    }

    #[test]
    fn an_internal_team_reaches_the_rpcs_of_its_areas_and_nothing_that_processes_say_to_each_other() {
        let (tokens, now) = (Tokens::new("secret"), chrono::DateTime::UNIX_EPOCH);
        let account =
            chassis_base::Account::unknown(chassis_base::AccountId::trust(uuid::Uuid::from_u128(7)));
        let scopes =
            ["crm.internal", "relations.read", "api.internal", "accounts.internal"].map(str::to_owned);
        let token = tokens.to_self().mint(&account, "id", "Reporting", &scopes, now);
        let team = tokens.verify(&token, now).unwrap();
        let mut internal = 0;
        for rpc in RPCS {
            let expected = match rpc.access {
                Access::Public | Access::Credential => true,
                Access::Key => {
                    let is_internal = rpc.internal && rpc.path.starts_with("/admin.crm.");
                    is_internal || ["relations.read", "any"].contains(&rpc.scope)
                }
                Access::Mesh => rpc.path.starts_with("/admin.crm."),
                Access::Unspecified => false,
            };
            internal += usize::from(expected && (rpc.internal || rpc.access == Access::Mesh));
            assert_eq!(allow(rpc, &team).is_ok(), expected, "{}", rpc.path);
        }
        assert!(internal > 0);
    }

    #[test]
    fn an_idempotency_key_is_visible_ascii_of_bounded_length() {
        assert!(is_idempotency_key(b"a") && is_idempotency_key(&[b'~'; 255]));
        for wrong in [&b""[..], &[b'a'; 256], b"a b", b"\xc3\xa9", b"\t"] {
            assert!(!is_idempotency_key(wrong));
        }
    }
}
