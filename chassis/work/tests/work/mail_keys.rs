//! Keys of domains, the sender of mail, and signatures checked by an independent verifier.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use chassis_base::Environment;
use chassis_testing::bare::{Bare, database, write};
use chassis_testing::{SmtpServer, Started, TestCaller, eventually, python_tool};
use chassis_work::mail::{Mail, Sender, mailbox, queue};
use proto::api::mail_key_service_client::MailKeyServiceClient;
use proto::api::{DeleteMailKeyRequest, ListMailKeysRequest, MailKey, PutMailKeyRequest};
use tonic::transport::Channel;
use tonic::{Code, Status};

/// An Ed25519 key, which needs no external tool.
fn ed25519() -> String {
    rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap().serialize_pem()
}

fn keys(service: &Started) -> MailKeyServiceClient<Channel> {
    MailKeyServiceClient::new(service.channel())
}

async fn put(
    service: &Started,
    caller: &TestCaller,
    domain: &str,
    private_key: &str,
) -> Result<MailKey, Status> {
    let (domain, private_key) = (domain.to_owned(), private_key.to_owned());
    let request = PutMailKeyRequest { domain, selector: "Mail2026".into(), private_key };
    Ok(keys(service).put_mail_key(caller.request(request)).await?.into_inner().key.unwrap())
}

async fn list(service: &Started, caller: &TestCaller) -> Vec<MailKey> {
    keys(service).list_mail_keys(caller.request(ListMailKeysRequest {})).await.unwrap().into_inner().keys
}

#[tokio::test]
async fn keys_are_put_replaced_listed_and_deleted_by_domain_and_account() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let service = chassis_testing::start::<Bare>(database.url(), &clock).await;
    let account = chassis_testing::account();
    let (caller, other) =
        (TestCaller::mesh(&account, &clock), TestCaller::mesh(&chassis_testing::account(), &clock));
    let first = put(&service, &caller, "Bakery.Example", &ed25519()).await.unwrap();
    assert_eq!(first.record_name, "mail2026._domainkey.bakery.example");
    assert!(first.record_value.starts_with("v=DKIM1; k=ed25519; p="), "{first:?}");
    let second = put(&service, &caller, "bakery.example", &ed25519()).await.unwrap();
    assert_ne!(first.record_value, second.record_value);
    put(&service, &caller, "another.example", &ed25519()).await.unwrap();
    let listed = list(&service, &caller).await;
    assert_eq!(listed.len(), 2);
    assert_eq!(listed[1], second);
    assert!(!format!("{listed:?}").contains("PRIVATE"));
    assert_eq!(list(&service, &other).await, []);
    for _ in 0..2 {
        for caller in [&other, &caller] {
            let request = DeleteMailKeyRequest { domain: "BAKERY.example".into() };
            keys(&service).delete_mail_key(caller.request(request)).await.unwrap();
        }
    }
    assert_eq!(list(&service, &caller).await.len(), 1);
}

#[tokio::test]
async fn what_is_no_key_or_no_domain_is_refused() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let service = chassis_testing::start::<Bare>(database.url(), &clock).await;
    let caller = TestCaller::mesh(&chassis_testing::account(), &clock);
    let good = ed25519();
    let broken = good.replacen("\nM", "\nN", 1);
    let elliptic = rcgen::KeyPair::generate().unwrap().serialize_pem();
    let public = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap().public_key_pem();
    for (domain, key) in [
        ("bakery", good.as_str()),
        ("bakery..example", &good),
        ("-bakery.example", &good),
        ("bäckerei.example", &good),
        ("bakery.example; d=bank.example", &good),
        ("bakery.example", "not a key"),
        ("bakery.example", &broken),
        ("bakery.example", &elliptic),
        ("bakery.example", &public),
        ("bakery.example", ""),
    ] {
        let refused = put(&service, &caller, domain, key).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{domain} {key}: {refused:?}");
        assert!(!format!("{refused:?}").contains("PRIVATE"));
    }
    assert_eq!(list(&service, &caller).await, []);
}

#[tokio::test]
async fn keys_are_for_the_mesh_only() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let service = chassis_testing::start::<Bare>(database.url(), &clock).await;
    let mut caller = TestCaller::mesh(&chassis_testing::account(), &clock);
    caller.scopes = vec!["settings".to_owned()];
    let refused = put(&service, &caller, "bakery.example", &ed25519()).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
}

#[tokio::test]
async fn only_a_domain_with_a_key_is_sent_from() {
    let (database, clock) = (database().await, chassis_testing::clock());
    let flags = ["--mail-from", "post@admin.example"];
    let service = chassis_testing::start_with::<Bare>(database.url(), &clock, &flags).await;
    let (account, other) = (chassis_testing::account(), chassis_testing::account());
    put(&service, &TestCaller::mesh(&account, &clock), "bakery.example", &ed25519()).await.unwrap();
    let mut connection = service.runtime.db.acquire().await.unwrap();
    let mailer = &service.runtime.mailer;
    let own = mailer.sender(&mut connection, account.id, "Bakery", "info@Bakery.example").await.unwrap();
    assert_eq!(own, Sender { from: mailbox("Bakery", "info@Bakery.example").unwrap(), reply_to: None });
    for (account, wanted, reply_to) in [
        (&other, "info@bakery.example", Some("info@bakery.example")),
        (&account, "info@sub.bakery.example", Some("info@sub.bakery.example")),
        (&account, "info@bank.example", Some("info@bank.example")),
        (&account, "no address", None),
        (&account, "", None),
    ] {
        let sender = mailer.sender(&mut connection, account.id, "Bakery\r\n", wanted).await.unwrap();
        assert_eq!(sender.from, mailbox("Bakery", "post@admin.example").unwrap());
        assert_eq!(sender.reply_to, reply_to.map(|reply_to| mailbox("Bakery", reply_to).unwrap()));
    }
    let wrong = chassis_testing::service_settings(&["--mail-from", "nobody"]);
    assert!(
        chassis_work::mail::Mailer::new(&wrong.mail, Environment::Development)
            .err()
            .unwrap()
            .contains("MAIL_FROM")
    );
}

/// Verifies with dkimpy, which gets the record from an argument instead of the DNS.
fn verifies(python: &Path, message: &str, key: &MailKey) -> bool {
    let script = "
import dkim, sys
name, value = sys.argv[1].encode() + b'.', sys.argv[2].encode()
def look_up(wanted, timeout=5): return value if wanted == name else None
print(dkim.verify(sys.stdin.buffer.read(), dnsfunc=look_up))
";
    let mut process = Command::new(python)
        .args(["-c", script, &key.record_name, &key.record_value])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    process.stdin.take().unwrap().write_all(message.as_bytes()).unwrap();
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim() == "True"
}

/// Generates an RSA key in the given form, so that the repository contains no key.
fn rsa(python: &Path, form: &str) -> String {
    let script = "
import sys
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
key = rsa.generate_private_key(65537, int(sys.argv[2]))
form = getattr(PrivateFormat, sys.argv[1])
print(key.private_bytes(Encoding.PEM, form, NoEncryption()).decode())
";
    let (form, bits) = form.split_once(' ').unwrap();
    let output = Command::new(python).args(["-c", script, form, bits]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn mail(body: &str) -> Mail {
    let from = mailbox("Bäckerei", "info@Bakery.example").unwrap();
    // Headers of many lines.
    let to = (0..30).map(|number| mailbox("Ännchen Müller", &format!("ann{number}@client.example")).unwrap());
    Mail {
        text: Some(body.to_owned()),
        html: Some(format!("<p>{body}</p>  \n\n")),
        ..Mail::new(from, to.collect(), format!("{}  Grüße", "a long subject ".repeat(20)))
    }
}

#[tokio::test]
async fn a_verifier_accepts_the_signature_of_a_delivered_mail() {
    let test = "a_verifier_accepts_the_signature_of_a_delivered_mail";
    if python_tool(test, "dkimverify").is_none() {
        return;
    }
    let Some(python) = python_tool(test, "python") else { return };
    let (database, clock, server) = (database().await, chassis_testing::clock(), SmtpServer::start().await);
    let flags = ["--smtp-url", &server.url()];
    let service = chassis_testing::start_working::<Bare>(database.url(), &clock, &flags).await;
    let account = chassis_testing::account();
    let caller = TestCaller::mesh(&account, &clock);
    assert!(
        put(&service, &caller, "bakery.example", &rsa(&python, "TraditionalOpenSSL 1024")).await.is_err()
    );
    let one_part = Mail { html: None, ..mail("Hello  \t world\n\n.\n\n\n") };
    let blank = Mail { html: None, ..mail("") };
    let mails = [mail("Hello"), one_part, blank, mail("Süß\r\n \r\n")];
    for private_key in [rsa(&python, "TraditionalOpenSSL 2048"), rsa(&python, "PKCS8 3072"), ed25519()] {
        let key = put(&service, &caller, "bakery.example", &private_key).await.unwrap();
        for mail in &mails {
            let before = server.received().len();
            write(&service.runtime.db, &account, async |tx| queue(tx, mail).await.map(|_| ())).await;
            eventually("it is sent", async || server.received().len() > before).await;
            let message = &server.received()[before].message;
            assert!(verifies(&python, message, &key), "{}\n{message}", key.record_value);
        }
        let message = &server.received()[server.received().len() - 1].message;
        assert!(!verifies(&python, &format!("{message}more\r\n"), &key));
        for (was, is) in
            [("Subject: ", "Subject: x"), ("Content-Type: ", "Content-Type: x"), ("ann7@", "bob@")]
        {
            assert!(message.contains(was));
            assert!(!verifies(&python, &message.replacen(was, is, 1), &key), "{was}");
        }
    }
    // Another account's mail from that domain is not signed.
    let before = server.received().len();
    let stranger = chassis_testing::account();
    write(&service.runtime.db, &stranger, async |tx| queue(tx, &mails[0]).await.map(|_| ())).await;
    eventually("it is sent", async || server.received().len() > before).await;
    assert!(!server.received()[before].message.contains("DKIM-Signature"));
}
