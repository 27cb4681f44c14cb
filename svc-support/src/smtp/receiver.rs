//! Who is known here, and handing a mail over to those it is for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use chassis::call::Context;
use chassis::error::problem_of;
use chassis::token::Tokens;
use chassis::{Account, AccountId, Clock, Db};
use proto::api::Problem;
use proto::support::ReceiveMailRequest;
use proto::support::mail_intake_service_server::MailIntakeService;
use tonic::{Code, Request};

use crate::Error;
use crate::address::{OwnDomain, Place};
use crate::intake::memory::Memory;
use crate::intake::rpc::Intake;
use crate::{channel, domain, intake, ticket};

/// For taking a mail in.
const PATIENCE: Duration = Duration::from_mins(2);
/// What the calls made here are known by.
const RPC: &str = "smtp";

pub struct Office {
    pub db: Db,
    pub tokens: Tokens,
    pub clock: Clock,
    pub own: OwnDomain,
    pub intake: Arc<Intake>,
    pub memory: Arc<Memory>,
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
    NoMemory,
    Later,
}

impl Office {
    pub fn new(runtime: &chassis::Runtime, own: OwnDomain, intake: Arc<Intake>) -> Self {
        let (db, tokens, clock) = (runtime.db.clone(), runtime.tokens.clone(), runtime.clock.clone());
        let memory = Arc::clone(&intake.memory);
        Self { db, tokens, clock, own, intake, memory }
    }

    /// Bytes that a mail can have.
    pub fn max_bytes(&self) -> usize {
        intake::max_bytes(&self.memory)
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
    pub async fn deliver(&self, sender: &str, recipients: &[Recipient], mail: Bytes) -> Vec<Verdict> {
        let mut accounts: Vec<AccountId> = Vec::new();
        for recipient in recipients {
            if !accounts.contains(&recipient.account) {
                accounts.push(recipient.account);
            }
        }
        let (mut done, mut mail) = (Vec::with_capacity(accounts.len()), Some(mail));
        for (index, account) in accounts.iter().enumerate() {
            let theirs = recipients.iter().filter(|recipient| recipient.account == *account);
            let addresses = theirs.map(|recipient| recipient.address.clone()).collect();
            // The last one gets the only copy, which ends when it has been read.
            let is_last = index + 1 == accounts.len();
            let copy = if is_last { mail.take() } else { mail.clone() };
            let verdict = self.deliver_to(*account, sender, addresses, copy.unwrap_or_default()).await;
            done.push((*account, verdict));
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
        mail: Bytes,
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
            message: mail,
            recipients,
            sender: if sender.is_empty() { "<>".to_owned() } else { sender.to_owned() },
            channel_id: String::new(),
        };
        let Some(request) = self.request(&account, message) else { return Verdict::Later };
        let taking = tokio::time::timeout(PATIENCE, self.intake.receive_mail(request));
        match taking.await {
            Ok(Ok(_)) => Verdict::Taken,
            Ok(Err(status)) if problem_of(&status) == Some(Problem::TooLarge) => Verdict::TooLarge,
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
