//! A running service with its own database, callers of it, and what a refusal says.

use chassis_base::Clock;
use chassis_service::Service;
use chassis_testing::{Started, TestCaller, TestDatabase};
use proto::api::ProvisionAccountRequest;
use proto::api::provisioning_service_client::ProvisioningServiceClient;
use proto::billing::product_service_client::ProductServiceClient;
use proto::billing::settings_service_client::SettingsServiceClient;
use proto::billing::{
    BillingSettings, CreateProductRequest, DeleteProductRequest, GetBillingSettingsRequest,
    GetProductRequest, Identity, ListIdentitiesRequest, ListProductsRequest, ListProductsResponse,
    ListTaxRatesRequest, Product, ProductInput, TaxRate, TaxRateContext, UpdateBillingSettingsRequest,
    UpdateProductRequest,
};
use svc_billing::Billing;
use tonic::transport::Channel;
use tonic::{Request, Status};

pub(crate) struct World {
    pub database: TestDatabase,
    pub clock: Clock,
    pub service: Started,
}

impl World {
    pub(crate) async fn new() -> Self {
        let database = TestDatabase::new(&[("billing", Billing::migrations())]).await;
        let clock = chassis_testing::clock();
        let service = chassis_testing::start::<Billing>(database.url(), &clock).await;
        Self { database, clock, service }
    }

    /// A process of the mesh, for an account of its own in this country that was not provisioned.
    pub(crate) fn stranger(&self, country: &str) -> Caller {
        let mut account = chassis_testing::account();
        country.clone_into(&mut account.country);
        Caller { token: TestCaller::mesh(&account, &self.clock), channel: self.service.channel() }
    }

    /// A process of the mesh, for a provisioned Dutch account of its own.
    pub(crate) async fn caller(&self) -> Caller {
        self.caller_in("NL").await
    }

    pub(crate) async fn caller_in(&self, country: &str) -> Caller {
        let caller = self.stranger(country);
        caller.provision("Bakkerij De Korenbloem").await;
        caller
    }

    /// What the log has of a record after its last change; `None` if that removed it.
    pub(crate) async fn logged<M: prost::Message + Default>(
        &self,
        caller: &Caller,
        kind: &str,
        id: &str,
    ) -> Option<M> {
        let image: Option<Vec<u8>> = sqlx::query_scalar(
            "select image from billing.log where account_id = $1 and kind = $2 and record_id = $3 \
             and change is not null order by version desc limit 1",
        )
        .bind(caller.token.account.id)
        .bind(kind)
        .bind(id)
        .fetch_one(&mut self.database.connect().await)
        .await
        .unwrap();
        image.map(|bytes| M::decode(bytes.as_slice()).unwrap())
    }
}

/// Calls on behalf of one account.
#[derive(Clone)]
pub(crate) struct Caller {
    pub token: TestCaller,
    channel: Channel,
}

impl Caller {
    /// The same account with an API key that has these scopes.
    pub(crate) fn with_scopes(&self, scopes: &[&str]) -> Self {
        let mut caller = self.clone();
        caller.token.scopes = scopes.iter().map(ToString::to_string).collect();
        caller
    }

    pub(crate) fn request<T>(&self, message: T) -> Request<T> {
        self.token.request(message)
    }

    pub(crate) fn products(&self) -> ProductServiceClient<Channel> {
        ProductServiceClient::new(self.channel.clone())
    }

    pub(crate) fn settings(&self) -> SettingsServiceClient<Channel> {
        SettingsServiceClient::new(self.channel.clone())
    }

    pub(crate) async fn provision(&self, name: &str) {
        let request = self.request(ProvisionAccountRequest { name: name.to_owned() });
        ProvisioningServiceClient::new(self.channel.clone()).provision_account(request).await.unwrap();
    }

    pub(crate) async fn create(&self, product: ProductInput) -> Result<Product, Status> {
        let request = self.request(CreateProductRequest { product: Some(product) });
        Ok(self.products().create_product(request).await?.into_inner().data.unwrap())
    }

    pub(crate) async fn get(&self, id: &str) -> Result<Product, Status> {
        let request = self.request(GetProductRequest { id: id.to_owned() });
        Ok(self.products().get_product(request).await?.into_inner().data.unwrap())
    }

    /// Changes the fields that the mask names.
    pub(crate) async fn update(
        &self,
        id: &str,
        product: ProductInput,
        names: &[&str],
    ) -> Result<Product, Status> {
        let request = UpdateProductRequest {
            id: id.to_owned(),
            product: Some(product),
            update_mask: Some(mask(names)),
        };
        Ok(self.products().update_product(self.request(request)).await?.into_inner().data.unwrap())
    }

    pub(crate) async fn delete(&self, id: &str) -> Result<(), Status> {
        let request = self.request(DeleteProductRequest { id: id.to_owned() });
        self.products().delete_product(request).await.map(|_| ())
    }

    pub(crate) async fn list(&self, request: ListProductsRequest) -> ListProductsResponse {
        self.products().list_products(self.request(request)).await.unwrap().into_inner()
    }

    pub(crate) async fn tax_rates(&self, context: TaxRateContext) -> Vec<TaxRate> {
        let request = self.request(ListTaxRatesRequest { context: context.into() });
        let answer = self.settings().list_tax_rates(request).await.unwrap().into_inner();
        assert_eq!(answer.meta.unwrap().total, i64::try_from(answer.data.len()).unwrap());
        answer.data
    }

    pub(crate) async fn identities(&self) -> Vec<Identity> {
        let request = self.request(ListIdentitiesRequest {});
        self.settings().list_identities(request).await.unwrap().into_inner().data
    }

    pub(crate) async fn billing_settings(&self) -> BillingSettings {
        let request = self.request(GetBillingSettingsRequest {});
        self.settings().get_billing_settings(request).await.unwrap().into_inner().data.unwrap()
    }

    pub(crate) async fn update_settings(
        &self,
        settings: BillingSettings,
        names: &[&str],
    ) -> Result<BillingSettings, Status> {
        let request =
            UpdateBillingSettingsRequest { settings: Some(settings), update_mask: Some(mask(names)) };
        let request = self.request(request);
        Ok(self.settings().update_billing_settings(request).await?.into_inner().data.unwrap())
    }
}

pub(crate) fn mask(names: &[&str]) -> prost_types::FieldMask {
    prost_types::FieldMask { paths: names.iter().map(ToString::to_string).collect() }
}

pub(crate) fn product(name: &str, code: &str) -> ProductInput {
    ProductInput { name: name.to_owned(), code: code.to_owned(), ..ProductInput::default() }
}

/// The pointers and codes of the faults of an invalid request, sorted.
pub(crate) fn faults(status: &Status) -> Vec<(String, String)> {
    let mut faults = chassis_testing::faults(status);
    faults.sort();
    faults
}

/// The code of a problem and what the caller finds in `data`.
pub(crate) fn problem(status: &Status) -> (String, Vec<(String, String)>) {
    let info = chassis_testing::error_info(status);
    (info.reason, info.metadata.into_iter().collect())
}

pub(crate) fn is_not_found(status: &Status) -> bool {
    status.code() == tonic::Code::NotFound && problem(status).0 == "not_found"
}
