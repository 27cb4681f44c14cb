//! The operations on accounts and keys, as the gRPC service of internal teams. The command line calls them too.

use chassis::error::{unavailable, violated_constraint};
use chassis::time::timestamp;
use chassis::{AccountId, Call, Error, Tx, token};
use proto::accounts::account_service_server::AccountService;
use proto::accounts::{
    Account, CreateAccountRequest, CreateAccountResponse, CreateKeyRequest, CreateKeyResponse, Key,
    ListAccountsRequest, ListAccountsResponse, ListKeysRequest, ListKeysResponse, NarrowKeyRequest,
    NarrowKeyResponse, RevokeKeyRequest, RevokeKeyResponse,
};
use proto::api::{Fault, Problem};
use proto::automation::AssignWebhookEndpointRequest;
use proto::automation::webhook_service_client::WebhookServiceClient;
use proto::{At, Faults};
use sqlx::PgConnection;
use tonic::metadata::MetadataValue;
use tonic::{Request, Response, Status};

use super::provision::{Unprovisioned, provision};
use super::rules;
use super::store::{self, AccountRow};
use crate::keys::store::{self as key_store, KeyRow};
use crate::keys::{NewKey, public_id_of};
use crate::serve::Runtime;

/// The accounts of this installation.
#[derive(Clone)]
pub struct Accounts {
    runtime: Runtime,
}

impl Accounts {
    pub fn new(runtime: Runtime) -> Self {
        Self { runtime }
    }

    /// The account of this id or name.
    pub async fn get(&self, id_or_name: &str) -> Result<AccountRow, Error> {
        let mut connection = self.runtime.db.read().await?;
        get(&mut connection, id_or_name).await
    }

    /// Hands a webhook endpoint to a key: from then on it gets what that key may read.
    pub async fn assign_endpoint(&self, key: &str, endpoint: &str) -> Result<(), Status> {
        let public_id = public_id_of(key).unwrap_or(key);
        let mut connection = self.runtime.db.read().await?;
        let found = key_store::find_for_authentication(&mut connection, public_id).await;
        connection.done();
        let key = found.map_err(Error::from)?.map(|known| known.key).ok_or_else(|| no_key(public_id))?;
        let account = self.get(&key.account_id.to_string()).await?.account()?;
        let automation =
            self.runtime.peers.get("automation").ok_or_else(|| unavailable("PEERS names no automation"))?;
        let request =
            AssignWebhookEndpointRequest { id: endpoint.to_owned(), key: key.public_id, scopes: key.scopes };
        let mut request = Request::new(request);
        let Runtime { tokens, clock, .. } = &self.runtime;
        let token = tokens.to(automation.name()).mint_mesh(&account, "command line", clock.now());
        let token =
            MetadataValue::try_from(token).map_err(|_| unavailable("CONTEXT_SECRET is not usable"))?;
        request.metadata_mut().insert(token::HEADER, token);
        WebhookServiceClient::new(automation.channel()).assign_webhook_endpoint(request).await.map(|_| ())
    }

    /// Makes an account and tells the services of it. The account exists also when some of them could not be told.
    pub async fn create(
        &self,
        request: Request<CreateAccountRequest>,
    ) -> Result<(Response<CreateAccountResponse>, Vec<Unprovisioned>), Status> {
        let response = self.runtime.db.write(Call::open(request)?, create_account).await?;
        let id = response.get_ref().account.as_ref().map(|account| account.id.as_str()).unwrap_or_default();
        let failed = self.provision(id).await?;
        Ok((response, failed))
    }

    /// Tells the services of an account again; harmless for those that know it.
    pub async fn provision(&self, id_or_name: &str) -> Result<Vec<Unprovisioned>, Error> {
        let account = self.get(id_or_name).await?;
        provision(&self.runtime, &account).await
    }
}

#[tonic::async_trait]
impl AccountService for Accounts {
    async fn create_account(
        &self,
        request: Request<CreateAccountRequest>,
    ) -> Result<Response<CreateAccountResponse>, Status> {
        let (response, failed) = self.create(request).await?;
        if failed.is_empty() {
            return Ok(response);
        }
        let id = response.get_ref().account.as_ref().map(|account| account.id.as_str()).unwrap_or_default();
        let names: Vec<&str> = failed.iter().map(|failed| failed.peer.as_str()).collect();
        Err(unavailable(&format!(
            "The account {id} exists, but these services do not know it yet: {}. Repeat the call with the same \
             idempotency key, or run: gateway account provision {id}",
            names.join(", ")
        )))
    }

    async fn list_accounts(
        &self,
        request: Request<ListAccountsRequest>,
    ) -> Result<Response<ListAccountsResponse>, Status> {
        Call::open(request)?.valid()?;
        let mut connection = self.runtime.db.read().await?;
        let rows = store::list(&mut connection).await.map_err(Error::from)?;
        Ok(Response::new(ListAccountsResponse { accounts: rows.iter().map(account_message).collect() }))
    }

    async fn create_key(
        &self,
        request: Request<CreateKeyRequest>,
    ) -> Result<Response<CreateKeyResponse>, Status> {
        self.runtime.db.write(Call::open(request)?, create_key).await
    }

    async fn list_keys(
        &self,
        request: Request<ListKeysRequest>,
    ) -> Result<Response<ListKeysResponse>, Status> {
        let (_, input) = Call::open(request)?.valid()?;
        let mut connection = self.runtime.db.read().await?;
        let account = get(&mut connection, &input.account).await?;
        let rows = key_store::list(&mut connection, account.account_id).await.map_err(Error::from)?;
        Ok(Response::new(ListKeysResponse { keys: rows.into_iter().map(key_message).collect() }))
    }

    async fn narrow_key(
        &self,
        request: Request<NarrowKeyRequest>,
    ) -> Result<Response<NarrowKeyResponse>, Status> {
        self.runtime.db.write(Call::open(request)?, narrow_key).await
    }

    async fn revoke_key(
        &self,
        request: Request<RevokeKeyRequest>,
    ) -> Result<Response<RevokeKeyResponse>, Status> {
        self.runtime.db.write(Call::open(request)?, revoke_key).await
    }
}

pub(crate) async fn get(connection: &mut PgConnection, id_or_name: &str) -> Result<AccountRow, Error> {
    let found = store::find(connection, id_or_name).await?;
    found.ok_or_else(|| {
        Error::problem(Problem::NotFound, format!("There is no account with the id or name `{id_or_name}`."))
    })
}

async fn create_account(
    tx: &mut Tx<'_>,
    input: &CreateAccountRequest,
) -> Result<CreateAccountResponse, Error> {
    let new = rules::new_account(input, &mut tx.faults);
    tx.valid()?;
    let row = AccountRow {
        account_id: AccountId::trust(tx.id()),
        name: input.name.clone(),
        country: new.country,
        timezone: new.timezone.name().to_owned(),
        currency: new.currency,
        created_at: tx.now(),
    };
    store::insert(tx.db(), &row).await.map_err(|error| match violated_constraint(&error) {
        Some("account_name") => name_taken(&row.name),
        _ => error.into(),
    })?;
    let account = account_message(&row);
    tx.file_under(row.account_id);
    tx.changed("account", row.account_id, &account);
    Ok(CreateAccountResponse { account: Some(account) })
}

fn name_taken(name: &str) -> Error {
    let mut faults = Faults::default();
    let detail = format!("there is already an account with the name `{name}`");
    faults.add(&At::ROOT.name("name"), Fault::NotAllowed, detail);
    faults.into()
}

async fn create_key(tx: &mut Tx<'_>, input: &CreateKeyRequest) -> Result<CreateKeyResponse, Error> {
    let scopes = rules::key_scopes(input, &mut tx.faults);
    let expires_at = rules::expiry(input.expires_at.as_ref(), tx.now(), &mut tx.faults);
    tx.valid()?;
    let account = get(tx.db(), &input.account).await?;
    let new = NewKey::generate();
    let row = KeyRow {
        account_id: account.account_id,
        public_id: new.public_id,
        name: input.name.clone(),
        scopes,
        created_at: tx.now(),
        expires_at,
        last_used_at: None,
        revoked_at: None,
    };
    key_store::insert(tx.db(), &row, &new.secret_hash).await?;
    Ok(CreateKeyResponse { secret: new.text, key: Some(audited(tx, row)) })
}

async fn narrow_key(tx: &mut Tx<'_>, input: &NarrowKeyRequest) -> Result<NarrowKeyResponse, Error> {
    let (public_id, now) = (public_id(tx, &input.key)?, tx.now());
    let row = key_store::narrow(tx.db(), public_id, &input.scopes, now).await?;
    let row = row.ok_or_else(|| no_key(public_id))?;
    Ok(NarrowKeyResponse { key: Some(audited(tx, row)) })
}

async fn revoke_key(tx: &mut Tx<'_>, input: &RevokeKeyRequest) -> Result<RevokeKeyResponse, Error> {
    let (public_id, now) = (public_id(tx, &input.key)?, tx.now());
    let row = key_store::revoke(tx.db(), public_id, now).await?;
    let row = row.ok_or_else(|| no_key(public_id))?;
    Ok(RevokeKeyResponse { key: Some(audited(tx, row)) })
}

fn public_id<'a>(tx: &mut Tx<'_>, key: &'a str) -> Result<&'a str, Error> {
    public_id_of(key).ok_or_else(|| {
        let detail = "key must be a whole key or its public id; check it for typing mistakes";
        tx.faults.add(&At::ROOT.name("key"), Fault::BadFormat, detail);
        std::mem::take(&mut tx.faults).into()
    })
}

fn no_key(public_id: &str) -> Error {
    Error::problem(Problem::NotFound, format!("There is no key with the public id `{public_id}`."))
}

/// A key that was made or changed, as it is answered. The log is its account's: whoever manages keys has none.
fn audited(tx: &mut Tx<'_>, row: KeyRow) -> Key {
    tx.file_under(row.account_id);
    let key = key_message(row);
    tx.changed("key", &key.public_id, &key);
    key
}

fn account_message(row: &AccountRow) -> Account {
    Account {
        id: row.account_id.to_string(),
        name: row.name.clone(),
        country: row.country.clone(),
        timezone: row.timezone.clone(),
        currency: row.currency.clone(),
        created_at: Some(timestamp(row.created_at)),
    }
}

fn key_message(row: KeyRow) -> Key {
    Key {
        public_id: row.public_id,
        account_id: row.account_id.to_string(),
        name: row.name,
        scopes: row.scopes,
        created_at: Some(timestamp(row.created_at)),
        expires_at: row.expires_at.map(timestamp),
        last_used_at: row.last_used_at.map(timestamp),
        revoked_at: row.revoked_at.map(timestamp),
    }
}
