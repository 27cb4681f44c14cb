//! Who is known here, and handing a mail over to those it is for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use chassis::call::Context;
use chassis::token::Tokens;
use chassis::{Account, AccountId, Clock, Db};
use proto::support::ReceiveMailRequest;
use proto::support::mail_intake_service_server::MailIntakeService;
use tokio::sync::Semaphore;
use tonic::{Code, Request};

use crate::Error;
use crate::address::{OwnDomain, Place};
use crate::intake::rpc::Intake;
use crate::{channel, domain, ticket};

/// How many mails are in memory at once.
const AT_ONCE: usize = 8;
/// For taking a mail in.
const PATIENCE: Duration = Duration::from_mins(2);
/// What the calls made here are known by.
const RPC: &str = "smtp";

pub struct Office {
    pub db: Db,
    pub tokens: Tokens,
    pub clock: Clock,
    pub own: OwnDomain,
    pub intake: Intake,
    pub room: Arc<Semaphore>,
}

/// Somebody who is known here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipient {
    pub account: AccountId,
    pub address: String,
}

/// What became of a mail, for one recipient; the worst is the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    Taken,
    Unreadable,
    TooLarge,
    Later,
}

impl Office {
    pub fn new(runtime: &chassis::Runtime, own: OwnDomain, intake: Intake) -> Self {
        let (db, tokens, clock) = (runtime.db.clone(), runtime.tokens.clone(), runtime.clock.clone());
        Self { db, tokens, clock, own, intake, room: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Whom an address leads to: a ticket or an active channel, by an address of ours or of a verified domain.
    pub async fn find(&self, address: &str) -> Result<Option<Recipient>, Error> {
        let mut connection = self.db.read().await?;
        let known = match self.own.parse(address) {
            Some((account, Place::Ticket(secret))) => {
                let found = ticket::store::find_by_reply_secret(&mut connection, account, &secret).await?;
                found.map(|_| account)
            }
            Some((account, Place::Channel(key))) => {
                let channels = channel::store::list(&mut connection, account, true).await?;
                channels.iter().any(|channel| channel.inbound_key == key).then_some(account)
            }
            None => {
                let host = address.rsplit_once('@').map_or("", |(_, host)| host).to_lowercase();
                match domain::store::find_route(&mut connection, &host).await? {
                    Some(account) => {
                        let channels = channel::store::list(&mut connection, account, true).await?;
                        let plain = crate::intake::without_detail(address);
                        channels.iter().any(|channel| channel.has_address(&plain)).then_some(account)
                    }
                    None => None,
                }
            }
        };
        connection.done();
        Ok(known.map(|account| Recipient { account, address: address.to_owned() }))
    }

    /// Takes a mail in for each account that it is for, once. The verdicts are in the order of the recipients.
    pub async fn deliver(&self, sender: &str, recipients: &[Recipient], mail: &Bytes) -> Vec<Verdict> {
        let mut done: Vec<(AccountId, Verdict)> = Vec::new();
        for recipient in recipients {
            if done.iter().all(|(account, _)| *account != recipient.account) {
                let theirs = recipients.iter().filter(|other| other.account == recipient.account);
                let addresses = theirs.map(|other| other.address.clone()).collect();
                let verdict = self.deliver_to(recipient.account, sender, addresses, mail).await;
                done.push((recipient.account, verdict));
            }
        }
        let verdict = |recipient: &Recipient| {
            let found = done.iter().find(|(account, _)| *account == recipient.account);
            found.map_or(Verdict::Later, |(_, verdict)| *verdict)
        };
        recipients.iter().map(verdict).collect()
    }

    async fn deliver_to(
        &self,
        account: AccountId,
        sender: &str,
        recipients: Vec<String>,
        mail: &Bytes,
    ) -> Verdict {
        let account = match self.db.account(account).await {
            Ok(Some(account)) => account,
            // Provisioning tells of every account, so one that is not there will be.
            Ok(None) => return Verdict::Later,
            Err(error) => {
                tracing::warn!(%error, "a mail has to wait");
                return Verdict::Later;
            }
        };
        let message = ReceiveMailRequest {
            message: mail.clone(),
            recipients,
            sender: if sender.is_empty() { "<>".to_owned() } else { sender.to_owned() },
            channel_id: String::new(),
        };
        let Some(request) = self.request(&account, message) else { return Verdict::Later };
        let taking = tokio::time::timeout(PATIENCE, self.intake.receive_mail(request));
        match taking.await {
            Ok(Ok(_)) => Verdict::Taken,
            Ok(Err(status)) if status.code() == Code::InvalidArgument => Verdict::Unreadable,
            Ok(Err(status)) => {
                tracing::warn!(code = ?status.code(), message = status.message(), "a mail has to wait");
                Verdict::Later
            }
            Err(_) => Verdict::Later,
        }
    }

    /// A call inside this process, on behalf of the account that the address named.
    fn request(&self, account: &Account, message: ReceiveMailRequest) -> Option<Request<ReceiveMailRequest>> {
        let now = self.clock.now();
        let identity = self.tokens.verify(&self.tokens.to_self().mint_mesh(account, RPC, now), now)?;
        let mut request = Request::new(message);
        request.extensions_mut().insert(Context {
            identity,
            request_id: self.clock.id().to_string().into(),
            rpc: RPC,
            idempotency_key: None,
            carried: Arc::default(),
            deadline: Instant::now() + PATIENCE,
            clock: self.clock.clone(),
        });
        Some(request)
    }
}
