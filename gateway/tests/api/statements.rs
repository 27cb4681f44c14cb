//! The SQL in the sources: none of it asks for what a distributed Postgres refuses.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

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

/// Statements that may have it all the same, and why.
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
        "chassis/work/src/worker/due.rs",
        "with recursive",
        "where it is refused, a plainer form takes its place",
    ),
    ("svc-billing/src/document/scans.rs", "with recursive", "of one account, so of one node"),
];

/// Where accounts may be compared with each other, and why.
const COMPARING: &[(&str, &str)] = &[
    ("chassis/work/src/worker/due.rs", "looks at all accounts"),
    ("gateway/src/keys/store.rs", "keys are on every node"),
];

/// The checkout.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn kind(path: &Path) -> &str {
    path.extension().and_then(|extension| extension.to_str()).unwrap_or_default()
}

/// Every source of the product, without what tests only.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let tests =
            ["testing", "tests", "target", "examples"].contains(&name.as_str()) || name.ends_with("tests.rs");
        if path.is_dir() && !tests && !name.starts_with('.') {
            sources(&path, found);
        } else if !tests && ["rs", "sql"].contains(&kind(&path)) {
            found.push(path);
        }
    }
}

/// The texts in quotation marks of a Rust file up to its tests: comments are skipped, raw texts and escapes are known.
fn quoted(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let (bytes, mut at, mut found) = (source.as_bytes(), 0, Vec::new());
    let rest = |at: usize| source.get(at..).unwrap_or_default();
    while at < bytes.len() {
        let raw = rest(at).strip_prefix('r').map(|text| text.len() - text.trim_start_matches('#').len());
        let word = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
        if rest(at).starts_with("//") {
            at += rest(at).find('\n').unwrap_or(rest(at).len());
        } else if let Some(marks) = raw.filter(|marks| !word && rest(at + 1 + marks).starts_with('"')) {
            let begin = at + 2 + marks;
            let end =
                rest(begin).find(&format!("\"{}", "#".repeat(marks))).map_or(bytes.len(), |end| begin + end);
            found.push(source[begin..end].to_owned());
            at = end + 1 + marks;
        } else if bytes[at] == b'"' {
            let begin = at + 1;
            at = begin;
            while at < bytes.len() && bytes[at] != b'"' {
                at += if bytes[at] == b'\\' { 2 } else { 1 };
            }
            found.push(source.get(begin..at).unwrap_or_default().to_owned());
            at += 1;
        } else if rest(at).starts_with("'\"'") || rest(at).starts_with("'\\\"'") {
            // A quotation mark as a character begins no text.
            at += if bytes[at + 1] == b'\\' { 4 } else { 3 };
        } else {
            at += 1;
        }
    }
    found
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

/// One blank between words, lower case; comments of SQL are gone.
fn plain(sql: &str) -> String {
    let lines = sql.lines().map(|line| line.split("--").next().unwrap_or_default());
    lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ").to_lowercase()
}

#[test]
fn no_statement_asks_for_what_a_distributed_database_refuses() {
    let (root, mut files) = (root(), Vec::new());
    for part in [
        "chassis",
        "gateway",
        "svc-relations",
        "svc-billing",
        "svc-crm",
        "svc-support",
        "svc-work",
        "svc-automation",
    ] {
        sources(&root.join(part), &mut files);
    }
    let (mut statements, mut used, mut comparing, mut wrong) =
        (0, BTreeSet::new(), BTreeSet::new(), Vec::new());
    for path in files {
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        let source = std::fs::read_to_string(&path).unwrap();
        let migration = kind(&path) == "sql";
        let texts = if migration { vec![source] } else { quoted(&source) };
        for sql in texts.iter().filter(|text| migration || is_sql(text)).map(|text| plain(text)) {
            statements += 1;
            if !migration && compares_accounts(&sql) {
                match COMPARING.iter().position(|(file, _)| *file == name) {
                    Some(index) => {
                        comparing.insert(index);
                    }
                    None => wrong.push(format!("{name}: an account that is not compared with $1 in: {sql}")),
                }
            }
            for (word, why) in FORBIDDEN.iter().filter(|(word, _)| sql.contains(word)) {
                match ALLOWED.iter().position(|(file, allowed, _)| *file == name && allowed == word) {
                    Some(index) => {
                        used.insert(index);
                    }
                    None => wrong.push(format!("{name}: `{word}` ({why}) in: {sql}")),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(statements > 200, "the sources were read: {statements} statements");
    assert_eq!(used.len(), ALLOWED.len(), "an exception that nothing needs any more");
    assert_eq!(comparing.len(), COMPARING.len(), "an exception that nothing needs any more");
}

#[test]
fn a_text_is_read_as_it_stands_in_the_source() {
    let source =
        "let a = \"select now()\"; // \"no\"\nlet b = r#\"a \"b\" c\"#; let c = '\"'; let d = \"x \\\" y\";";
    assert_eq!(quoted(source), ["select now()", "a \"b\" c", "x \\\" y"]);
    assert_eq!(plain("Select  1 -- why\n from x"), "select 1 from x");
    assert!(compares_accounts(
        "select 1 from a where exists (select from b where b.account_id = a.account_id)"
    ));
    assert!(!compares_accounts(
        "select 1 from a join b on b.account_id = a.account_id where a.account_id = $1"
    ));
    assert!(is_sql(" select 1") && is_sql("x from y") && !is_sql("Repeat the request in a moment."));
}
