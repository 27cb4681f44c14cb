//! No statement asks for what a distributed Postgres refuses. All texts in the sources are read, for a part of a dynamic
//! statement or a condition of a list counts as well, and all migrations.

use std::collections::BTreeSet;

use crate::sources::{Source, migrations, sources};

/// What a distributed Postgres refuses, or what would answer differently on another node.
const FORBIDDEN: &[(&str, &str)] = &[
    ("now()", "times are made in Rust"),
    ("current_timestamp", "times are made in Rust"),
    ("current_date", "days are the account's, made in Rust"),
    ("clock_timestamp", "times are made in Rust"),
    ("statement_timestamp", "times are made in Rust"),
    ("localtimestamp", "times are made in Rust"),
    ("random()", "a volatile function"),
    ("gen_random_uuid", "ids are made in Rust"),
    ("uuid_generate", "ids are made in Rust"),
    ("nextval", "no sequences"),
    ("bigserial", "no sequences"),
    (" serial", "no sequences"),
    ("generated always", "no sequences"),
    ("with recursive", "not over several nodes"),
    ("savepoint", "a failed statement ends its transaction"),
    ("skip locked", "not across shards; work is divided by leases"),
    ("create temp", "no temporary tables"),
    ("create function", "decisions are made in Rust"),
    ("create trigger", "decisions are made in Rust"),
    ("plpgsql", "decisions are made in Rust"),
    ("pg_advisory", "a lock on one node only"),
    ("lock table", "across all accounts"),
    ("returning (select", "refused; a second statement"),
    ("select row(", "nodes hand on no records; an array for each column"),
    ("set hits = array(select", "refused where a row is changed; an expression on the row"),
    ("from (select from", "refused; `select 1`"),
    ("full join", "refused; two queries, or a union that is grouped"),
];

/// Where accounts are compared with each other.
const COMPARISON: &str = "account_id = account_id";

/// The files that may have it all the same: what, and why.
const ALLOWED: &[(&str, &str, &str)] = &[
    (
        "chassis/service/src/doctor/database.rs",
        "clock_timestamp",
        "asks for nothing but the time of the server",
    ),
    ("chassis/data/src/pool/session.rs", "now()", "compares the times of the server with each other"),
    (
        "chassis/data/src/pool/session.rs",
        "statement_timestamp",
        "compares the times of the server with each other",
    ),
    (
        "chassis/data/src/preparation/step.rs",
        "now()",
        "compares a time of the server with another, of a table that is on one node",
    ),
    (
        "chassis/work/src/worker/due.rs",
        "with recursive",
        "where it is refused, a plainer form takes its place",
    ),
    ("chassis/work/src/worker/lease.rs", "skip locked", "leases are on one node"),
    ("svc-billing/src/document/scans.rs", "with recursive", "of one account, so of one node"),
    ("chassis/work/src/worker/due.rs", COMPARISON, "looks at all accounts"),
    ("chassis/work/src/snapshot.rs", COMPARISON, "looks at all accounts"),
    ("gateway/src/keys/store.rs", COMPARISON, "keys are on every node"),
];

/// A part of a file that is SQL, in the form that [`plain`] gives it.
struct Part {
    path: String,
    sql: String,
}

fn parts_of_sources() -> Vec<Part> {
    let parts = |source: Source| {
        let texts = source.texts().into_iter().filter(|text| is_sql(text));
        texts.map(move |text| Part { path: source.path.clone(), sql: plain(&text) }).collect::<Vec<_>>()
    };
    sources().into_iter().flat_map(parts).collect()
}

fn parts_of_migrations() -> Vec<Part> {
    migrations().into_iter().map(|(path, text)| Part { path, sql: plain(&text) }).collect()
}

fn is_sql(text: &str) -> bool {
    let text = text.trim_start().to_lowercase();
    let verbs = [
        "select ", "insert ", "update ", "delete ", "with ", "create ", "alter ", "lock ", "set ", "and ",
        "or ",
    ];
    verbs.iter().any(|verb| text.starts_with(verb))
        || [" from ", " where ", " values ", " returning "].iter().any(|word| text.contains(word))
}

/// One blank between words, lower case; comments of SQL are gone.
fn plain(sql: &str) -> String {
    let lines = sql.lines().map(|line| line.split("--").next().unwrap_or_default());
    lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Whether a condition compares the accounts of two tables with each other. In a join that is right; elsewhere it keeps a
/// distributed database from seeing that the statement is about one account, and every node is asked.
fn compares_accounts(sql: &str) -> bool {
    let mut rest = sql;
    while let Some(at) = rest.find(".account_id = ") {
        let (before, after) = (&rest[..at], &rest[at + ".account_id = ".len()..]);
        let value: String = after.chars().take_while(|c| !c.is_whitespace() && *c != ')').collect();
        let joined = before.rfind(" on ") > before.rfind(" where ");
        if value.ends_with(".account_id") && !joined {
            return true;
        }
        rest = after;
    }
    false
}

#[test]
fn no_statement_asks_for_what_a_distributed_database_refuses() {
    let (sources, migrations) = (parts_of_sources(), parts_of_migrations());
    assert!(sources.len() > 400, "the sources were read: {} parts", sources.len());
    assert!(migrations.len() > 30, "the migrations were read: {}", migrations.len());

    let mut seen: Vec<(&Part, &str, &str)> = Vec::new();
    for part in sources.iter().chain(&migrations) {
        let phrases = FORBIDDEN.iter().filter(|(phrase, _)| part.sql.contains(phrase));
        seen.extend(phrases.map(|(phrase, why)| (part, *phrase, *why)));
    }
    // A migration is about all accounts.
    let comparing = sources.iter().filter(|part| compares_accounts(&part.sql));
    seen.extend(comparing.map(|part| (part, COMPARISON, "the account is $1")));

    let (mut used, mut wrong) = (BTreeSet::new(), Vec::new());
    for (Part { path, sql }, phrase, why) in seen {
        match ALLOWED.iter().position(|(file, allowed, _)| file == path && *allowed == phrase) {
            Some(exception) => {
                used.insert(exception);
            }
            None => wrong.push(format!("{path}: `{phrase}` ({why}) in: {sql}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(used.len(), ALLOWED.len(), "an exception that nothing needs any more");
}

#[test]
fn sql_is_told_from_other_texts() {
    for text in [" select 1", "x from y", "and a.name = $2"] {
        assert!(is_sql(text), "{text}");
    }
    assert!(!is_sql("Repeat the request in a moment."));
    assert_eq!(plain("Select  1 -- why\n from x"), "select 1 from x");
}

#[test]
fn accounts_are_compared_with_each_other_only_in_a_join() {
    assert!(compares_accounts(
        "select 1 from a where exists (select from b where b.account_id = a.account_id)"
    ));
    assert!(!compares_accounts(
        "select 1 from a join b on b.account_id = a.account_id where a.account_id = $1"
    ));
}
