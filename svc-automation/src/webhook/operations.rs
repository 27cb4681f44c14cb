//! What is done with webhooks as a whole.

use chassis_base::time::timestamp;
use chassis_data::Tx;
use chassis_work::worker::Job;
use chrono::{DateTime, Utc};
use proto::automation::GetSigningSecretResponse;
use serde_json::json;
use uuid::Uuid;

use super::rules::{CUSTOM, OVERLAP, PENDING};
use super::{Binding, Delivery, Endpoint, store};
use crate::Error;
use crate::event::{Event, rfc3339};
use crate::outside::Secret;

/// What the audit log calls the account's secret, of which it never has more than its times.
const SIGNING: &str = "signing_secret";

/// Queues what the endpoints of the account are told of these events.
pub(crate) async fn queue(tx: &mut Tx<'_>, events: &[Event]) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    let endpoints = store::list_active(tx.db(), account).await?;
    let mut deliveries = Vec::new();
    for event in events {
        for endpoint in
            endpoints.iter().filter(|one| wants(&one.types, event) && one.reader().may_read(event))
        {
            let told = (event.kind.as_str(), payload(event));
            let mut delivery = delivery(tx.id(), endpoint.id, Some(event.id), told, now);
            // Behind what waits already for an endpoint that is left alone.
            delivery.next_at = delivery.next_at.max(endpoint.retry_at);
            deliveries.push(delivery);
        }
    }
    if !deliveries.is_empty() {
        store::insert_deliveries(tx.db(), account, &deliveries).await?;
    }
    Ok(())
}

/// Whether an endpoint asks for an event. One that an integration fired may be asked for as `custom.NAME` too.
fn wants(types: &[String], event: &Event) -> bool {
    let is_custom =
        |kind: &String| kind.strip_prefix(CUSTOM) == Some(event.kind.as_str()) && event.sequence.is_none();
    types.is_empty() || types.iter().any(|kind| *kind == event.kind || is_custom(kind))
}

fn payload(event: &Event) -> String {
    let mut shown = event.shown();
    shown["timestamp"] = json!(rfc3339(event.occurred_at));
    shown.to_string()
}

/// A delivery that is due at once.
pub(super) fn delivery(
    id: Uuid,
    endpoint_id: Uuid,
    event_id: Option<Uuid>,
    (kind, payload): (&str, String),
    now: DateTime<Utc>,
) -> Delivery {
    Delivery {
        id,
        endpoint_id,
        event_id,
        kind: kind.to_owned(),
        payload,
        status: PENDING.to_owned(),
        attempts: 0,
        response_status: None,
        error: String::new(),
        next_at: Some(now),
        created_at: now,
        delivered_at: None,
    }
}

/// A new endpoint, without values.
pub(super) fn endpoint(id: Uuid, now: DateTime<Utc>) -> Endpoint {
    Endpoint {
        id,
        url: String::new(),
        description: String::new(),
        types: Vec::new(),
        active: true,
        notify_email: String::new(),
        secret: Secret::random(),
        old_secret: None,
        old_secret_until: None,
        failing_since: None,
        unanswered: 0,
        retry_at: None,
        disabled_reason: String::new(),
        binding: Binding::default(),
        created_at: now,
        updated_at: now,
    }
}

/// The secrets that sign requests of steps; the first is made when it is needed.
pub(crate) async fn signing_secrets(job: &Job) -> Result<Vec<Secret>, chassis_base::Error> {
    let (account, now) = (job.account_id(), job.now());
    let found = job.db().read(async |connection| store::find_signing(connection, account).await).await?;
    let signing = match found {
        Some(signing) => signing,
        None => job.write(&(), ensure_signing).await?,
    };
    Ok(in_use(signing, now))
}

fn in_use((secret, old, until): store::Signing, now: DateTime<Utc>) -> Vec<Secret> {
    let old = old.filter(|_| until.is_some_and(|until| until > now));
    std::iter::once(secret).chain(old).map(Secret::from_bytes).collect()
}

/// The account's secret, made if there is none.
pub(super) async fn ensure_signing(tx: &mut Tx<'_>, (): &()) -> Result<store::Signing, Error> {
    let account = tx.account();
    if store::insert_signing(tx.db(), account, &Secret::random()).await? {
        tx.changed(SIGNING, account, &GetSigningSecretResponse::default());
    }
    let found = store::find_signing(tx.db(), account).await?;
    Ok(found.ok_or_else(|| chassis_base::Error::Internal("a secret that was not stored".to_owned()))?)
}

/// A new secret for the account, and until when the one before it signs along.
pub(super) async fn rotate_signing(tx: &mut Tx<'_>) -> Result<(Secret, DateTime<Utc>), Error> {
    let (account, until, secret) = (tx.account(), tx.now() + OVERLAP, Secret::random());
    ensure_signing(tx, &()).await?;
    store::rotate_signing(tx.db(), account, &secret, until).await?;
    let kept = GetSigningSecretResponse { old_secret_until: Some(timestamp(until)), ..Default::default() };
    tx.changed(SIGNING, account, &kept);
    Ok((secret, until))
}
