//! What billing does over gRPC only: the seller on the documents, and collections.

use deploy_tools::mesh::{MeshCaller, service_error};
use proto::billing::direct_debit_service_client::DirectDebitServiceClient;
use proto::billing::settings_service_client::SettingsServiceClient;
use proto::billing::{
    CollectInvoiceRequest, IdentityInput, ListIdentitiesRequest, SetIdentityLogoRequest,
    UpdateIdentityRequest,
};
use tonic::transport::Channel;

const SERVICE: &str = "billing";
const LOGO: &[u8] = include_bytes!("logo.svg");

/// Where billing is, and who may call it.
pub(crate) struct BillingService<'a> {
    settings: SettingsServiceClient<Channel>,
    debit: DirectDebitServiceClient<Channel>,
    mesh: &'a MeshCaller,
}

impl<'a> BillingService<'a> {
    pub(crate) async fn open(url: &str, mesh: &'a MeshCaller) -> Result<Self, String> {
        let channel = mesh.connect(SERVICE, url).await?;
        let settings = SettingsServiceClient::new(channel.clone());
        Ok(Self { settings, debit: DirectDebitServiceClient::new(channel), mesh })
    }

    /// Has an invoice collected.
    pub(crate) async fn collect(&mut self, invoice: &str) -> Result<(), String> {
        let request = self.mesh.request(CollectInvoiceRequest { id: invoice.to_owned() })?;
        let collected = self.debit.collect_invoice(request).await;
        collected.map(drop).map_err(service_error(SERVICE))
    }

    /// Fills in the default identity, unless someone has: one with a bank account stays as it is.
    pub(crate) async fn introduce(&mut self, seller: IdentityInput) -> Result<(), String> {
        let request = self.mesh.request(ListIdentitiesRequest {})?;
        let identities =
            self.settings.list_identities(request).await.map_err(service_error(SERVICE))?.into_inner().data;
        let Some(own) = identities.into_iter().find(|identity| identity.is_default) else {
            return Err("the account has no default identity".to_owned());
        };
        if !own.iban.is_empty() {
            return Ok(());
        }
        let logo = SetIdentityLogoRequest { id: own.id.clone(), logo: LOGO.into() };
        let logo = self.mesh.request(logo)?;
        self.settings.set_identity_logo(logo).await.map_err(service_error(SERVICE))?;
        // Last, because it is what tells that everything is there.
        let values = UpdateIdentityRequest { id: own.id, identity: Some(seller), update_mask: None };
        let values = self.mesh.request(values)?;
        self.settings.update_identity(values).await.map_err(service_error(SERVICE))?;
        println!("the seller and its logo");
        Ok(())
    }
}
