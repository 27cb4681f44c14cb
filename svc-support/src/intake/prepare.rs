//! What happens to a mail before its transaction: it is parsed, its files are stored and its sender is looked up. A file
//! of its own because none of this may run while the transaction holds locks.

use std::sync::Arc;

use bytes::Bytes;
use chassis_base::AccountId;
use chassis_rpc::Context;
use chassis_work::files::Key;
use uuid::Uuid;

use super::mail::{self, Attached, Mail};
use super::{FILE_AREA, Intake, Prepared};
use crate::error::Error;
use crate::message::{self, Attachment};

/// A mail as it was handed over.
pub(super) struct RawMail<'a> {
    pub bytes: Bytes,
    /// The sender of the envelope, as the request gives it.
    pub sender: &'a str,
}

impl Intake {
    /// Parses a mail, stores its files and looks up its sender. `None` when the bytes are not a mail.
    pub(super) async fn prepare(
        &self,
        context: &Context,
        raw: RawMail<'_>,
    ) -> Result<Option<Prepared>, Error> {
        let account = context.account_id();
        let Some(mut mail) = self.parse(raw.bytes, envelope_sender(raw.sender)).await? else {
            return Ok(None);
        };
        let files = std::mem::take(&mut mail.attachments);
        let max = self.files.max_bytes();
        if let Some(file) = files.iter().find(|file| file.bytes.len() > max) {
            return Err(Error::AttachmentTooLarge { name: file.name.clone(), max });
        }
        let mut attachments = Vec::new();
        let mut client = None;
        if self.is_new(account, &mail).await? {
            attachments = self.store(context, files).await?;
            client = self.clients.find_by_email(context, &mail.from_email).await;
        }
        let files = self.names(account, &attachments);
        Ok(Some(Prepared { mail, attachments, files, client, own: self.own.clone() }))
    }

    /// Stands for the prepared mail in a request that has faults: its transaction only reports them.
    pub(super) fn empty(&self) -> Prepared {
        Prepared {
            mail: Mail::default(),
            attachments: Vec::new(),
            files: Vec::new(),
            client: None,
            own: self.own.clone(),
        }
    }

    /// Parsing takes CPU time and memory, so it runs on a thread of its own, a few mails at a time.
    async fn parse(&self, raw: Bytes, sender: Option<String>) -> Result<Option<Mail>, Error> {
        let permit = Arc::clone(&self.parsing).acquire_owned().await;
        let parsing = tokio::task::spawn_blocking(move || {
            // Held until parsing ends, even if the call is cancelled before.
            let _permit = permit;
            mail::parse(&raw, sender.as_deref())
        });
        let parsed = parsing.await;
        Ok(parsed
            .map_err(|error| chassis_base::Error::Internal(format!("parsing a mail failed: {error}")))?)
    }

    /// Whether the mail will be stored, as far as that can be said before the transaction, which decides.
    async fn is_new(&self, account: AccountId, mail: &Mail) -> Result<bool, Error> {
        if mail.from_email.is_empty() {
            return Ok(false);
        }
        let stored = self
            .db
            .read(async |connection| {
                message::store::find_by_message_id(connection, account, &mail.message_id).await
            })
            .await?;
        Ok(stored.is_none())
    }

    /// Stores the bytes of files under new ids. They are announced first and listed by the transaction; what was
    /// announced and never listed, because of a crash or because the same mail came twice, is removed later.
    async fn store(&self, context: &Context, files: Vec<Attached>) -> Result<Vec<Attachment>, Error> {
        let account = context.account();
        let ids = files.iter().map(|_| context.clock.id());
        let keys: Vec<(Uuid, Key)> = ids.map(|id| (id, Key::new(account.id, FILE_AREA, id))).collect();
        let new: Vec<Key> = keys.iter().map(|(_, key)| key.clone()).collect();
        self.files.expect(&self.db, account, &new).await?;
        let mut stored = Vec::with_capacity(files.len());
        for ((id, key), Attached { name, content_type, bytes }) in keys.into_iter().zip(files) {
            let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
            self.files.put(&key, Bytes::from(bytes)).await?;
            stored.push(Attachment { id, name, content_type, size, left_out: false });
        }
        Ok(stored)
    }

    /// The names of attachments in the file store.
    fn names(&self, account: AccountId, attachments: &[Attachment]) -> Vec<String> {
        let name = |file: &Attachment| self.files.reference(&Key::new(account, FILE_AREA, file.id));
        attachments.iter().map(name).collect()
    }
}

/// The sender of the envelope: `None` when the request has none, `""` for the empty sender of a bounce.
fn envelope_sender(text: &str) -> Option<String> {
    match text.trim() {
        "" => None,
        "<>" => Some(String::new()),
        sender => Some(sender.to_owned()),
    }
}
