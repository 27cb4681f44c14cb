//! The scripts of pgbench must run what the services run: each statement is looked up in the source it was taken from.

use std::path::Path;

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap_or_else(|fault| panic!("{path}: {fault}"))
}

fn one_line(text: &str) -> String {
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

/// Puts `?` for each name that follows the mark: `$12` in our sources, `:account` in scripts.
fn placeholders(text: &str, mark: char) -> String {
    let mut out = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let named = letters.peek().is_some_and(char::is_ascii_alphanumeric);
        if letter == mark && named && !out.ends_with(mark) {
            while letters.next_if(|next| next.is_ascii_alphanumeric() || *next == '_').is_some() {}
            out.push('?');
        } else {
            out.push(letter);
        }
    }
    out
}

/// Source text with its string literals as they are run.
fn source(path: &str) -> String {
    placeholders(&one_line(&read(path).replace("\\\n", " ").replace('"', " ")), '$').replace("( ", "(")
}

/// The statements of a script, with `?` also for what pgbench cannot send as a value.
fn statements(script: &str) -> Vec<String> {
    let text = read(&format!("deploy/bench.d/{script}.sql"));
    let sql = text.lines().filter(|line| !line.starts_with("--") && !line.starts_with('\\'));
    let mut sql = one_line(&sql.collect::<Vec<_>>().join("\n"));
    for (made, sent) in [
        ("array[encode(int8send(:id_high) || int8send(:id_low), 'hex')]", "?"),
        ("array[encode(int8send(:id_high) || int8send(:event_low), 'hex')]", "?"),
        ("encode(int8send(:id_high) || int8send(:id_low), 'hex')::uuid", "?"),
        ("array[:slot, :slot, :slot, :slot]", "?"),
        ("now() - interval '24 hours'", "?"),
        ("now()", "?"),
        ("null::integer", "?"),
        (":number::text || :search_text", "?"),
        ("'', ", "?, "),
    ] {
        sql = sql.replace(made, sent);
    }
    let parts = sql.split(';').map(|part| placeholders(part.trim(), ':'));
    parts.filter(|part| !part.is_empty()).collect()
}

#[track_caller]
fn assert_part(source: &str, part: &str) {
    let part = part.replace("( ", "(");
    assert!(source.contains(&part), "no source has: {part}");
}

fn columns() -> String {
    let get = statements("get").remove(0);
    let (columns, _) = get.strip_prefix("select ").unwrap().split_once(" from ").unwrap();
    columns.to_owned()
}

#[test]
fn get_is_the_statement_of_the_service() {
    let store = source("svc-relations/src/relation/store.rs");
    let get = statements("get").remove(0);
    assert_part(&store, &columns());
    assert_part(&store, get.strip_prefix(&format!("select {} ", columns())).unwrap());
}

#[test]
fn lists_are_the_statements_of_the_list_builder() {
    let builder = source("chassis/src/list.rs");
    let page = "select page.*, counted.total from ({head}) counted left join lateral (select {columns}, true as found \
                from {table} where {conditions} order by {column} {direction}, id {direction} limit \
                {limit}{offset}) page on true";
    let counted = "select coalesce(sum(entries), 0)::bigint as total from total where account_id = {account} and \
                   list = {list} and bucket = {bucket}";
    let matching = "select count(*) as total from {table} where {conditions}";
    for template in [page, counted, matching] {
        assert_part(&builder, template);
    }
    let mine = "account_id = ? and role = ?";
    let found = format!("{mine} and search_text like ?");
    for (script, head, conditions) in [("list", counted, mine), ("search", matching, found.as_str())] {
        let mut expected = page.replace("{head}", head);
        for (name, value) in [
            ("columns", columns().as_str()),
            ("table", "relations.relation"),
            ("conditions", conditions),
            ("column", "created_at"),
            ("direction", "desc"),
        ] {
            expected = expected.replace(&format!("{{{name}}}"), value);
        }
        // The first page has no offset.
        expected = expected.replace("{offset}", "");
        for value in ["limit", "account", "list", "bucket"] {
            expected = expected.replace(&format!("{{{value}}}"), "?");
        }
        assert_eq!(statements(script), [expected]);
    }
}

#[test]
fn create_is_the_write_transaction_of_the_service() {
    let create = statements("create");
    assert_eq!(create.len(), 5, "begin, claim, insert, finish, commit");
    assert_part(&source("chassis/src/idempotency.rs"), &create[1]);
    assert_part(&source("chassis/src/write.rs"), &create[3]);
    let store = source("svc-relations/src/relation/store.rs");
    let (number, insert) =
        create[2].strip_prefix("with number as (").unwrap().split_once(") insert into ").unwrap();
    assert_part(&store, number);
    assert_part(&store, &format!(") insert into {insert}"));
}
