//! Fetches the mandate of one client within a call. A file of its own, because it calls the provider between
//! transactions, which neither `operations` nor `rpc` may do.

use std::time::{Duration, Instant};

use chassis_data::Db;
use chassis_rpc::Context;
use provider::Provider;

use super::Debtor;
use super::operations::{FetchedMandates, record_mandates};
use crate::error::Error;
use crate::online_payment::{ProviderName, provider_unavailable};

/// The part of the caller's time that is reserved for the answer.
const ANSWER_TIME: Duration = Duration::from_millis(500);

/// Fetches the mandates of a client and stores them, within the caller's deadline.
pub(crate) async fn refresh_now(
    db: &Db,
    provider: &dyn Provider,
    context: &Context,
    debtor: &Debtor,
) -> Result<(), Error> {
    let at = context.clock.now();
    let remaining = context.deadline.saturating_duration_since(Instant::now()).saturating_sub(ANSWER_TIME);
    let answer = tokio::time::timeout(remaining, provider.list_mandates(&debtor.customer_id)).await;
    let mandates = match answer {
        Ok(Ok(mandates)) => mandates,
        Ok(Err(fault)) => {
            tracing::warn!(%fault, client = %debtor.client_id, "mandate could not be fetched");
            return Err(provider_unavailable());
        }
        Err(_) => return Err(provider_unavailable()),
    };
    let provider = ProviderName(provider.name());
    let fetched = FetchedMandates { client: debtor.client_id, provider, mandates, at };
    // Without its idempotency key: the answer that a repeat of the call gets is stored by another transaction.
    let context = Context { idempotency_key: None, ..context.clone() };
    Ok(db.amend(&context, &fetched, &(), record_mandates).await?)
}
