//! What the service asks of the provider between its transactions. A file of its own, because `operations` only
//! writes and `rpc` only converts.

use chassis_data::Tx;
use chassis_rpc::Context;
use chrono::TimeDelta;
use proto::billing::StartVerificationResponse;
use sqlx::PgConnection;
use tonic::Response;
use uuid::Uuid;

use crate::error::Error;
use crate::mandate::{self, ClientMandate, Debtor};
use crate::online_payment::{CommandKind, Purpose, Status, provider_unavailable, store};
use crate::processor::PaymentProcessor;

/// A mandate that was fetched within this time is not fetched again.
const MAX_MANDATE_AGE: TimeDelta = TimeDelta::minutes(5);

/// Creates the verification at the provider, after the commit, and puts the provider's answer into the response: into
/// this one, and into the stored one that repeats of the call get. If the process is killed before that, a repeat
/// arrives here again, because the stored response has no `payment_url`.
pub(crate) async fn complete_verification(
    processor: &PaymentProcessor,
    context: &Context,
    response: &mut Response<StartVerificationResponse>,
) -> Result<(), Error> {
    let Some(data) = response.get_mut().data.as_mut().filter(|data| data.payment_url.is_empty()) else {
        return Ok(());
    };
    let id = data.meta.as_ref().and_then(|meta| chassis_base::id::parse(&meta.id)).unwrap_or_default();
    processor.execute_now(context, CommandKind::CreatePayment, id).await?;
    let found =
        processor.db.read(async |connection| store::find(connection, context.account_id(), id).await).await?;
    let payment = found.ok_or(Error::NotFound("verification"))?;
    match payment.status {
        Status::Requested => return Err(provider_unavailable()),
        Status::Failed => return Err(Error::PaymentRefused(payment.failure)),
        _ => {}
    }
    // A verification that ended before its URL could be returned has no checkout; its own page shows the status.
    let urls = [payment.checkout_url, payment.return_url];
    data.payment_url = urls.into_iter().find(|url| !url.is_empty()).unwrap_or_default();
    data.external_id = payment.external_id;
    // Stores the response only; the transaction itself changes nothing.
    Ok(processor.db.amend(context, &(), response.get_ref(), no_change).await?)
}

async fn no_change(_: &mut Tx<'_>, (): &()) -> Result<(), Error> {
    Ok(())
}

/// The stored mandate and verification of a client.
pub(crate) async fn load_mandate(
    processor: &PaymentProcessor,
    context: &Context,
    client: Uuid,
    provider: &str,
) -> Result<ClientMandate, Error> {
    let account = context.account_id();
    let read = async |connection: &mut PgConnection| {
        let debtor = mandate::store::find(connection, account, client, provider).await?;
        let purpose = Purpose::Verification;
        let verification = store::find_of_client(connection, account, client, provider, purpose).await?;
        Ok(ClientMandate { client_found: true, debtor, verification })
    };
    processor.db.read(read).await
}

/// Refreshes the open payments of a client, and its mandate if that was not fetched recently. If the provider does not
/// answer about the mandate, the stored one is good enough, unless it is `required` to be current.
pub(crate) async fn refresh_mandate(
    processor: &PaymentProcessor,
    context: &Context,
    client: Uuid,
    required: bool,
) -> Result<(), Error> {
    let (account, provider) = (context.account_id(), processor.provider.name());
    let stored = load_mandate(processor, context, client, provider).await?;
    let awaits_mandate = stored.debtor.as_ref().is_some_and(Debtor::awaits_mandate);
    let verification = stored.verification.filter(|payment| payment.status.is_open() || awaits_mandate);
    let purpose = Purpose::Collection;
    let collection = processor
        .db
        .read(async |connection| store::find_of_client(connection, account, client, provider, purpose).await)
        .await?;
    let collection = collection.filter(|payment| payment.status.is_open());
    for payment in [verification, collection].into_iter().flatten() {
        processor.refresh_best_effort(context, payment.id).await;
    }
    // Read again: the refresh of a payment fetches the mandate too, once the payment has ended.
    let debtor = processor
        .db
        .read(async |connection| mandate::store::find(connection, account, client, provider).await)
        .await?;
    let since = context.clock.now() - MAX_MANDATE_AGE;
    let Some(debtor) = debtor.filter(|debtor| debtor.is_stale(since)) else { return Ok(()) };
    let refreshed = mandate::refresh_now(&processor.db, &*processor.provider, context, &debtor).await;
    if required { refreshed } else { Ok(()) }
}
