//! The log on real Postgres: positions without gaps whoever gives them, a chain that shows what was tampered with, and
//! reading in order.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use chassis_base::{Account, Clock};
use chassis_data::log::compact;
use chassis_data::{Db, Event};
use chassis_service::Service as _;
use chassis_testing::bare::{Bare, database, emit, open, write};
use chassis_testing::{Started, TestCaller, TestDatabase, undelivered};
use chrono::TimeDelta;
use futures::future::join_all;
use prost::Message as _;
use proto::api::MailKey;
use proto::log::log_service_client::LogServiceClient;
use proto::log::{
    Change, GetLogHeadRequest, LogEntry, LogHead, ReadLogRequest, ReadLogResponse, VerifyLogRequest,
    VerifyLogResponse,
};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

struct World {
    database: TestDatabase,
    clock: Clock,
    service: Started,
    account: Account,
}

impl World {
    async fn new() -> Self {
        let (database, clock) = (database().await, chassis_testing::clock());
        let service = chassis_testing::start::<Bare>(database.url(), &clock).await;
        Self { database, clock, service, account: chassis_testing::account() }
    }

    fn client(&self) -> LogServiceClient<tonic::transport::Channel> {
        LogServiceClient::new(self.service.channel())
    }

    fn caller(&self) -> TestCaller {
        TestCaller::mesh(&self.account, &self.clock)
    }

    async fn read(&self, wanted: ReadLogRequest) -> ReadLogResponse {
        self.client().read_log(self.caller().request(wanted)).await.unwrap().into_inner()
    }

    async fn all(&self) -> Vec<LogEntry> {
        self.read(ReadLogRequest { limit: 500, ..ReadLogRequest::default() }).await.entries
    }

    async fn head(&self) -> LogHead {
        let request = self.caller().request(GetLogHeadRequest {});
        self.client().get_log_head(request).await.unwrap().into_inner().head.unwrap()
    }

    async fn verify(&self) -> VerifyLogResponse {
        let request = self.caller().request(VerifyLogRequest::default());
        self.client().verify_log(request).await.unwrap().into_inner()
    }

    async fn run(&self, sql: &str) {
        let sql = AssertSqlSafe(sql.to_owned());
        sqlx::raw_sql(sql).execute(&mut self.database.connect().await).await.unwrap();
    }
}

/// Writes a record, or removes it. A counter stands for its row, which a transaction locks.
async fn put(db: &Db, account: &Account, (kind, id): (&str, usize), selector: Option<&str>) {
    write(db, account, async |tx| {
        let account = tx.account();
        chassis_data::numbering::next(tx.db(), account, &format!("{kind}/{id}")).await?;
        let key = |selector: &str| MailKey { selector: selector.to_owned(), ..MailKey::default() };
        match selector {
            Some(selector) => tx.changed(kind, id, &key(selector)),
            None => tx.removed(kind, id),
        }
        Ok(())
    })
    .await;
}

fn selector(entry: &LogEntry) -> String {
    MailKey::decode(entry.image.as_ref()).unwrap().selector
}

#[tokio::test(flavor = "multi_thread")]
async fn positions_have_no_gaps_and_versions_follow_each_other_when_many_write_at_once() {
    let world = World::new().await;
    // Two processes; each numbers what it has committed.
    let processes = [open(&world.database, &world.clock), open(&world.database, &world.clock)];
    let writers = (0..6).map(|writer| {
        let (db, account) = (processes[writer % 2].clone(), world.account.clone());
        async move {
            for number in 0..25 {
                // Each its own record, and one that all of them change.
                put(&db, &account, ("own", writer), Some(&number.to_string())).await;
                put(&db, &account, ("shared", 0), Some(&format!("{writer}/{number}"))).await;
            }
        }
    });
    join_all(writers).await;
    assert_eq!(undelivered(&world.database, "bare").await, 0);
    let entries = world.all().await;
    let positions: Vec<i64> = entries.iter().map(|entry| entry.position).collect();
    assert_eq!(positions, (1..=300).collect::<Vec<_>>());
    for id in 0..6 {
        let own = entries.iter().filter(|entry| entry.kind == "own" && entry.record_id == id.to_string());
        let own: Vec<_> = own.map(|entry| (entry.version, selector(entry))).collect();
        assert_eq!(own, (0..25).map(|number| (number + 1, number.to_string())).collect::<Vec<_>>());
    }
    let shared = entries.iter().filter(|entry| entry.kind == "shared");
    let shared: Vec<i64> = shared.map(|entry| entry.version).collect();
    assert_eq!(shared, (1..=150).collect::<Vec<_>>());
    let verified = world.verify().await;
    assert_eq!((verified.position, verified.fault), (300, None));
    assert_eq!((world.head().await.position, world.head().await.hash), (300, verified.hash));
}

#[tokio::test]
async fn changes_are_read_in_pages_and_by_kind() {
    let world = World::new().await;
    let db = open(&world.database, &world.clock);
    assert_eq!(world.read(ReadLogRequest::default()).await, ReadLogResponse::default());
    for (kind, state) in [("a", Some("1")), ("b", Some("1")), ("a", Some("2")), ("a", Some("2")), ("a", None)]
    {
        put(&db, &world.account, (kind, 7), state).await;
    }
    put(&db, &world.account, ("a", 7), Some("3")).await;
    let shown: Vec<_> =
        world.all().await.iter().map(|it| (it.kind.clone(), it.version, it.change())).collect();
    let expected = [
        ("a", 1, Change::Created),
        ("b", 1, Change::Created),
        ("a", 2, Change::Updated),
        ("a", 3, Change::Deleted),
        ("a", 4, Change::Created),
    ];
    assert_eq!(shown, expected.map(|(kind, version, change)| (kind.to_owned(), version, change)));
    let mut wanted = ReadLogRequest { kinds: vec!["a".to_owned()], limit: 2, ..ReadLogRequest::default() };
    let mut versions = Vec::new();
    loop {
        let page = world.read(wanted.clone()).await;
        versions.extend(page.entries.iter().map(|entry| entry.version));
        wanted.after = page.position;
        if !page.more {
            break;
        }
    }
    assert_eq!((versions, wanted.after), (vec![1, 2, 3, 4], 5));
    let beyond = world.caller().request(ReadLogRequest { after: 6, ..ReadLogRequest::default() });
    assert_eq!(world.client().read_log(beyond).await.unwrap_err().code(), tonic::Code::OutOfRange);
    let stranger = TestCaller::mesh(&chassis_testing::account(), &world.clock);
    let others = world.client().read_log(stranger.request(ReadLogRequest::default())).await.unwrap();
    assert!(others.into_inner().entries.is_empty());
}

#[tokio::test]
async fn a_page_of_long_records_ends_early() {
    let world = World::new().await;
    let db = open(&world.database, &world.clock);
    let long = "x".repeat(900 << 10);
    for id in 1..=5 {
        put(&db, &world.account, ("thing", id), Some(&long)).await;
    }
    let (mut after, mut pages) = (0, Vec::new());
    loop {
        let page = world.read(ReadLogRequest { after, ..ReadLogRequest::default() }).await;
        pages.push(page.entries.len());
        after = page.position;
        if !page.more {
            break;
        }
    }
    assert_eq!(pages, [2, 2, 1]);
}

#[tokio::test]
async fn what_was_forgotten_is_left_out_and_the_chain_stays_whole() {
    let world = World::new().await;
    let db = open(&world.database, &world.clock);
    for (id, state) in [(1, Some("old")), (1, Some("new")), (2, Some("gone")), (2, None)] {
        put(&db, &world.account, ("thing", id), state).await;
    }
    world.clock.advance(TimeDelta::days(31));
    let compacted = compact(world.database.url(), Bare::NAME, 30, world.clock.now()).await.unwrap();
    assert_eq!(compacted.forgotten, 2);
    let entries = world.all().await;
    assert_eq!(entries.iter().map(|entry| entry.position).collect::<Vec<_>>(), [2, 4]);
    assert_eq!((selector(&entries[0]).as_str(), entries[1].change()), ("new", Change::Deleted));
    assert_eq!((world.verify().await.position, world.verify().await.fault), (4, None));
}

/// Writes a record, or removes it, and tells an event of that.
async fn tell(db: &Db, account: &Account, entity_id: Uuid, version: i64, selector: Option<&str>) {
    write(db, account, async |tx| {
        match selector {
            Some(selector) => {
                let key = MailKey { selector: selector.to_owned(), ..MailKey::default() };
                tx.changed("thing", entity_id, &key);
            }
            None => tx.removed("thing", entity_id),
        }
        let data = "{}".to_owned();
        tx.emit(&Event { kind: "thing.changed", entity_type: "thing", entity_id, version, data });
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn states_that_a_service_wants_to_be_forgotten_are_left_out_at_once_and_removed_at_the_next_run() {
    let world = World::new().await;
    let db = open(&world.database, &world.clock);
    let [person, other, named] = [1, 2, 3].map(Uuid::from_u128);
    tell(&db, &world.account, person, 1, Some("told")).await;
    tell(&db, &world.account, other, 1, Some("other")).await;
    tell(&db, &world.account, named, 1, Some(&format!("names {person}"))).await;
    tell(&db, &world.account, named, 2, Some("names nobody")).await;
    write(&db, &world.account, async |tx| {
        tx.forget_history("thing", &[person.to_string()]).await?;
        tx.forget_mentions(person).await?;
        tx.changed("thing", person, &MailKey { selector: "empty".to_owned(), ..MailKey::default() });
        Ok(())
    })
    .await;
    let named_text = format!("names {person}");
    let shown = |entries: Vec<LogEntry>| entries.iter().map(selector).collect::<Vec<_>>();
    assert_eq!(shown(world.all().await), ["other", &named_text, "names nobody", "empty"]);
    let bytes = async |text: &str| {
        let sql = "select count(*) from bare.log where position(convert_to($1, 'UTF8') in image) > 0";
        let query = sqlx::query_scalar::<_, i64>(sql).bind(text);
        let count = query.fetch_one(&mut world.database.connect().await).await;
        count.unwrap()
    };
    assert_eq!((bytes("told").await, bytes(&named_text).await), (1, 1));
    // Whatever the days are: here everything would be kept.
    let compacted = compact(world.database.url(), Bare::NAME, 0, world.clock.now()).await.unwrap();
    assert_eq!(compacted.forgotten, 2);
    assert_eq!((bytes("told").await, bytes(&named_text).await, bytes("empty").await), (0, 0, 1));
    assert_eq!(shown(world.all().await), ["other", "names nobody", "empty"]);
    assert_eq!((world.verify().await.position, world.verify().await.fault), (5, None));
    let compacted = compact(world.database.url(), Bare::NAME, 0, world.clock.now()).await.unwrap();
    assert_eq!(compacted.forgotten, 0);
}

#[tokio::test]
async fn the_data_of_an_old_event_is_forgotten_whatever_its_entry_tells() {
    let world = World::new().await;
    let db = open(&world.database, &world.clock);
    let [kept, gone, young] = [1, 2, 3].map(Uuid::from_u128);
    tell(&db, &world.account, kept, 1, Some("kept")).await;
    tell(&db, &world.account, gone, 1, Some("gone")).await;
    tell(&db, &world.account, gone, 2, None).await;
    emit(&db, &world.account, kept, 2, "{}").await;
    world.clock.advance(TimeDelta::days(31));
    tell(&db, &world.account, young, 1, Some("young")).await;
    let compacted = compact(world.database.url(), Bare::NAME, 30, world.clock.now()).await.unwrap();
    assert_eq!(compacted.forgotten, 4);
    let sql = "select record_id, image is not null, data is not null from bare.log order by id";
    let entries: Vec<(String, bool, bool)> =
        sqlx::query_as(sql).fetch_all(&mut world.database.connect().await).await.unwrap();
    let expected = [(kept, true, false), (gone, false, false), (gone, false, false), (kept, false, false)];
    let expected = expected.into_iter().chain([(young, true, true)]);
    let expected: Vec<_> = expected.map(|(id, image, data)| (id.to_string(), image, data)).collect();
    assert_eq!(entries, expected, "record, has its image, has its data");
    assert_eq!(world.verify().await.fault, None);
}

#[tokio::test]
async fn tampering_is_found_where_it_is() {
    let id = "(select id from bare.feed where position = 3)";
    for (sql, position) in [
        (format!("update bare.log set actor = 'another' where id = {id}"), 3),
        (format!("update bare.log set version = 9 where id = {id}"), 3),
        (format!("update bare.log set at = at - interval '1 second' where id = {id}"), 3),
        (format!("update bare.log set image = '' where id = {id}"), 3),
        (format!("update bare.log set image = '', image_hash = sha256('') where id = {id}"), 3),
        (format!("delete from bare.log where id = {id}"), 3),
        ("delete from bare.feed where position = 3".to_owned(), 3),
        ("update bare.feed set hash = sha256(hash) where position = 3".to_owned(), 3),
        ("delete from bare.feed where position = 5".to_owned(), 5),
    ] {
        let world = World::new().await;
        let db = open(&world.database, &world.clock);
        for number in 1..=5 {
            put(&db, &world.account, ("thing", number), Some("state")).await;
        }
        assert_eq!(world.verify().await.fault, None);
        world.run(&sql).await;
        assert_eq!(world.verify().await.fault.map(|fault| fault.position), Some(position), "{sql}");
    }
}
