//! Writes of endpoints, and of the scopes of their keys.

use chassis_base::update_mask::UpdateMask;
use chassis_data::Tx;
use chassis_data::log::snapshot::{Shown, uuids};
use proto::automation::{WebhookEndpoint, WebhookEndpointInput};
use uuid::Uuid;

use super::NOT_FOUND;
use crate::egress::Secret;
use crate::error::Error;
use crate::webhook::rules::{self, MAX_ENDPOINTS, SECRET_OVERLAP};
use crate::webhook::{AUDITED, Binding, Endpoint, store};

pub(in crate::webhook) async fn create(
    tx: &mut Tx<'_>,
    given: &WebhookEndpointInput,
    allow_private: bool,
) -> Result<Endpoint, Error> {
    let account = tx.account();
    let mut endpoint = Endpoint::new(tx.id(), tx.now());
    rules::apply(UpdateMask::All, given, &mut endpoint, allow_private, &mut tx.faults);
    tx.valid()?;
    if store::count(tx.db(), account).await? >= MAX_ENDPOINTS {
        return Err(Error::TooManyEndpoints);
    }
    endpoint.binding = tx.caller().map(|caller| Binding::of_caller(&caller.identity)).unwrap_or_default();
    save(tx, &endpoint).await?;
    Ok(endpoint)
}

/// Changes the named fields. `id` is `None` when the path has no valid id: the faults of the body are reported before an
/// endpoint that is not found.
pub(in crate::webhook) async fn update(
    tx: &mut Tx<'_>,
    id: Option<Uuid>,
    named: UpdateMask<'_>,
    given: &WebhookEndpointInput,
    allow_private: bool,
) -> Result<Endpoint, Error> {
    let (account, now) = (tx.account(), tx.now());
    let found = match id {
        Some(id) => store::find_locked(tx.db(), account, id).await?,
        None => None,
    };
    let is_found = found.is_some();
    let mut endpoint = found.unwrap_or_else(|| Endpoint::new(Uuid::nil(), now));
    let before = WebhookEndpoint::from(endpoint.clone());
    let old_retry_at = endpoint.retry_at;
    let old_url = endpoint.url.clone();
    rules::apply(named, given, &mut endpoint, allow_private, &mut tx.faults);
    tx.valid()?;
    if !is_found {
        return Err(NOT_FOUND);
    }
    if WebhookEndpoint::from(endpoint.clone()) == before {
        tx.unaudited("it is as it was");
        return Ok(endpoint);
    }
    if let Some(caller) = tx.caller().filter(|_| endpoint.url != old_url) {
        endpoint.binding = endpoint.binding.taken_over(&caller.identity);
    }
    save_next(tx, &mut endpoint).await?;
    if let (Some(old_retry_at), None) = (old_retry_at, endpoint.retry_at) {
        store::resume(tx.db(), account, endpoint.id, old_retry_at, now).await?;
    }
    Ok(endpoint)
}

/// Stores an endpoint and its change in the log.
async fn save(tx: &mut Tx<'_>, endpoint: &Endpoint) -> Result<(), Error> {
    let account = tx.account();
    store::put(tx.db(), account, endpoint).await?;
    tx.changed(AUDITED, endpoint.id, &WebhookEndpoint::from(endpoint.clone()));
    Ok(())
}

/// Stores a changed endpoint as its next version.
async fn save_next(tx: &mut Tx<'_>, endpoint: &mut Endpoint) -> Result<(), Error> {
    endpoint.version += 1;
    endpoint.updated_at = tx.now();
    save(tx, endpoint).await
}

/// Stores the health of an endpoint, which was `before`. What it shows of that is a change of it; its backoff is not.
pub(super) async fn save_health(
    tx: &mut Tx<'_>,
    endpoint: &mut Endpoint,
    before: &WebhookEndpoint,
) -> Result<(), Error> {
    if WebhookEndpoint::from(endpoint.clone()) != *before {
        return save_next(tx, endpoint).await;
    }
    tx.unaudited("an endpoint does not show its backoff");
    let account = tx.account();
    store::put(tx.db(), account, endpoint).await
}

pub(in crate::webhook) async fn delete(tx: &mut Tx<'_>, id: Uuid) -> Result<(), Error> {
    let account = tx.account();
    if !store::delete(tx.db(), account, id).await? {
        return Err(NOT_FOUND);
    }
    tx.removed(AUDITED, id);
    Ok(())
}

pub(in crate::webhook) async fn rotate_secret(tx: &mut Tx<'_>, id: Uuid) -> Result<Endpoint, Error> {
    let (account, now) = (tx.account(), tx.now());
    let mut endpoint = store::find_locked(tx.db(), account, id).await?.ok_or(NOT_FOUND)?;
    endpoint.old_secret = Some(std::mem::replace(&mut endpoint.secret, Secret::random()));
    endpoint.old_secret_until = Some(now + SECRET_OVERLAP);
    save_next(tx, &mut endpoint).await?;
    Ok(endpoint)
}

/// Binds an endpoint to a key and scopes. An endpoint does not show its binding, but the log has to show when somebody
/// changed it and who, so it is a change.
pub(in crate::webhook) async fn assign(
    tx: &mut Tx<'_>,
    id: Uuid,
    key: &str,
    scopes: &[String],
) -> Result<Endpoint, Error> {
    let account = tx.account();
    let mut endpoint = store::find_locked(tx.db(), account, id).await?.ok_or(NOT_FOUND)?;
    if endpoint.binding.key == key && endpoint.binding.scopes.as_deref() == Some(scopes) {
        tx.unaudited("it is as it was");
        return Ok(endpoint);
    }
    endpoint.binding = Binding { key: key.to_owned(), scopes: Some(scopes.to_vec()), reported: None };
    save_next(tx, &mut endpoint).await?;
    Ok(endpoint)
}

/// Stores the scopes that a key has now, as the gateway reports them.
pub(in crate::webhook) async fn set_key_scopes(
    tx: &mut Tx<'_>,
    key: &str,
    scopes: &[String],
) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    store::put_key_scopes(tx.db(), account, key, scopes, now).await
}

/// Shows the endpoints with these ids.
pub(crate) async fn show(tx: &mut Tx<'_>, ids: &[String], shown: &mut Shown) -> Result<(), Error> {
    let account = tx.account();
    for id in uuids(ids) {
        if let Some(endpoint) = store::find(tx.db(), account, id).await? {
            shown.add(id, &WebhookEndpoint::from(endpoint));
        }
    }
    Ok(())
}
