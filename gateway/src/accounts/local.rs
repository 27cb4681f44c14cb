//! Calls of the account operations inside this process, without a network in between.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chassis::Context;
use chassis::account::{Account, AccountId};
use tonic::Request;
use uuid::Uuid;

use crate::serve::Runtime;

/// A request by whoever has this process' configuration: on behalf of no account. `None` when no secret is set.
pub fn local_request<T>(runtime: &Runtime, rpc: &'static str, message: T) -> Option<Request<T>> {
    let Runtime { tokens, clock, .. } = runtime;
    let nobody = Account {
        id: AccountId::trust(Uuid::nil()),
        timezone: chrono_tz::UTC,
        country: String::new(),
        currency: String::new(),
    };
    let token = tokens.to_self().mint_mesh(&nobody, "command line", clock.now());
    let mut request = Request::new(message);
    request.extensions_mut().insert(Context {
        identity: tokens.verify(&token, clock.now())?,
        request_id: "command line".into(),
        rpc,
        idempotency_key: None,
        carried: Arc::default(),
        deadline: Instant::now() + Duration::from_mins(1),
        clock: clock.clone(),
    });
    Some(request)
}
