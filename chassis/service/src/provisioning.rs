//! Creates or updates an account in a service, with its settings and its defaults.

use std::sync::Arc;

use chassis_base::Error;
use chassis_data::db::Db;
use chassis_data::log::snapshot;
use chassis_data::write::Tx;
use chassis_rpc::call::Call;
use proto::api::provisioning_service_server::{ProvisioningService, ProvisioningServiceServer};
use proto::api::{ProvisionAccountRequest, ProvisionAccountResponse};
use tonic::{Request, Response, Status};

use crate::service::Service;

pub(crate) fn server<S: Service>(service: Arc<S>, db: Db) -> ProvisioningServiceServer<Provisioning<S>> {
    ProvisioningServiceServer::new(Provisioning { db, service })
}

pub(crate) struct Provisioning<S> {
    db: Db,
    service: Arc<S>,
}

#[tonic::async_trait]
impl<S: Service> ProvisioningService for Provisioning<S> {
    async fn provision_account(
        &self,
        request: Request<ProvisionAccountRequest>,
    ) -> Result<Response<ProvisionAccountResponse>, Status> {
        let service = Arc::clone(&self.service);
        let provision = async move |tx: &mut Tx<'_>, input: &ProvisionAccountRequest| {
            store(tx, input).await?;
            service.provision(tx).await?;
            Ok::<_, Error>(ProvisionAccountResponse {})
        };
        self.db.write(Call::open(request)?, provision).await
    }
}

/// The upsert makes provisioning repeatable: a caller that lost the response sends the request again.
async fn store(tx: &mut Tx<'_>, input: &ProvisionAccountRequest) -> Result<(), Error> {
    tx.valid()?;
    snapshot::skip_new_account(tx).await?;
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
