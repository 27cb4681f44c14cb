//! `SettingsService`. One tonic service serves four resources (billing settings, tax rates, payment terms, identities),
//! so it stands beside their folders instead of in one of them. Every write takes the lock on the settings first.

use chassis_base::update_mask::UpdateMask;
use chassis_base::{AccountId, id};
use chassis_data::{Db, Tx};
use chassis_rpc::Call;
use proto::api::ListMeta;
use proto::billing::settings_service_server::SettingsService;
use proto::billing::{
    CreateIdentityRequest, CreateIdentityResponse, DeleteIdentityLogoRequest, DeleteIdentityLogoResponse,
    DeleteIdentityRequest, DeleteIdentityResponse, DeletePaymentTermRequest, DeletePaymentTermResponse,
    DeleteTaxRateRequest, DeleteTaxRateResponse, GetBillingSettingsRequest, GetBillingSettingsResponse,
    GetIdentityRequest, GetIdentityResponse, Identity, ListCorporateIdentitiesRequest,
    ListCorporateIdentitiesResponse, ListIdentitiesRequest, ListIdentitiesResponse, ListPaymentTermsRequest,
    ListPaymentTermsResponse, ListTaxRatesRequest, ListTaxRatesResponse, PutPaymentTermRequest,
    PutPaymentTermResponse, PutTaxRateRequest, PutTaxRateResponse, SetDefaultIdentityRequest,
    SetDefaultIdentityResponse, SetIdentityLogoRequest, SetIdentityLogoResponse, TaxRate, TaxRateContext,
    UpdateBillingSettingsRequest, UpdateBillingSettingsResponse, UpdateIdentityRequest,
    UpdateIdentityResponse,
};
use tonic::{Request, Response, Status};

use crate::error::Error;
use crate::provision::lock_settings;
use crate::{identity, payment_term, settings, tax_rate};

pub(crate) struct SettingsRpc {
    pub db: Db,
}

#[tonic::async_trait]
impl SettingsService for SettingsRpc {
    async fn list_tax_rates(
        &self,
        request: Request<ListTaxRatesRequest>,
    ) -> Result<Response<ListTaxRatesResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let filter = Some(input.context()).filter(|context| *context != TaxRateContext::Unspecified);
        let mut rates = self
            .db
            .read(async |connection| tax_rate::store::list(connection, context.account_id(), filter).await)
            .await?;
        tax_rate::rules::sort(&mut rates);
        let data: Vec<TaxRate> = rates.into_iter().map(Into::into).collect();
        let meta = Some(list_meta(&data));
        Ok(Response::new(ListTaxRatesResponse { data, meta }))
    }

    async fn list_payment_terms(
        &self,
        request: Request<ListPaymentTermsRequest>,
    ) -> Result<Response<ListPaymentTermsResponse>, Status> {
        let (context, _) = Call::open(request)?.valid()?;
        let data = self
            .db
            .read(async |connection| payment_term::store::list(connection, context.account_id()).await)
            .await?;
        let meta = Some(list_meta(&data));
        Ok(Response::new(ListPaymentTermsResponse { data, meta }))
    }

    async fn list_corporate_identities(
        &self,
        request: Request<ListCorporateIdentitiesRequest>,
    ) -> Result<Response<ListCorporateIdentitiesResponse>, Status> {
        let (context, _) = Call::open(request)?.valid()?;
        let records = self.identities(context.account_id()).await?;
        let data: Vec<_> = records.into_iter().map(Into::into).collect();
        let meta = Some(list_meta(&data));
        Ok(Response::new(ListCorporateIdentitiesResponse { data, meta }))
    }

    async fn put_tax_rate(
        &self,
        request: Request<PutTaxRateRequest>,
    ) -> Result<Response<PutTaxRateResponse>, Status> {
        self.db.write(Call::open(request)?, put_tax_rate).await
    }

    async fn delete_tax_rate(
        &self,
        request: Request<DeleteTaxRateRequest>,
    ) -> Result<Response<DeleteTaxRateResponse>, Status> {
        self.db.write(Call::open(request)?, delete_tax_rate).await
    }

    async fn put_payment_term(
        &self,
        request: Request<PutPaymentTermRequest>,
    ) -> Result<Response<PutPaymentTermResponse>, Status> {
        self.db.write(Call::open(request)?, put_payment_term).await
    }

    async fn delete_payment_term(
        &self,
        request: Request<DeletePaymentTermRequest>,
    ) -> Result<Response<DeletePaymentTermResponse>, Status> {
        self.db.write(Call::open(request)?, delete_payment_term).await
    }

    async fn list_identities(
        &self,
        request: Request<ListIdentitiesRequest>,
    ) -> Result<Response<ListIdentitiesResponse>, Status> {
        let (context, _) = Call::open(request)?.valid()?;
        let records = self.identities(context.account_id()).await?;
        // Programs of the release before read `values`.
        let with_values = |record: identity::Record| Identity {
            values: Some(record.values.clone()),
            ..Identity::from(record)
        };
        let data = records.into_iter().map(with_values).collect();
        Ok(Response::new(ListIdentitiesResponse { data }))
    }

    async fn get_identity(
        &self,
        request: Request<GetIdentityRequest>,
    ) -> Result<Response<GetIdentityResponse>, Status> {
        // Without `valid`: a malformed id is not found, and the request has no other field.
        let Call { context, input, .. } = Call::open(request)?;
        let account = context.account_id();
        let id = id::parse(&input.id).ok_or(identity::NOT_FOUND)?;
        let found =
            self.db.read(async |connection| identity::store::find(connection, account, id).await).await?;
        let data = found.map(Identity::from).ok_or(identity::NOT_FOUND)?;
        Ok(Response::new(GetIdentityResponse { data: Some(data) }))
    }

    async fn create_identity(
        &self,
        request: Request<CreateIdentityRequest>,
    ) -> Result<Response<CreateIdentityResponse>, Status> {
        self.db.write(Call::open(request)?, create_identity).await
    }

    async fn update_identity(
        &self,
        request: Request<UpdateIdentityRequest>,
    ) -> Result<Response<UpdateIdentityResponse>, Status> {
        self.db.write(Call::open(request)?, update_identity).await
    }

    async fn delete_identity(
        &self,
        request: Request<DeleteIdentityRequest>,
    ) -> Result<Response<DeleteIdentityResponse>, Status> {
        self.db.write(Call::open(request)?, delete_identity).await
    }

    async fn set_default_identity(
        &self,
        request: Request<SetDefaultIdentityRequest>,
    ) -> Result<Response<SetDefaultIdentityResponse>, Status> {
        self.db.write(Call::open(request)?, set_default_identity).await
    }

    async fn set_identity_logo(
        &self,
        request: Request<SetIdentityLogoRequest>,
    ) -> Result<Response<SetIdentityLogoResponse>, Status> {
        self.db.write(Call::open(request)?, set_identity_logo).await
    }

    async fn delete_identity_logo(
        &self,
        request: Request<DeleteIdentityLogoRequest>,
    ) -> Result<Response<DeleteIdentityLogoResponse>, Status> {
        self.db.write(Call::open(request)?, delete_identity_logo).await
    }

    async fn get_billing_settings(
        &self,
        request: Request<GetBillingSettingsRequest>,
    ) -> Result<Response<GetBillingSettingsResponse>, Status> {
        let (context, _) = Call::open(request)?.valid()?;
        let found = self
            .db
            .read(async |connection| settings::store::for_documents(connection, context.account_id()).await)
            .await?;
        Ok(Response::new(GetBillingSettingsResponse { data: Some(found.settings.into()) }))
    }

    async fn update_billing_settings(
        &self,
        request: Request<UpdateBillingSettingsRequest>,
    ) -> Result<Response<UpdateBillingSettingsResponse>, Status> {
        self.db.write(Call::open(request)?, update_settings).await
    }
}

impl SettingsRpc {
    async fn identities(&self, account: AccountId) -> Result<Vec<identity::Record>, Error> {
        let records =
            self.db.read(async |connection| identity::store::list(connection, account).await).await?;
        Ok(records)
    }
}

fn list_meta<T>(entries: &[T]) -> ListMeta {
    ListMeta { total: i64::try_from(entries.len()).unwrap_or(i64::MAX) }
}

async fn put_tax_rate(tx: &mut Tx<'_>, input: &PutTaxRateRequest) -> Result<PutTaxRateResponse, Error> {
    let lock = lock_settings(tx).await?;
    let given = input.tax_rate.clone().unwrap_or_default();
    let rate = tax_rate::operations::put(tx, &lock, &given).await?;
    Ok(PutTaxRateResponse { data: Some(rate.into()) })
}

async fn delete_tax_rate(
    tx: &mut Tx<'_>,
    input: &DeleteTaxRateRequest,
) -> Result<DeleteTaxRateResponse, Error> {
    let lock = lock_settings(tx).await?;
    tax_rate::operations::delete(tx, &lock, input.context(), &input.code).await?;
    Ok(DeleteTaxRateResponse {})
}

async fn put_payment_term(
    tx: &mut Tx<'_>,
    input: &PutPaymentTermRequest,
) -> Result<PutPaymentTermResponse, Error> {
    let lock = lock_settings(tx).await?;
    let given = input.term.clone().unwrap_or_default();
    Ok(PutPaymentTermResponse { data: Some(payment_term::operations::put(tx, &lock, given).await?) })
}

async fn delete_payment_term(
    tx: &mut Tx<'_>,
    input: &DeletePaymentTermRequest,
) -> Result<DeletePaymentTermResponse, Error> {
    let lock = lock_settings(tx).await?;
    payment_term::operations::delete(tx, &lock, &input.code).await?;
    Ok(DeletePaymentTermResponse {})
}

async fn create_identity(
    tx: &mut Tx<'_>,
    input: &CreateIdentityRequest,
) -> Result<CreateIdentityResponse, Error> {
    let lock = lock_settings(tx).await?;
    let given = input.identity.clone().unwrap_or_default();
    let record = identity::operations::create(tx, &lock, given).await?;
    Ok(CreateIdentityResponse { data: Some(record.into()) })
}

async fn update_identity(
    tx: &mut Tx<'_>,
    input: &UpdateIdentityRequest,
) -> Result<UpdateIdentityResponse, Error> {
    let lock = lock_settings(tx).await?;
    let mask = UpdateMask::from(input.update_mask.as_ref());
    let given = input.identity.clone().unwrap_or_default();
    let record = identity::operations::update(tx, &lock, &input.id, mask, given).await?;
    Ok(UpdateIdentityResponse { data: Some(record.into()) })
}

async fn delete_identity(
    tx: &mut Tx<'_>,
    input: &DeleteIdentityRequest,
) -> Result<DeleteIdentityResponse, Error> {
    let lock = lock_settings(tx).await?;
    identity::operations::delete(tx, &lock, &input.id).await?;
    Ok(DeleteIdentityResponse {})
}

async fn set_default_identity(
    tx: &mut Tx<'_>,
    input: &SetDefaultIdentityRequest,
) -> Result<SetDefaultIdentityResponse, Error> {
    let lock = lock_settings(tx).await?;
    let record = identity::operations::set_default(tx, &lock, &input.id).await?;
    Ok(SetDefaultIdentityResponse { data: Some(record.into()) })
}

async fn set_identity_logo(
    tx: &mut Tx<'_>,
    input: &SetIdentityLogoRequest,
) -> Result<SetIdentityLogoResponse, Error> {
    let lock = lock_settings(tx).await?;
    let record = identity::operations::set_logo(tx, &lock, &input.id, &input.logo).await?;
    Ok(SetIdentityLogoResponse { data: Some(record.into()) })
}

async fn delete_identity_logo(
    tx: &mut Tx<'_>,
    input: &DeleteIdentityLogoRequest,
) -> Result<DeleteIdentityLogoResponse, Error> {
    let lock = lock_settings(tx).await?;
    let record = identity::operations::set_logo(tx, &lock, &input.id, &[]).await?;
    Ok(DeleteIdentityLogoResponse { data: Some(record.into()) })
}

async fn update_settings(
    tx: &mut Tx<'_>,
    input: &UpdateBillingSettingsRequest,
) -> Result<UpdateBillingSettingsResponse, Error> {
    let lock = lock_settings(tx).await?;
    let mask = UpdateMask::from(input.update_mask.as_ref());
    let given = input.settings.clone().unwrap_or_default();
    let next = settings::operations::update(tx, &lock, mask, &given).await?;
    Ok(UpdateBillingSettingsResponse { data: Some(next.into()) })
}
