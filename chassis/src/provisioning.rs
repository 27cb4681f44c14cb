//! Makes an account known to a service, with its settings and its defaults.

use proto::api::provisioning_service_server::{ProvisioningService, ProvisioningServiceServer};
use proto::api::{ProvisionAccountRequest, ProvisionAccountResponse};
use tonic::{Request, Response, Status};

use crate::call::Call;
use crate::db::Db;
use crate::error::Error;
use crate::service::Provision;
use crate::write::Tx;

pub(crate) fn server(defaults: Provision, db: Db) -> ProvisioningServiceServer<Provisioning> {
    ProvisioningServiceServer::new(Provisioning { db, defaults })
}

pub(crate) struct Provisioning {
    db: Db,
    /// Creates what the service itself has for every account.
    defaults: Provision,
}

#[tonic::async_trait]
impl ProvisioningService for Provisioning {
    async fn provision_account(
        &self,
        request: Request<ProvisionAccountRequest>,
    ) -> Result<Response<ProvisionAccountResponse>, Status> {
        let defaults = self.defaults;
        let provision = async move |tx: &mut Tx<'_>, input: &ProvisionAccountRequest| {
            store(tx, input).await?;
            defaults(tx).await?;
            Ok::<_, Error>(ProvisionAccountResponse {})
        };
        self.db.write(Call::open(request)?, provision).await
    }
}

async fn store(tx: &mut Tx<'_>, input: &ProvisionAccountRequest) -> Result<(), Error> {
    tx.valid()?;
    let account = tx.settings();
    let now = tx.now();
    sqlx::query(
        "insert into account (account_id, name, country, timezone, currency, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $6)
         on conflict (account_id) do update
            set name = excluded.name, country = excluded.country, timezone = excluded.timezone,
                currency = excluded.currency, updated_at = excluded.updated_at",
    )
    .bind(account.id)
    .bind(&input.name)
    .bind(&account.country)
    .bind(account.timezone.name())
    .bind(&account.currency)
    .bind(now)
    .execute(tx.db())
    .await?;
    tx.changed("account", account.id, input);
    Ok(())
}
