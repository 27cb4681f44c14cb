//! Admission: who may make a request, decided before its body is read.

use std::net::IpAddr;
use std::sync::Arc;

use chassis_rpc::call::AUTOMATION_DEPTH;
use chassis_transcode::contract::Operation;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, header};
use proto::api::{Problem, RateClass};
use proto::policy::missing_scope;

use super::app::App;
use super::concurrency_limit::Requester;
use super::problem::Refusal;
use super::public;
use crate::keys::{AuthError, Caller, TokenHolder};
use crate::limits::Decision;

/// Who was admitted.
pub(super) enum Admitted {
    /// The holder of a key with the scope of the operation.
    Key(Arc<Caller>),
    /// Anyone: the service checks the token in the path.
    Public,
}

impl Admitted {
    /// Whom the permit of the request counts for.
    pub(super) fn requester(&self, from: IpAddr) -> Requester {
        match self {
            Self::Key(caller) => Requester::Account(caller.account.id),
            Self::Public => Requester::Address(from),
        }
    }

    /// The context token for the call to the service that a request with these headers leads to.
    pub(super) fn context_token(&self, app: &App, service: &str, headers: &HeaderMap) -> HeaderValue {
        match self {
            Self::Key(caller) => caller.context_token_at(service, automation_depth(headers)),
            Self::Public => {
                let now = app.runtime.clock.now();
                let mint = || app.runtime.tokens.to(service).mint_public(now);
                app.public_tokens.header(TokenHolder::PUBLIC, service, now, mint)
            }
        }
    }
}

/// The depth in a chain of automation that a request claims. The claim needs no proof: a larger one only ends the
/// caller's own chain earlier.
fn automation_depth(headers: &HeaderMap) -> u32 {
    let claims = headers.get_all(AUTOMATION_DEPTH).iter();
    let claims = claims.filter_map(|claim| claim.to_str().ok()?.trim().parse::<u32>().ok());
    claims.max().unwrap_or_default()
}

/// Checks key, rate limit and scope, in this order; of a public operation the rate limit of the address, and that a form
/// does not come from a page of another site.
pub(super) async fn admit(
    app: &App,
    operation: &Operation,
    parts: &Parts,
    from: IpAddr,
    limit_headers: &mut HeaderMap,
) -> Result<Admitted, Refusal> {
    if operation.is_public() {
        let decision = app.limits.public.check(from);
        within(decision, limit_headers)?;
        public::refuse_cross_site(&parts.method, &parts.headers)?;
        return Ok(Admitted::Public);
    }
    let caller = authenticate(app, &parts.headers, from).await?;
    let decision = match operation.policy.rate() {
        RateClass::Exact30Per60Seconds => {
            let now = app.runtime.clock.now();
            let checked = app.limits.exact.check(&app.runtime.db, &caller, now).await;
            Some(checked.map_err(|error| database_unavailable(&error))?)
        }
        RateClass::Unspecified => app.limits.key.check(&caller),
    };
    within(decision, limit_headers)?;
    let policy = &operation.policy;
    let has = |scope: &str| caller.has_scope(scope);
    if let Some(scope) = missing_scope(&policy.scope, &policy.and_scope, &policy.or_scope, has) {
        return Err(lacks_scope(scope));
    }
    Ok(Admitted::Key(caller))
}

/// The refusal of a key without this scope.
pub(super) fn lacks_scope(scope: &str) -> Refusal {
    let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\"");
    let detail = format!("This API key lacks the scope {scope}. Make a key that has it.");
    Refusal::new(Problem::InsufficientScope, detail).with_header(
        header::WWW_AUTHENTICATE,
        HeaderValue::try_from(challenge).unwrap_or(HeaderValue::from_static("Bearer")),
    )
}

/// Writes the limit, if any, to the headers, and refuses a request above it.
pub(super) fn within(decision: Option<Decision>, headers: &mut HeaderMap) -> Result<(), Refusal> {
    let Some(decision) = decision else { return Ok(()) };
    decision.write_headers(headers);
    if decision.allowed { Ok(()) } else { Err(too_many(&decision)) }
}

async fn authenticate(app: &App, headers: &HeaderMap, from: IpAddr) -> Result<Arc<Caller>, Refusal> {
    // A valid key is accepted, whatever else comes from the same address.
    let limited = app.limits.failed_auth.blocked(from);
    let key = headers.get(header::AUTHORIZATION).and_then(|value| bearer(value.to_str().ok()?));
    let answer = match key {
        Some(key) if limited.is_some() => app.keys.authenticate_limited(key).await,
        Some(key) => app.keys.authenticate(key).await,
        None => Err(AuthError::Refused),
    };
    answer.map_err(|error| match (error, limited) {
        (AuthError::Refused, Some(decision)) => too_many(&decision),
        (AuthError::Refused, None) => {
            app.limits.failed_auth.record_failure(from);
            let detail = "Send a valid API key in the header `Authorization: Bearer <key>`.";
            Refusal::new(Problem::Unauthenticated, detail)
                .with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
        }
        (AuthError::Unavailable(error), _) => database_unavailable(&error),
    })
}

/// The key of a `Bearer` header. The scheme is case-insensitive.
fn bearer(value: &str) -> Option<&str> {
    let (scheme, key) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

fn database_unavailable(error: &chassis_base::Error) -> Refusal {
    tracing::warn!(%error, "reading keys or limits failed");
    Refusal::new(
        Problem::Unavailable,
        "The service cannot check API keys right now. Repeat the request in a moment.",
    )
}

fn too_many(decision: &Decision) -> Refusal {
    let seconds = decision.retry_after_seconds;
    Refusal::new(Problem::RateLimited, format!("Too many requests. Wait {seconds} s and try again."))
        .with_header(header::RETRY_AFTER, HeaderValue::from(seconds))
}
