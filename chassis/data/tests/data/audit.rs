//! The audit log on real Postgres: entries are written with the change, read in pages, forgotten in time, and never left out.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use chassis_base::{Account, Clock, Error};
use chassis_data::log::{Compacted, compact};
use chassis_data::{Db, Tx};
use chassis_rpc::Call;
use chassis_service::Service as _;
use chassis_testing::bare::{Bare, context, database, open, write};
use chassis_testing::{Started, TestCaller};
use chrono::TimeDelta;
use prost::{Message as _, Name as _};
use proto::api::{MailKey, ProvisionAccountRequest, ProvisionAccountResponse};
use proto::audit::audit_service_client::AuditServiceClient;
use proto::audit::{AuditEntry, ListAuditRequest, ListAuditResponse};

async fn list(
    service: &Started,
    account: &Account,
    clock: &Clock,
    wanted: ListAuditRequest,
) -> ListAuditResponse {
    let request = TestCaller::mesh(account, clock).request(wanted);
    AuditServiceClient::new(service.channel()).list_audit(request).await.unwrap().into_inner()
}

async fn all(service: &Started, account: &Account, clock: &Clock) -> Vec<AuditEntry> {
    list(service, account, clock, ListAuditRequest::default()).await.entries
}

fn key(selector: &str) -> MailKey {
    MailKey { selector: selector.to_owned(), ..MailKey::default() }
}

/// Writes a record, or removes it.
async fn put(db: &Db, account: &Account, (kind, id): (&str, i32), selector: Option<&str>) {
    write(db, account, async |tx| {
        match selector {
            Some(selector) => tx.changed(kind, id, &key(selector)),
            None => tx.removed(kind, id),
        }
        Ok(())
    })
    .await;
}

fn ids(entries: &[AuditEntry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.entity_id.as_str()).collect()
}

#[tokio::test]
async fn an_entry_tells_who_did_what_to_which_record() {
    let (database, clock, account) = (database().await, chassis_testing::clock(), chassis_testing::account());
    let service = chassis_testing::start::<Bare>(database.url(), &clock).await;
    let db = open(&database, &clock);
    put(&db, &account, ("thing", 1), Some("old")).await;
    put(&db, &account, ("thing", 1), Some("new")).await;
    put(&db, &account, ("thing", 1), Some("new")).await;
    put(&db, &account, ("thing", 1), None).await;
    let entries = all(&service, &account, &clock).await;
    let of =
        |text: &str| serde_json::from_str::<serde_json::Value>(text).map(|json| json["selector"].clone());
    let images: Vec<_> = entries.iter().map(|it| (of(&it.before).ok(), of(&it.after).ok())).collect();
    let (old, new) = (Some("old".into()), Some("new".into()));
    assert_eq!(images, [(new.clone(), None), (old.clone(), new), (None, old)], "the newest first");
    let entry = &entries[0];
    assert_eq!(
        (entry.actor.as_str(), entry.request_id.as_str(), entry.method.as_str()),
        ("test", "test", "test")
    );
    assert_eq!(entry.at, Some(chassis_base::time::timestamp(clock.now())));
}

#[tokio::test]
async fn an_entry_is_kept_with_its_change_or_not_at_all() {
    let (database, clock, account) = (database().await, chassis_testing::clock(), chassis_testing::account());
    let service = chassis_testing::start::<Bare>(database.url(), &clock).await;
    let call = Call {
        context: context(&account, &clock),
        input: ProvisionAccountRequest::default(),
        faults: proto::Faults::default(),
    };
    let fails = async |tx: &mut Tx<'_>, _: &ProvisionAccountRequest| {
        tx.changed("thing", 1, &key("never"));
        Err::<ProvisionAccountResponse, _>(Error::Internal("because".into()))
    };
    service.runtime.db.write(call, fails).await.unwrap_err();
    assert!(all(&service, &account, &clock).await.is_empty());
}

/// Changes a record without an audit entry, and declares a reason if `why` is not empty.
async fn insert(tx: &mut Tx<'_>, why: &&'static str) -> Result<(), Error> {
    let account = tx.account();
    sqlx::query("insert into mail_key values ($1, 'a.example', 's', 'p', now())")
        .bind(account)
        .execute(tx.db())
        .await?;
    if !why.is_empty() {
        tx.unaudited(why);
    }
    Ok(())
}

#[tokio::test]
async fn a_change_of_a_record_that_nobody_tells_of_is_refused() {
    let (database, clock, account) = (database().await, chassis_testing::clock(), chassis_testing::account());
    let db = open(&database, &clock);
    let refused = db.record(&account, &"", insert).await.unwrap_err();
    assert!(matches!(&refused, Error::Internal(text) if text.contains("mail_key")), "{refused:?}");
    db.record(&account, &"for a reason", insert).await.unwrap();
    let count = async |tx: &mut Tx<'_>, (): &()| {
        let account = tx.account();
        chassis_data::numbering::next(tx.db(), account, "any").await
    };
    db.record(&account, &(), count).await.unwrap();
}

#[tokio::test]
async fn the_log_is_read_in_pages_and_by_record_actor_and_time() {
    let (database, clock, account) = (database().await, chassis_testing::clock(), chassis_testing::account());
    let service = chassis_testing::start::<Bare>(database.url(), &clock).await;
    let db = open(&database, &clock);
    let start = clock.now();
    for number in 0..5 {
        let kind = if number < 3 { "thing" } else { "other" };
        put(&db, &account, (kind, number), Some("new")).await;
        clock.advance(TimeDelta::seconds(1));
    }
    let mut wanted = ListAuditRequest { page_size: 2, ..ListAuditRequest::default() };
    let mut seen = Vec::new();
    loop {
        let page = list(&service, &account, &clock, wanted.clone()).await;
        seen.extend(page.entries);
        if page.next_page_token.is_empty() {
            break;
        }
        wanted.page_token = page.next_page_token;
    }
    assert_eq!(ids(&seen), ["4", "3", "2", "1", "0"]);
    let by = async |wanted: ListAuditRequest| list(&service, &account, &clock, wanted).await.entries;
    let none = ListAuditRequest::default;
    assert_eq!(ids(&by(ListAuditRequest { entity_type: "other".into(), ..none() }).await), ["4", "3"]);
    assert_eq!(ids(&by(ListAuditRequest { entity_id: "1".into(), ..none() }).await), ["1"]);
    assert!(by(ListAuditRequest { actor: "nobody".into(), ..none() }).await.is_empty());
    let second = |seconds| Some(chassis_base::time::timestamp(start + TimeDelta::seconds(seconds)));
    assert_eq!(ids(&by(ListAuditRequest { from: second(1), to: second(3), ..none() }).await), ["2", "1"]);
    let odd =
        TestCaller::mesh(&account, &clock).request(ListAuditRequest { page_token: "x".into(), ..none() });
    let refused = AuditServiceClient::new(service.channel()).list_audit(odd).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    assert!(all(&service, &chassis_testing::account(), &clock).await.is_empty(), "of another account");
}

#[tokio::test]
async fn old_entries_are_forgotten_but_for_what_records_are_now() {
    let (database, clock, account) = (database().await, chassis_testing::clock(), chassis_testing::account());
    let service = chassis_testing::start::<Bare>(database.url(), &clock).await;
    let db = open(&database, &clock);
    for account in [&account, &chassis_testing::account()] {
        for selector in ["first", "second"] {
            put(&db, account, ("kept", 1), Some(selector)).await;
            put(&db, account, ("gone", 2), Some(selector)).await;
        }
        put(&db, account, ("gone", 2), None).await;
    }
    clock.advance(TimeDelta::days(31));
    let forgotten =
        async |days| compact(database.url(), Bare::NAME, days, clock.now()).await.unwrap().forgotten;
    assert_eq!(
        (forgotten(0).await, forgotten(32).await),
        (0, 0),
        "kept for ever, and for longer than it is there"
    );
    assert_eq!(
        (forgotten(30).await, forgotten(30).await),
        (2 * 3, 0),
        "of two accounts all but the latest image"
    );
    let images: Vec<String> = sqlx::query_scalar("select kind from bare.log where image is not null")
        .fetch_all(&mut database.connect().await)
        .await
        .unwrap();
    assert_eq!(images, ["kept", "kept"], "what was deleted is in no image");
    put(&db, &account, ("kept", 1), Some("third")).await;
    let entries = all(&service, &account, &clock).await;
    assert!(entries[0].before.contains("second") && entries[0].after.contains("third"));
}

#[tokio::test]
async fn entries_of_the_release_before_are_read_and_moved() {
    let (database, clock, account) = (database().await, chassis_testing::clock(), chassis_testing::account());
    let service = chassis_testing::start::<Bare>(database.url(), &clock).await;
    let db = open(&database, &clock);
    for selector in ["first", "second", "second"] {
        sqlx::query(
            "insert into bare.audit (account_id, id, at, actor, request_id, method, entity_type, entity_id, message, image)
             values ($1, $2, $3, 'a', 'r', 'm', 'thing', '1', $4, $5)",
        )
        .bind(account.id)
        .bind(clock.id())
        .bind(clock.now())
        .bind(MailKey::full_name())
        .bind(key(selector).encode_to_vec())
        .execute(&mut database.connect().await)
        .await
        .unwrap();
    }
    put(&db, &account, ("thing", 1), Some("third")).await;
    let selectors = async || {
        let of = |text: String| {
            text.split('"').find(|part| ["first", "second", "third"].contains(part)).map(String::from)
        };
        let entries = all(&service, &account, &clock).await;
        entries.into_iter().map(|it| (of(it.before), of(it.after))).collect::<Vec<_>>()
    };
    let change = |before: Option<&str>, after: &str| (before.map(String::from), Some(String::from(after)));
    let expected = [change(Some("second"), "third"), change(Some("first"), "second"), change(None, "first")];
    assert_eq!(selectors().await, expected);
    let compacted = async || compact(database.url(), Bare::NAME, 30, clock.now()).await.unwrap();
    assert_eq!(compacted().await, Compacted::default(), "programs of the release before may still write");
    clock.advance(TimeDelta::days(2));
    assert_eq!(compacted().await, Compacted { forgotten: 0, moved: 3 });
    assert_eq!(selectors().await, expected);
    put(&db, &account, ("thing", 1), None).await;
    assert_eq!(selectors().await.len(), 4);
    clock.advance(TimeDelta::days(31));
    assert_eq!(compacted().await, Compacted { forgotten: 4, moved: 0 });
}
