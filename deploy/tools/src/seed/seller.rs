//! What is done over gRPC only, by whoever has the secret of the mesh: the seller on the documents, and collections.

use chassis::token::{self, Tokens};
use chassis::{Account, AccountId, Clock};
use proto::billing::direct_debit_service_client::DirectDebitServiceClient;
use proto::billing::settings_service_client::SettingsServiceClient;
use proto::billing::{
    CollectInvoiceRequest, IdentityInput, ListIdentitiesRequest, SetIdentityLogoRequest,
    UpdateIdentityRequest,
};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};
use uuid::Uuid;

const LOGO: &[u8] = include_bytes!("logo.svg");

/// Where billing is, and who may call it.
pub struct Desk {
    settings: SettingsServiceClient<Channel>,
    debit: DirectDebitServiceClient<Channel>,
    tokens: Tokens,
    account: Account,
    clock: Clock,
}

impl Desk {
    pub async fn open(url: &str, secret: &str, account: Uuid) -> Result<Self, String> {
        let away = |fault: tonic::transport::Error| {
            format!("cannot reach billing at {url}: {}", chassis::service::chain(&fault))
        };
        let channel = Endpoint::from_shared(url.to_owned()).map_err(away)?.connect().await.map_err(away)?;
        let settings = SettingsServiceClient::new(channel.clone());
        let debit = DirectDebitServiceClient::new(channel);
        let account = Account {
            id: AccountId::trust(account),
            timezone: chrono_tz::Europe::Amsterdam,
            country: "NL".to_owned(),
            currency: "EUR".to_owned(),
        };
        Ok(Self { settings, debit, tokens: Tokens::new(secret), account, clock: Clock::system() })
    }

    fn request<T>(&self, message: T) -> Result<Request<T>, String> {
        let token = self.tokens.mint_mesh(&self.account, "seed", self.clock.now());
        let token = token.parse().map_err(|_| "CONTEXT_SECRET is not usable".to_owned())?;
        let mut request = Request::new(message);
        request.metadata_mut().insert(token::HEADER, token);
        Ok(request)
    }

    /// Has an invoice collected.
    pub async fn collect(&mut self, invoice: &str) -> Result<(), String> {
        let request = self.request(CollectInvoiceRequest { id: invoice.to_owned() })?;
        let collected = self.debit.collect_invoice(request).await;
        collected.map(drop).map_err(|status| format!("billing: {}", status.message()))
    }

    /// Fills in the default identity, unless someone has: one with a bank account stays as it is.
    pub async fn introduce(&mut self, seller: IdentityInput) -> Result<(), String> {
        let said = |status: Status| format!("billing: {}", status.message());
        let request = self.request(ListIdentitiesRequest {})?;
        let identities = self.settings.list_identities(request).await.map_err(said)?.into_inner().data;
        let Some(own) = identities.into_iter().find(|identity| identity.is_default) else {
            return Err("the account has no default identity".to_owned());
        };
        if own.values.is_some_and(|values| !values.iban.is_empty()) {
            return Ok(());
        }
        let logo = SetIdentityLogoRequest { id: own.id.clone(), logo: LOGO.into() };
        let logo = self.request(logo)?;
        self.settings.set_identity_logo(logo).await.map_err(said)?;
        // Last, because it is what tells that everything is there.
        let values = UpdateIdentityRequest { id: own.id, identity: Some(seller), update_mask: None };
        let values = self.request(values)?;
        self.settings.update_identity(values).await.map_err(said)?;
        println!("the seller and its logo");
        Ok(())
    }
}
