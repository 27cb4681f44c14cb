//! The gRPC service of internal teams for accounts and their keys. The command line calls it too.

use chassis_base::error::status::unavailable;
use chassis_base::{Account, Error};
use chassis_rpc::Call;
use proto::accounts::account_service_server::AccountService;
use proto::accounts::{
    CreateAccountRequest, CreateAccountResponse, CreateKeyRequest, CreateKeyResponse, ListAccountsRequest,
    ListAccountsResponse, ListKeysRequest, ListKeysResponse, NarrowKeyRequest, NarrowKeyResponse,
    RevokeKeyRequest, RevokeKeyResponse,
};
use tonic::{Request, Response, Status};

use super::provision::{Unprovisioned, provision};
use super::{Record, operations, store};
use crate::keys;
use crate::runtime::Runtime;

/// The accounts of this installation.
#[derive(Clone)]
pub struct Accounts {
    runtime: Runtime,
}

/// A new account. It exists also when some services could not be provisioned.
pub struct Created {
    pub response: Response<CreateAccountResponse>,
    pub unprovisioned: Vec<Unprovisioned>,
}

impl Created {
    fn id(&self) -> &str {
        self.response.get_ref().account.as_ref().map(|account| account.id.as_str()).unwrap_or_default()
    }
}

impl Accounts {
    pub fn new(runtime: Runtime) -> Self {
        Self { runtime }
    }

    /// The account of this id or name.
    pub async fn get(&self, id_or_name: &str) -> Result<Record, Error> {
        self.runtime.db.read(async |connection| operations::get(connection, id_or_name).await).await
    }

    /// All accounts, by creation.
    pub async fn list(&self) -> Result<Vec<Record>, Error> {
        self.runtime.db.read(async |connection| Ok(store::list(connection).await?)).await
    }

    /// Assigns a webhook endpoint to a key: from then on it receives what that key may read.
    pub async fn assign_endpoint(&self, key: &str, endpoint: &str) -> Result<(), Error> {
        keys::operations::assign_endpoint(&self.runtime, key, endpoint).await
    }

    /// Creates an account and provisions it in the services.
    ///
    /// A crash in between leaves an account that no service has. A repeat with the same idempotency key returns the
    /// stored answer and provisions again; so does [`Accounts::provision`].
    pub async fn create(&self, request: Request<CreateAccountRequest>) -> Result<Created, Status> {
        let response = self.runtime.db.write(Call::open(request)?, operations::create).await?;
        let mut created = Created { response, unprovisioned: Vec::new() };
        created.unprovisioned = self.provision(created.id()).await?;
        Ok(created)
    }

    /// An account by its id or its name.
    pub async fn find(&self, id_or_name: &str) -> Result<Account, Error> {
        self.get(id_or_name).await?.account()
    }

    /// Provisions an account again; has no effect in services that have it.
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
        let created = self.create(request).await?;
        if created.unprovisioned.is_empty() {
            return Ok(created.response);
        }
        let names: Vec<&str> = created.unprovisioned.iter().map(|failed| failed.peer.as_str()).collect();
        Err(unavailable(&format!(
            "The account {id} exists, but these services do not know it yet: {}. Repeat the call with the same \
             idempotency key, or run: gateway account provision {id}",
            names.join(", "),
            id = created.id(),
        )))
    }

    async fn list_accounts(
        &self,
        request: Request<ListAccountsRequest>,
    ) -> Result<Response<ListAccountsResponse>, Status> {
        Call::open(request)?.valid()?;
        let records = self.list().await?;
        Ok(Response::new(ListAccountsResponse { accounts: records.into_iter().map(Into::into).collect() }))
    }

    async fn create_key(
        &self,
        request: Request<CreateKeyRequest>,
    ) -> Result<Response<CreateKeyResponse>, Status> {
        self.runtime.db.write(Call::open(request)?, operations::create_key).await
    }

    async fn list_keys(
        &self,
        request: Request<ListKeysRequest>,
    ) -> Result<Response<ListKeysResponse>, Status> {
        let (_, input) = Call::open(request)?.valid()?;
        let records = self.runtime.db.read(async |connection| {
            let account = operations::get(connection, &input.account).await?;
            Ok::<_, Error>(keys::store::list(connection, account.account_id).await?)
        });
        let records = records.await?;
        Ok(Response::new(ListKeysResponse { keys: records.into_iter().map(Into::into).collect() }))
    }

    async fn narrow_key(
        &self,
        request: Request<NarrowKeyRequest>,
    ) -> Result<Response<NarrowKeyResponse>, Status> {
        self.runtime.db.write(Call::open(request)?, keys::operations::narrow).await
    }

    async fn revoke_key(
        &self,
        request: Request<RevokeKeyRequest>,
    ) -> Result<Response<RevokeKeyResponse>, Status> {
        self.runtime.db.write(Call::open(request)?, keys::operations::revoke).await
    }
}
