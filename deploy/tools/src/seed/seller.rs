//! The seller on the documents. Identities are managed over gRPC only, by whoever has the secret of the mesh.

use proto::billing::settings_service_client::SettingsServiceClient;
use proto::billing::{IdentityInput, ListIdentitiesRequest, SetIdentityLogoRequest, UpdateIdentityRequest};
use tonic::transport::Channel;

use crate::mesh::{Caller, said};

const LOGO: &[u8] = include_bytes!("logo.svg");

/// Where billing is, and who may call it.
pub struct Desk {
    settings: SettingsServiceClient<Channel>,
    caller: Caller,
}

impl Desk {
    pub fn new(billing: Channel, caller: Caller) -> Self {
        Self { settings: SettingsServiceClient::new(billing), caller }
    }

    /// Fills in the default identity, unless someone has: one with a bank account stays as it is.
    pub async fn introduce(&mut self, seller: IdentityInput) -> Result<(), String> {
        let said = || said("billing");
        let request = self.caller.request(ListIdentitiesRequest {})?;
        let identities = self.settings.list_identities(request).await.map_err(said())?.into_inner().data;
        let Some(own) = identities.into_iter().find(|identity| identity.is_default) else {
            return Err("the account has no default identity".to_owned());
        };
        if own.values.is_some_and(|values| !values.iban.is_empty()) {
            return Ok(());
        }
        let logo = SetIdentityLogoRequest { id: own.id.clone(), logo: LOGO.into() };
        let logo = self.caller.request(logo)?;
        self.settings.set_identity_logo(logo).await.map_err(said())?;
        // Last, because it is what tells that everything is there.
        let values = UpdateIdentityRequest { id: own.id, identity: Some(seller), update_mask: None };
        let values = self.caller.request(values)?;
        self.settings.update_identity(values).await.map_err(said())?;
        println!("the seller and its logo");
        Ok(())
    }
}
