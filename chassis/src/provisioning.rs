//! Makes an account known to a service, with its settings and its defaults.

use std::marker::PhantomData;

use proto::api::provisioning_service_server::{ProvisioningService, ProvisioningServiceServer};
use proto::api::{ProvisionAccountRequest, ProvisionAccountResponse};
use tonic::{Request, Response, Status};

use crate::call::Call;
use crate::db::Db;
use crate::error::Error;
use crate::service::Service;
use crate::write::Tx;

pub(crate) fn server<S: Service>(db: Db) -> ProvisioningServiceServer<Provisioning<S>> {
    ProvisioningServiceServer::new(Provisioning { db, service: PhantomData })
}

pub(crate) struct Provisioning<S> {
    db: Db,
    service: PhantomData<S>,
}

#[tonic::async_trait]
impl<S: Service> ProvisioningService for Provisioning<S> {
    async fn provision_account(
        &self,
        request: Request<ProvisionAccountRequest>,
    ) -> Result<Response<ProvisionAccountResponse>, Status> {
        self.db.write(Call::open(request)?, provision::<S>).await
    }
}

async fn provision<S: Service>(
    tx: &mut Tx<'_>,
    input: &ProvisionAccountRequest,
) -> Result<ProvisionAccountResponse, Error> {
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
    S::provision(tx).await?;
    Ok(ProvisionAccountResponse {})
}
