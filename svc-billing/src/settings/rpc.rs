//! `SettingsService`: its rpcs go to the folder that they are about.

use chassis_base::update_mask::UpdateMask;
use chassis_data::{Db, Tx};
use chassis_rpc::Call;
use proto::At;
use proto::api::{Fault, ListMeta};
use proto::billing::settings_service_server::SettingsService;
use proto::billing::{
    BillingSettings, CreateIdentityRequest, CreateIdentityResponse, DeleteIdentityRequest,
    DeleteIdentityResponse, DeletePaymentTermRequest, DeletePaymentTermResponse, DeleteTaxRateRequest,
    DeleteTaxRateResponse, GetBillingSettingsRequest, GetBillingSettingsResponse,
    ListCorporateIdentitiesRequest, ListCorporateIdentitiesResponse, ListIdentitiesRequest,
    ListIdentitiesResponse, ListPaymentTermsRequest, ListPaymentTermsResponse, ListTaxRatesRequest,
    ListTaxRatesResponse, PutPaymentTermRequest, PutPaymentTermResponse, PutTaxRateRequest,
    PutTaxRateResponse, SetDefaultIdentityRequest, SetDefaultIdentityResponse, SetIdentityLogoRequest,
    SetIdentityLogoResponse, UpdateBillingSettingsRequest, UpdateBillingSettingsResponse,
    UpdateIdentityRequest, UpdateIdentityResponse,
};
use tonic::{Request, Response, Status};

use super::{rules, store};
use crate::{Error, identity, payment_term, provision, tax_rate};

pub struct SettingsRpc {
    pub db: Db,
}

#[tonic::async_trait]
impl SettingsService for SettingsRpc {
    async fn list_tax_rates(
        &self,
        request: Request<ListTaxRatesRequest>,
    ) -> Result<Response<ListTaxRatesResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let data = tax_rate::rpc::list(&self.db, context.account_id(), input.context()).await?;
        let meta = Some(meta_of(&data));
        Ok(Response::new(ListTaxRatesResponse { data, meta }))
    }

    async fn list_payment_terms(
        &self,
        request: Request<ListPaymentTermsRequest>,
    ) -> Result<Response<ListPaymentTermsResponse>, Status> {
        let (context, _) = Call::open(request)?.valid()?;
        let data = payment_term::rpc::list(&self.db, context.account_id()).await?;
        let meta = Some(meta_of(&data));
        Ok(Response::new(ListPaymentTermsResponse { data, meta }))
    }

    async fn list_corporate_identities(
        &self,
        request: Request<ListCorporateIdentitiesRequest>,
    ) -> Result<Response<ListCorporateIdentitiesResponse>, Status> {
        let (context, _) = Call::open(request)?.valid()?;
        let records = identity::rpc::list(&self.db, context.account_id()).await?;
        let data: Vec<_> = records.into_iter().map(Into::into).collect();
        let meta = Some(meta_of(&data));
        Ok(Response::new(ListCorporateIdentitiesResponse { data, meta }))
    }

    async fn put_tax_rate(
        &self,
        request: Request<PutTaxRateRequest>,
    ) -> Result<Response<PutTaxRateResponse>, Status> {
        self.db.write(Call::open(request)?, tax_rate::rpc::put).await
    }

    async fn delete_tax_rate(
        &self,
        request: Request<DeleteTaxRateRequest>,
    ) -> Result<Response<DeleteTaxRateResponse>, Status> {
        self.db.write(Call::open(request)?, tax_rate::rpc::delete).await
    }

    async fn put_payment_term(
        &self,
        request: Request<PutPaymentTermRequest>,
    ) -> Result<Response<PutPaymentTermResponse>, Status> {
        self.db.write(Call::open(request)?, payment_term::rpc::put).await
    }

    async fn delete_payment_term(
        &self,
        request: Request<DeletePaymentTermRequest>,
    ) -> Result<Response<DeletePaymentTermResponse>, Status> {
        self.db.write(Call::open(request)?, payment_term::rpc::delete).await
    }

    async fn list_identities(
        &self,
        request: Request<ListIdentitiesRequest>,
    ) -> Result<Response<ListIdentitiesResponse>, Status> {
        let (context, _) = Call::open(request)?.valid()?;
        let records = identity::rpc::list(&self.db, context.account_id()).await?;
        let data = records.into_iter().map(Into::into).collect();
        Ok(Response::new(ListIdentitiesResponse { data }))
    }

    async fn create_identity(
        &self,
        request: Request<CreateIdentityRequest>,
    ) -> Result<Response<CreateIdentityResponse>, Status> {
        self.db.write(Call::open(request)?, identity::rpc::create).await
    }

    async fn update_identity(
        &self,
        request: Request<UpdateIdentityRequest>,
    ) -> Result<Response<UpdateIdentityResponse>, Status> {
        self.db.write(Call::open(request)?, identity::rpc::update).await
    }

    async fn delete_identity(
        &self,
        request: Request<DeleteIdentityRequest>,
    ) -> Result<Response<DeleteIdentityResponse>, Status> {
        self.db.write(Call::open(request)?, identity::rpc::delete).await
    }

    async fn set_default_identity(
        &self,
        request: Request<SetDefaultIdentityRequest>,
    ) -> Result<Response<SetDefaultIdentityResponse>, Status> {
        self.db.write(Call::open(request)?, identity::rpc::set_default).await
    }

    async fn set_identity_logo(
        &self,
        request: Request<SetIdentityLogoRequest>,
    ) -> Result<Response<SetIdentityLogoResponse>, Status> {
        self.db.write(Call::open(request)?, identity::rpc::set_logo).await
    }

    async fn get_billing_settings(
        &self,
        request: Request<GetBillingSettingsRequest>,
    ) -> Result<Response<GetBillingSettingsResponse>, Status> {
        let (context, _) = Call::open(request)?.valid()?;
        let found = self
            .db
            .read(async |connection| store::for_documents(connection, context.account_id()).await)
            .await?;
        Ok(Response::new(GetBillingSettingsResponse { data: Some(found.settings.into()) }))
    }

    async fn update_billing_settings(
        &self,
        request: Request<UpdateBillingSettingsRequest>,
    ) -> Result<Response<UpdateBillingSettingsResponse>, Status> {
        self.db.write(Call::open(request)?, update).await
    }
}

fn meta_of<T>(entries: &[T]) -> ListMeta {
    ListMeta { total: i64::try_from(entries.len()).unwrap_or(i64::MAX) }
}

async fn update(
    tx: &mut Tx<'_>,
    input: &UpdateBillingSettingsRequest,
) -> Result<UpdateBillingSettingsResponse, Error> {
    let named = UpdateMask::from(input.update_mask.as_ref());
    let given = input.settings.clone().unwrap_or_default();
    let current = provision::lock(tx).await?;
    let (account, now) = (tx.account(), tx.now());
    let next = rules::apply(named, &given, &current, &mut tx.faults);
    if named.has("default_tax_code")
        && !tax_rate::store::exists(tx.db(), account, &next.default_tax_code).await?
    {
        let at = At::ROOT.name("settings");
        let detail = "default_tax_code must be the code of a tax rate for sales";
        tx.faults.add(&at.name("default_tax_code"), Fault::UnknownReference, detail);
    }
    tx.valid()?;
    if next != current {
        store::update(tx.db(), account, &next, now).await?;
    }
    let next = BillingSettings::from(next);
    audit(tx, &next);
    Ok(UpdateBillingSettingsResponse { data: Some(next) })
}

/// Keeps the settings in the audit log as they are now. An account has one set of them.
pub fn audit(tx: &mut Tx<'_>, settings: &BillingSettings) {
    let account = tx.account();
    tx.changed("billing_settings", account, settings);
}
