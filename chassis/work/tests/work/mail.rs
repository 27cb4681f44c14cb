//! Mail from the transaction to a real SMTP server or to files.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::os::unix::fs::PermissionsExt;

use base64::Engine;
use chassis_base::{Account, Clock};
use chassis_testing::bare::{Bare, database, write};
use chassis_testing::{SmtpServer, Started, TestDatabase, eventually};
use chassis_work::dead_letters;
use chassis_work::mail::{self, Attached, Attachment, Mail, Outcome, Status, mailbox, outcomes};
use chrono::TimeDelta;

fn pdf() -> Attached {
    Attached {
        name: "Rechnung für Ann.pdf".into(),
        content_type: "application/pdf".into(),
        bytes: b"%PDF-1.7 not really".to_vec(),
    }
}

fn sample() -> Mail {
    let from = mailbox("Bäckerei", "info@bakery.example").unwrap();
    let to = vec![mailbox("Ann", "ann@client.example").unwrap()];
    Mail {
        cc: vec![mailbox("", "bob@client.example").unwrap()],
        reply_to: mailbox("", "reply@bakery.example"),
        text: Some("Hello\n.\nHello again\n".into()),
        html: Some("<p>Hello</p>".into()),
        attachments: vec![Attachment::Inline(pdf())],
        headers: vec![("X-Reference", "r\r\nBcc: victim@example.com".into())],
        reference: "thing 7".into(),
        ..Mail::new(from, to, "Grüße – 5 €\r\nBcc: victim@example.com")
    }
}

async fn queue(service: &Started, account: &Account, queued: &Mail) {
    write(&service.runtime.db, account, async |tx| mail::queue(tx, queued).await.map(|_| ())).await;
}

async fn working(database: &TestDatabase, clock: &Clock, server: &SmtpServer) -> Started {
    chassis_testing::start_working::<Bare>(database.url(), clock, &["--smtp-url", &server.url()]).await
}

async fn states(database: &TestDatabase) -> Vec<(String, i32)> {
    sqlx::query_as("select status, attempts from bare.mail order by id")
        .fetch_all(&mut database.connect().await)
        .await
        .unwrap()
}

async fn outcome_of(database: &TestDatabase, account: &Account) -> Outcome {
    let mut connection = database.connect().await;
    sqlx::query("set search_path to bare").execute(&mut connection).await.unwrap();
    assert!(outcomes(&mut connection, chassis_testing::account().id, "thing 7").await.unwrap().is_empty());
    let mut found = outcomes(&mut connection, account.id, "thing 7").await.unwrap();
    assert_eq!(found.len(), 1);
    found.remove(0)
}

fn decoded_words(header: &str) -> String {
    let words = header.split("=?utf-8?b?").skip(1).map(|word| word.split("?=").next().unwrap());
    let bytes = words.flat_map(|word| base64::engine::general_purpose::STANDARD.decode(word).unwrap());
    String::from_utf8(bytes.collect()).unwrap()
}

/// The header with its continuation lines.
fn header(message: &str, name: &str) -> String {
    let unfolded = message.split("\r\n\r\n").next().unwrap().replace("\r\n ", " ");
    let found = unfolded.lines().find_map(|line| line.strip_prefix(&format!("{name}: "))).unwrap();
    found.to_owned()
}

#[tokio::test]
async fn in_production_a_mail_without_a_server_waits_and_is_not_written_to_a_file() {
    let (database, clock, folder) =
        (database().await, chassis_testing::clock(), tempfile::tempdir().unwrap());
    let kept = folder.path().join("mail");
    let flags = ["--environment", "production", "--mail-dir", kept.to_str().unwrap()];
    let service = chassis_testing::start_working::<Bare>(database.url(), &clock, &flags).await;
    queue(&service, &chassis_testing::account(), &sample()).await;
    eventually("it was tried", async || states(&database).await == [("queued".to_owned(), 1)]).await;
    eventually("the reason is kept", async || {
        let mut connection = database.connect().await;
        let said: Option<String> =
            sqlx::query_scalar("select last_error from bare.mail").fetch_one(&mut connection).await.unwrap();
        said.is_some_and(|said| said.contains("SMTP_URL is not set"))
    })
    .await;
    assert!(!kept.exists());
}

#[tokio::test]
async fn a_mail_arrives_as_it_was_meant_and_once() {
    let (database, clock, server) = (database().await, chassis_testing::clock(), SmtpServer::start().await);
    let service = working(&database, &clock, &server).await;
    queue(&service, &chassis_testing::account(), &sample()).await;
    eventually("it is sent", async || states(&database).await == [("sent".to_owned(), 1)]).await;
    let received = server.received();
    assert_eq!(received.len(), 1);
    let mail = &received[0];
    assert_eq!(mail.sender, "info@bakery.example");
    assert_eq!(mail.recipients, ["ann@client.example", "bob@client.example"], "and no victim");
    assert!(decoded_words(&header(&mail.message, "Subject")).contains("Grüße"));
    assert_eq!(header(&mail.message, "Reply-To"), "reply@bakery.example");
    assert!(!mail.message.lines().any(|line| line.starts_with("Bcc")), "{}", mail.message);
    assert!(mail.message.contains("\r\n.\r\nHello again"), "a line with a dot is no end");
    let attached = base64::engine::general_purpose::STANDARD.encode(b"%PDF-1.7 not really");
    assert!(mail.message.contains(&attached) || mail.message.contains("%PDF-1.7 not really"));
    assert!(mail.message.contains("text/html") && mail.message.contains("application/pdf"));
}

#[tokio::test]
async fn a_mail_that_is_refused_for_now_goes_out_later() {
    let (database, clock, server) = (database().await, chassis_testing::clock(), SmtpServer::start().await);
    server.refuse_next(&["451 try again later", "421 too busy"]);
    let service = working(&database, &clock, &server).await;
    queue(&service, &chassis_testing::account(), &sample()).await;
    eventually("it was refused", async || states(&database).await == [("queued".to_owned(), 1)]).await;
    eventually("it is sent", async || {
        clock.advance(TimeDelta::seconds(5));
        states(&database).await == [("sent".to_owned(), 3)]
    })
    .await;
    assert_eq!((server.received().len(), server.refused()), (1, 2));
}

#[tokio::test]
async fn a_mail_that_is_refused_for_good_is_a_dead_letter_and_can_be_retried() {
    let (database, clock, server) = (database().await, chassis_testing::clock(), SmtpServer::start().await);
    // The server refuses the joint transaction, then each recipient.
    server.refuse_next(&["550 no such user"; 3]);
    let service = working(&database, &clock, &server).await;
    let (account, db) = (chassis_testing::account(), &service.runtime.db);
    queue(&service, &account, &sample()).await;
    eventually("it is dead", async || states(&database).await == [("dead".to_owned(), 1)]).await;
    let dead = dead_letters::list(db).await.unwrap();
    assert_eq!(dead.len(), 1);
    assert_eq!((dead[0].kind.as_str(), dead[0].what.as_str()), ("mail", "thing 7"));
    assert!(dead[0].last_error.contains("no such user"), "{}", dead[0].last_error);
    assert_eq!(dead[0].account_id, account.id);
    assert_eq!(dead_letters::retry(db, None).await.unwrap(), 1);
    eventually("it is sent", async || states(&database).await == [("sent".to_owned(), 1)]).await;
    assert_eq!(server.received().len(), 1);
}

#[tokio::test]
async fn delivery_is_given_up_after_its_attempts() {
    let (database, clock, server) = (database().await, chassis_testing::clock(), SmtpServer::start().await);
    server.refuse_next(&["451 later"; 50]);
    let service = working(&database, &clock, &server).await;
    queue(&service, &chassis_testing::account(), &sample()).await;
    eventually("it is dead", async || {
        clock.advance(TimeDelta::minutes(10));
        states(&database).await == [("dead".to_owned(), chassis_work::mail::MAX_ATTEMPTS)]
    })
    .await;
    // Three joint attempts, then seven attempts to each recipient.
    assert_eq!(server.refused(), 3 + 7 * 2);
}

#[tokio::test]
async fn mail_waits_while_the_server_is_away() {
    let (database, clock, server) = (database().await, chassis_testing::clock(), SmtpServer::start().await);
    let url = server.url();
    drop(server);
    let service = chassis_testing::start_working::<Bare>(database.url(), &clock, &["--smtp-url", &url]).await;
    queue(&service, &chassis_testing::account(), &sample()).await;
    eventually("it was tried", async || {
        let error: String = sqlx::query_scalar("select last_error from bare.mail")
            .fetch_one(&mut database.connect().await)
            .await
            .unwrap();
        !error.is_empty()
    })
    .await;
    assert_eq!(states(&database).await, [("queued".to_owned(), 1)]);
}

#[tokio::test]
async fn without_a_server_mail_goes_to_files() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let folder = tempfile::tempdir().unwrap();
    let mails = folder.path().join("mail");
    let flags = ["--mail-dir", mails.to_str().unwrap()];
    let service = chassis_testing::start_working::<Bare>(database.url(), &clock, &flags).await;
    queue(&service, &chassis_testing::account(), &sample()).await;
    queue(&service, &chassis_testing::account(), &sample()).await;
    let sent = ("sent".to_owned(), 1);
    eventually("they are written", async || states(&database).await == [sent.clone(), sent.clone()]).await;
    let files: Vec<_> = std::fs::read_dir(&mails).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 2);
    let text = std::fs::read_to_string(&files[0]).unwrap();
    let id = files[0].file_stem().unwrap().to_str().unwrap();
    assert_eq!(header(&text, "Message-ID"), format!("<{id}@bakery.example>"));
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&mails), mode(&files[0])), (0o700, 0o600), "for nobody else to read");
}

#[tokio::test]
async fn one_bad_recipient_does_not_keep_the_others_from_their_mail() {
    let (database, clock, server) = (database().await, chassis_testing::clock(), SmtpServer::start().await);
    server.refuse_recipient("ann@client.example", "550 no such user");
    let service = working(&database, &clock, &server).await;
    let account = chassis_testing::account();
    queue(&service, &account, &sample()).await;
    eventually("it is dead", async || states(&database).await == [("dead".to_owned(), 1)]).await;
    let outcome = outcome_of(&database, &account).await;
    assert_eq!((outcome.status, outcome.attempts), (Status::Dead, 1));
    assert_eq!(outcome.recipients, ["ann@client.example", "bob@client.example"]);
    assert_eq!(outcome.accepted, ["bob@client.example"]);
    assert!(outcome.refused["ann@client.example"].contains("no such user"), "{outcome:?}");
    assert!(outcome.last_error.contains("ann@client.example") && outcome.done_at.is_some(), "{outcome:?}");
    server.welcome("ann@client.example");
    assert_eq!(dead_letters::retry(&service.runtime.db, None).await.unwrap(), 1);
    eventually("it is sent", async || states(&database).await == [("sent".to_owned(), 1)]).await;
    let recipients: Vec<_> = server.received().into_iter().map(|mail| mail.recipients).collect();
    assert_eq!(recipients, [["bob@client.example"], ["ann@client.example"]], "each once");
    let outcome = outcome_of(&database, &account).await;
    assert_eq!((outcome.status, outcome.refused.len()), (Status::Sent, 0));
}

#[tokio::test]
async fn a_recipient_who_has_to_wait_does_not_keep_the_others_waiting_for_ever() {
    let (database, clock, server) = (database().await, chassis_testing::clock(), SmtpServer::start().await);
    server.refuse_recipient("ann@client.example", "452 mailbox full");
    let service = working(&database, &clock, &server).await;
    let account = chassis_testing::account();
    queue(&service, &account, &sample()).await;
    eventually("it is given up", async || {
        clock.advance(TimeDelta::minutes(10));
        states(&database).await == [("dead".to_owned(), chassis_work::mail::MAX_ATTEMPTS)]
    })
    .await;
    assert_eq!(outcome_of(&database, &account).await.accepted, ["bob@client.example"]);
    assert_eq!(server.received().len(), 1);
    assert!(outcome_of(&database, &account).await.last_error.contains("mailbox full"));
}

#[tokio::test]
async fn a_mail_that_was_finished_by_an_earlier_version_is_delivered() {
    let (database, clock, server) = (database().await, chassis_testing::clock(), SmtpServer::start().await);
    sqlx::query(
        "insert into bare.mail (account_id, id, sender, recipients, message, reference, status, next_at, created_at)
         values ($1, $1, 'info@bakery.example', '{ann@client.example}', $2, '', 'queued', $3, $3)",
    )
    .bind(chassis_testing::account().id)
    .bind(b"Subject: old\r\n\r\nHello\r\n".as_slice())
    .bind(chassis_testing::moment())
    .execute(&mut database.connect().await)
    .await
    .unwrap();
    let _service = working(&database, &clock, &server).await;
    eventually("it is sent", async || states(&database).await == [("sent".to_owned(), 1)]).await;
    assert!(server.received()[0].message.starts_with("Subject: old\r\n"));
}

#[tokio::test]
async fn a_mail_that_ended_every_process_is_given_up() {
    let (database, clock, server) = (database().await, chassis_testing::clock(), SmtpServer::start().await);
    let mut service = chassis_testing::start::<Bare>(database.url(), &clock).await;
    queue(&service, &chassis_testing::account(), &sample()).await;
    let used_up = "update bare.mail set attempts = 10";
    sqlx::query(used_up).execute(&mut database.connect().await).await.unwrap();
    service = working(&database, &clock, &server).await;
    eventually("it is dead", async || states(&database).await == [("dead".to_owned(), 11)]).await;
    assert_eq!(dead_letters::list(&service.runtime.db).await.unwrap().len(), 1);
    assert!(server.received().is_empty());
}

#[tokio::test]
async fn what_a_sent_mail_said_is_forgotten_after_a_month() {
    let (database, clock, server) = (database().await, chassis_testing::clock(), SmtpServer::start().await);
    let mut service = working(&database, &clock, &server).await;
    let account = chassis_testing::account();
    queue(&service, &account, &sample()).await;
    eventually("it is sent", async || states(&database).await == [("sent".to_owned(), 1)]).await;
    service.stop_working().await;
    clock.advance(TimeDelta::days(29));
    let mut service = working(&database, &clock, &server).await;
    // The delivery of a later mail shows that the workers have run.
    queue(&service, &chassis_testing::account(), &sample()).await;
    eventually("the other is sent", async || server.received().len() == 2).await;
    service.stop_working().await;
    assert!(content_is_there(&database, &account).await);
    clock.advance(TimeDelta::days(2));
    let _service = working(&database, &clock, &server).await;
    eventually("the content is gone", async || !content_is_there(&database, &account).await).await;
    assert_eq!(outcome_of(&database, &account).await.status, Status::Sent);
}

async fn content_is_there(database: &TestDatabase, account: &Account) -> bool {
    sqlx::query_scalar("select content is not null from bare.mail where account_id = $1")
        .bind(account.id)
        .fetch_one(&mut database.connect().await)
        .await
        .unwrap()
}
