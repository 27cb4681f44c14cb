//! Attachments that are loaded when the mail is delivered.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::sync::Arc;

use base64::Engine;
use chassis_base::{Account, Error};
use chassis_service::{Runtime, Service};
use chassis_testing::bare::{Bare, database, write};
use chassis_testing::{SmtpServer, Started, TestDatabase, eventually};
use chassis_work::mail::{Attached, Attachment, AttachmentSource, Mail, mailbox, queue};
use chassis_work::{Files, dead_letters, files};
use chrono::TimeDelta;
use proto::api::Problem;
use sqlx::migrate::Migrator;
use tonic::service::RoutesBuilder;
use uuid::Uuid;

/// A source that loads attachments from its files; the reference is the id.
struct Attaching {
    files: Files,
}

struct FromFiles(Files);

#[tonic::async_trait]
impl AttachmentSource for FromFiles {
    async fn load(&self, account: &Account, reference: &str) -> Result<Option<Attached>, Error> {
        let Some(id) = reference.strip_prefix("file:") else {
            return Err(Error::problem(Problem::Unavailable, "come back later"));
        };
        let key = files::Key::new(account.id, "attached", id.parse().unwrap());
        let found = self.0.get(&key).await?;
        let attached = |bytes: bytes::Bytes| Attached {
            name: "made.txt".into(),
            content_type: "text/plain".into(),
            bytes: bytes.to_vec(),
        };
        Ok(found.map(attached))
    }
}

#[tonic::async_trait]
impl Service for Attaching {
    const NAME: &'static str = Bare::NAME;
    const ABOUT: &'static str = "For tests";
    const KEEPS_FILES: bool = true;

    fn migrations() -> &'static Migrator {
        Bare::migrations()
    }

    async fn new(runtime: &Runtime) -> Result<Self, String> {
        Ok(Self { files: runtime.files()? })
    }

    fn routes(self: &Arc<Self>, _: &mut RoutesBuilder) {}

    fn attachments(self: &Arc<Self>) -> Option<Arc<dyn AttachmentSource>> {
        Some(Arc::new(FromFiles(self.files.clone())))
    }
}

fn naming(reference: String) -> Mail {
    let from = mailbox("", "info@bakery.example").unwrap();
    let to = vec![mailbox("", "ann@client.example").unwrap()];
    let attachments = vec![Attachment::Later { reference }];
    Mail { text: Some("See the file.".into()), attachments, ..Mail::new(from, to, "A file") }
}

struct Setting {
    database: TestDatabase,
    clock: chassis_base::Clock,
    server: SmtpServer,
    _folder: tempfile::TempDir,
    service: Started,
}

impl Setting {
    async fn of<S: Service>() -> Self {
        let (database, clock, server) =
            (database().await, chassis_testing::clock(), SmtpServer::start().await);
        let folder = tempfile::tempdir().unwrap();
        let url = server.url();
        let flags = ["--smtp-url", &url, "--files-dir", folder.path().to_str().unwrap()];
        let service = chassis_testing::start_working::<S>(database.url(), &clock, &flags).await;
        Self { database, clock, server, _folder: folder, service }
    }

    async fn queue(&self, account: &Account, mail: &Mail) {
        write(&self.service.runtime.db, account, async |tx| queue(tx, mail).await.map(|_| ())).await;
    }

    async fn state(&self) -> (String, i32, String) {
        sqlx::query_as("select status, attempts, last_error from bare.mail")
            .fetch_one(&mut self.database.connect().await)
            .await
            .unwrap()
    }
}

#[tokio::test]
async fn an_attachment_that_was_only_named_arrives() {
    let setting = Setting::of::<Attaching>().await;
    let (account, id) = (chassis_testing::account(), Uuid::new_v4());
    let key = files::Key::new(account.id, "attached", id);
    setting.service.runtime.files().unwrap().put(&key, "made at delivery").await.unwrap();
    // The first attempt fails after the attachment was loaded; the second composes the same mail again.
    setting.server.refuse_next(&["451 later"]);
    setting.queue(&account, &naming(format!("file:{id}"))).await;
    eventually("it is sent", async || {
        setting.clock.advance(TimeDelta::seconds(5));
        setting.state().await.0 == "sent"
    })
    .await;
    let message = &setting.server.received()[0].message;
    assert!(message.contains("filename=\"made.txt\""), "{message}");
    let content = base64::engine::general_purpose::STANDARD.encode("made at delivery");
    assert!(message.contains(&content), "{message}");
    let queued = chrono::DateTime::parse_from_rfc2822(
        message.lines().find_map(|line| line.strip_prefix("Date: ")).unwrap(),
    );
    assert_eq!(queued.unwrap().timestamp(), chassis_testing::moment().timestamp(), "when it was queued");
}

#[tokio::test]
async fn a_mail_whose_attachment_is_gone_is_a_dead_letter_that_says_so() {
    let setting = Setting::of::<Attaching>().await;
    let reference = format!("file:{}", Uuid::new_v4());
    setting.queue(&chassis_testing::account(), &naming(reference.clone())).await;
    eventually("it is dead", async || setting.state().await.0 == "dead").await;
    let dead = dead_letters::list(&setting.service.runtime.db).await.unwrap();
    assert_eq!(dead[0].last_error, format!("the attachment {reference} no longer exists"));
    assert_eq!(dead[0].attempts, 1);
}

#[tokio::test]
async fn a_mail_whose_attachment_cannot_be_had_now_waits() {
    let setting = Setting::of::<Attaching>().await;
    setting.queue(&chassis_testing::account(), &naming("away".into())).await;
    eventually("it was tried", async || setting.state().await.1 == 1).await;
    eventually("it waits", async || setting.state().await.2.contains("come back later")).await;
    assert_eq!(setting.state().await.0, "queued");
    assert!(setting.server.received().is_empty());
}

#[tokio::test]
async fn a_service_without_attachments_does_not_deliver_a_mail_that_names_one() {
    let setting = Setting::of::<Bare>().await;
    setting.queue(&chassis_testing::account(), &naming("file:x".into())).await;
    eventually("it is dead", async || setting.state().await.0 == "dead").await;
    assert!(setting.state().await.2.contains("nothing here makes"));
}
