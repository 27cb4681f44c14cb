//! Which recipients are accepted, and the delivery of a mail to them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use chassis_base::error::status::problem_of;
use chassis_base::{Account, AccountId, Clock};
use chassis_data::Db;
use chassis_rpc::Context;
use proto::api::Problem;
use proto::support::ReceiveMailRequest;
use proto::support::mail_intake_service_server::MailIntakeService;
use sqlx::PgConnection;
use tonic::{Code, Request};

use crate::address::{Destination, OwnDomain, Target, without_subaddress};
use crate::error::Error;
use crate::intake::memory::MailMemory;
use crate::intake::{self, Intake};
use crate::{channel, domain, ticket};

/// The time limit for storing one mail in one account.
const DELIVERY_TIMEOUT: Duration = Duration::from_mins(2);
/// The name of the rpc in the context of the calls that are made here.
const RPC: &str = "smtp";

#[derive(Clone)]
pub struct MailReceiver {
    db: Db,
    clock: Clock,
    own: OwnDomain,
    intake: Arc<Intake>,
}

/// An address that mail is accepted for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipient {
    pub account: AccountId,
    pub address: String,
}

/// What became of a mail for one recipient. Ordered: the greatest is the reply for all recipients together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Disposition {
    Accepted,
    Unreadable,
    TooLarge,
    NoMemory,
    Deferred,
}

impl MailReceiver {
    pub fn new(runtime: &chassis_service::Runtime, own: OwnDomain, intake: Arc<Intake>) -> Self {
        Self { db: runtime.db.clone(), clock: runtime.clock.clone(), own, intake }
    }

    pub fn memory(&self) -> &Arc<MailMemory> {
        self.intake.memory()
    }

    /// The largest mail in bytes.
    pub fn max_bytes(&self) -> usize {
        intake::max_bytes(self.memory())
    }

    /// The recipient with this address: a ticket or an active channel, by an address of this installation or of a
    /// verified domain.
    pub(crate) async fn find(&self, address: &str) -> Result<Option<Recipient>, Error> {
        let account = self
            .db
            .read(async |connection| {
                let account = match self.own.parse(address) {
                    Some(destination) => confirm(connection, destination).await?,
                    None => find_by_domain(connection, address).await?,
                };
                Ok::<_, Error>(account)
            })
            .await?;
        Ok(account.map(|account| Recipient { account, address: address.to_owned() }))
    }

    /// Delivers a mail to each account among the recipients, once. The result has the order of the recipients.
    pub async fn deliver(&self, sender: &str, recipients: &[Recipient], mail: Bytes) -> Vec<Disposition> {
        let mut accounts: Vec<AccountId> = Vec::new();
        for recipient in recipients {
            if !accounts.contains(&recipient.account) {
                accounts.push(recipient.account);
            }
        }
        let mut done = Vec::with_capacity(accounts.len());
        let mut mail = Some(mail);
        for (index, account) in accounts.iter().enumerate() {
            let theirs = recipients.iter().filter(|recipient| recipient.account == *account);
            let addresses = theirs.map(|recipient| recipient.address.clone()).collect();
            // The last delivery takes the bytes over, so that they are freed as soon as the mail has been parsed.
            let is_last = index + 1 == accounts.len();
            let bytes = if is_last { mail.take() } else { mail.clone() };
            let disposition = self.deliver_to(*account, sender, addresses, bytes.unwrap_or_default()).await;
            done.push((*account, disposition));
        }
        let disposition_of = |recipient: &Recipient| {
            let found = done.iter().find(|(account, _)| *account == recipient.account);
            found.map_or(Disposition::Deferred, |(_, disposition)| *disposition)
        };
        recipients.iter().map(disposition_of).collect()
    }

    async fn deliver_to(
        &self,
        account: AccountId,
        sender: &str,
        recipients: Vec<String>,
        mail: Bytes,
    ) -> Disposition {
        let account = match self.db.account(account).await {
            Ok(Some(account)) => account,
            // The account exists, because the recipient was found; this service has not been provisioned for it yet.
            Ok(None) => return Disposition::Deferred,
            Err(error) => {
                tracing::warn!(%error, "mail delivery deferred");
                return Disposition::Deferred;
            }
        };
        let message = ReceiveMailRequest {
            message: mail,
            recipients,
            sender: if sender.is_empty() { "<>".to_owned() } else { sender.to_owned() },
            channel_id: String::new(),
        };
        let request = self.request(&account, message);
        match tokio::time::timeout(DELIVERY_TIMEOUT, self.intake.receive_mail(request)).await {
            Ok(Ok(_)) => Disposition::Accepted,
            Ok(Err(status)) if problem_of(&status) == Some(Problem::TooLarge) => Disposition::TooLarge,
            Ok(Err(status)) if status.code() == Code::InvalidArgument => Disposition::Unreadable,
            Ok(Err(status)) => {
                tracing::warn!(code = ?status.code(), message = status.message(), "mail delivery deferred");
                Disposition::Deferred
            }
            // The transaction may still commit. The client sends the mail again, and its message id then identifies it.
            Err(_) => Disposition::Deferred,
        }
    }

    /// A call inside this process, on behalf of the account that the address belongs to.
    fn request(&self, account: &Account, message: ReceiveMailRequest) -> Request<ReceiveMailRequest> {
        let mut request = Request::new(message);
        request.extensions_mut().insert(Context {
            request_id: self.clock.id().to_string().into(),
            deadline: Instant::now() + DELIVERY_TIMEOUT,
            ..Context::internal(account, RPC, RPC, &self.clock)
        });
        request
    }
}

/// The account of an address of this installation, if it has that ticket or active channel.
async fn confirm(
    connection: &mut PgConnection,
    destination: Destination,
) -> Result<Option<AccountId>, Error> {
    let Destination { account, target } = destination;
    let exists = match target {
        Target::Ticket(secret) => {
            ticket::store::find_by_reply_secret(connection, account, &secret).await?.is_some()
        }
        Target::Channel(key) => {
            let channels = channel::store::list(connection, account, true).await?;
            channels.iter().any(|channel| channel.inbound_key == key)
        }
    };
    Ok(exists.then_some(account))
}

/// The account that receives the mail of the address's domain, if one of its active channels has the address.
async fn find_by_domain(connection: &mut PgConnection, address: &str) -> Result<Option<AccountId>, Error> {
    let host = address.rsplit_once('@').map_or("", |(_, host)| host).to_lowercase();
    let Some(account) = domain::store::find_route(connection, &host).await? else { return Ok(None) };
    let channels = channel::store::list(connection, account, true).await?;
    let plain = without_subaddress(address);
    Ok(channels.iter().any(|channel| channel.has_address(&plain)).then_some(account))
}
