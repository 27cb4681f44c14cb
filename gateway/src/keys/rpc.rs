//! `KeyService`: the keys of the caller's own account. A key never gets more than the key that makes it.

use chassis_base::paging::Page;
use chassis_base::time::timestamp;
use chassis_base::{Error, id};
use chassis_data::Tx;
use chassis_data::list::Selection;
use chassis_rpc::{Call, Context};
use chrono::{DateTime, Utc};
use proto::At;
use proto::api::{Fault, Problem};
use proto::gateway::key_service_server::KeyService;
use proto::gateway::{
    ApiKey, ApiKeyInput, ApiKeyWithSecret, CreateApiKeyRequest, CreateApiKeyResponse, GetMeRequest,
    GetMeResponse, Limits, ListApiKeysRequest, ListApiKeysResponse, Me, OwnAccount, RevokeApiKeyRequest,
    RevokeApiKeyResponse,
};
use tonic::{Request, Response, Status};

use super::rules::{KeySettings, expiry, has_ended, select_scopes};
use super::store::Filter;
use super::{Record, operations, store};
use crate::accounts;
use crate::runtime::Runtime;

/// How many keys of an account can be usable at the same time.
const MAX_USABLE: i64 = 500;

pub(crate) struct Keys {
    pub runtime: Runtime,
    /// What every key is limited to.
    pub limits: Limits,
}

#[tonic::async_trait]
impl KeyService for Keys {
    async fn get_me(&self, request: Request<GetMeRequest>) -> Result<Response<GetMeResponse>, Status> {
        let (context, _) = Call::open(request)?.valid()?;
        let (account, public_id) = (context.account_id(), &context.identity.actor);
        let (record, key) = self
            .runtime
            .db
            .read(async |connection| {
                let record = accounts::operations::get(connection, &account.to_string()).await?;
                Ok::<_, Error>((record, store::find(connection, account, public_id).await?))
            })
            .await?;
        let account = OwnAccount {
            id: record.account_id.to_string(),
            name: record.name,
            country: record.country,
            timezone: record.timezone,
            currency: record.currency,
        };
        let me = Me { account: Some(account), key: key.map(Into::into), limits: Some(self.limits) };
        Ok(Response::new(GetMeResponse { data: Some(me) }))
    }

    async fn list_api_keys(
        &self,
        request: Request<ListApiKeysRequest>,
    ) -> Result<Response<ListApiKeysResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let page = Page::new(input.page, input.per_page);
        let selection = Selection::new(context.account(), &input);
        let filter = Filter { selection, active: input.active, now: context.clock.now() };
        let (records, meta) = self
            .runtime
            .db
            .read(async |connection| store::page(connection, context.account_id(), &filter, page).await)
            .await?;
        let data = records.into_iter().map(ApiKey::from).collect();
        Ok(Response::new(ListApiKeysResponse { data, meta: Some(meta) }))
    }

    async fn create_api_key(
        &self,
        request: Request<CreateApiKeyRequest>,
    ) -> Result<Response<CreateApiKeyResponse>, Status> {
        self.runtime.db.write(Call::open(request)?, create).await
    }

    async fn revoke_api_key(
        &self,
        request: Request<RevokeApiKeyRequest>,
    ) -> Result<Response<RevokeApiKeyResponse>, Status> {
        self.runtime.db.write(Call::open(request)?, revoke).await
    }
}

async fn create(tx: &mut Tx<'_>, input: &CreateApiKeyRequest) -> Result<CreateApiKeyResponse, Error> {
    let (account, now) = (tx.account(), tx.now());
    let maker = own_key(tx).await?;
    let given = input.key.clone().unwrap_or_default();
    let settings = settings_of(&given, &maker, now, tx);
    tx.valid()?;
    if store::count_usable(tx.db(), account, now).await? >= MAX_USABLE {
        let detail = format!(
            "The account has {MAX_USABLE} keys that can be used, as many as it can have. Revoke one."
        );
        return Err(Error::problem(Problem::LimitReached, detail));
    }
    let (secret, record) = operations::insert(tx, account, settings).await?;
    operations::audited(tx, record.clone());
    let data = ApiKeyWithSecret {
        id: record.id.to_string(),
        public_id: record.public_id,
        name: record.name,
        scopes: record.scopes,
        strict: record.strict,
        created_at: Some(timestamp(record.created_at)),
        expires_at: record.expires_at.map(timestamp),
        secret,
    };
    Ok(CreateApiKeyResponse { data: Some(data) })
}

/// The settings of a new key, which are no wider than those of the key that makes it.
fn settings_of(given: &ApiKeyInput, maker: &Record, now: DateTime<Utc>, tx: &mut Tx<'_>) -> KeySettings {
    let at = At::ROOT.name("key");
    let mut faults = proto::Faults::default();
    // The maker's own scopes are all that there are for it: another one is named with these.
    let scopes = select_scopes(&given.scopes, false, &maker.scopes, &mut faults);
    let own = expiry(given.expires_at.as_ref(), now, &mut faults);
    for entry in faults.into_entries() {
        tx.faults.add_at(format!("/key{}", entry.pointer), entry.code(), entry.detail);
    }
    let latest = maker.expires_at;
    if own.is_some_and(|own| latest.is_some_and(|latest| own > latest)) {
        let detail = "expires_at must not be later than that of the key that makes it";
        tx.faults.add(&at.name("expires_at"), Fault::OutOfRange, detail);
    }
    KeySettings {
        name: given.name.clone(),
        scopes,
        strict: given.strict || maker.strict,
        expires_at: own.or(latest),
    }
}

async fn revoke(tx: &mut Tx<'_>, input: &RevokeApiKeyRequest) -> Result<RevokeApiKeyResponse, Error> {
    id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    let (account, now) = (tx.account(), tx.now());
    let found = match id::parse(&input.id) {
        Some(id) => store::find_locked(tx.db(), account, id).await?,
        None => store::find(tx.db(), account, &input.id).await?,
    };
    let record = found.ok_or_else(|| Error::not_found("key"))?;
    let revoker = own_key(tx).await?;
    if let Some(scope) = record.scopes.iter().find(|scope| !revoker.scopes.contains(scope)) {
        let detail = format!("A key can revoke keys whose scopes it has. This one has {scope} besides.");
        return Err(Error::problem(Problem::InsufficientScope, detail));
    }
    if record.revoked_at.is_some() {
        tx.unaudited("it is as it was");
        return Ok(RevokeApiKeyResponse {});
    }
    if let Some(record) = store::revoke(tx.db(), &record.public_id, now).await? {
        operations::audited(tx, record);
    }
    Ok(RevokeApiKeyResponse {})
}

/// The key of the request. It may have ended while the request was on its way.
async fn own_key(tx: &mut Tx<'_>) -> Result<Record, Error> {
    let (account, now) = (tx.account(), tx.now());
    let public_id = tx.caller().map(|caller: &Context| caller.identity.actor.clone()).unwrap_or_default();
    let found = store::find(tx.db(), account, &public_id).await?;
    let usable = found.filter(|key| !has_ended(key.revoked_at, key.expires_at, now));
    usable.ok_or_else(|| Error::problem(Problem::Unauthenticated, "The key can no longer be used."))
}
