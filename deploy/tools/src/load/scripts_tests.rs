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
    // `\gset` ends a statement and keeps what it gives.
    let mut sql = one_line(&sql.collect::<Vec<_>>().join("\n")).replace(" \\gset", ";");
    for (made, sent) in [
        ("array[encode(int8send(:id_high) || int8send(:id_low), 'hex')]", "?"),
        ("array[encode(int8send(:id_high) || int8send(:event_low), 'hex')]", "?"),
        ("encode(int8send(:id_high) || int8send(:id_low), 'hex')::uuid", "?"),
        ("encode(int8send(:message_high) || int8send(:message_low), 'hex')::uuid", "?"),
        ("int8send(:id_low) || int8send(:event_low)", "?"),
        ("array[:slot, :slot, :slot, :slot]", "?"),
        ("array[:slot, :slot]", "?"),
        ("array[:sequence]", "?"),
        ("array[:response]", "?"),
        ("(:phases::uuid[])[:which]", "?"),
        ("(:bucket::date + 1)::timestamp at time zone 'UTC'", "?"),
        ("now() - interval '24 hours'", "?"),
        ("now()", "?"),
        ("(:turn = 1)", "?"),
        ("lower(:title)", "?"),
        ("lower(:number || chr(10) || :subject || chr(10) || :client_name || chr(10))", "?"),
        ("null::bytea", "?"),
        ("null::bigint", "?"),
        ("null::text", "?"),
        ("null::integer", "?"),
        ("null::timestamptz", "?"),
        ("null::jsonb", "?"),
        ("null::uuid", "?"),
        ("null::date", "?"),
        ("false::boolean", "?"),
        ("3::integer", "?"),
        ("1::bigint", "?"),
        ("''::text", "?"),
        (":number::text || :search_text", "?"),
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

/// What a statement selects first: `select COLUMNS from …`.
fn columns(statement: &str) -> &str {
    statement.strip_prefix("select ").and_then(|rest| rest.split_once(" from ")).unwrap().0
}

#[test]
fn get_is_the_statement_of_the_service() {
    let store = source("svc-relations/src/relation/store.rs");
    let get = statements("get").remove(0);
    assert_part(&store, columns(&get));
    assert_part(&store, get.strip_prefix(&format!("select {} ", columns(&get))).unwrap());
}

/// The parts of a statement that the source puts together with macros, in their order.
#[track_caller]
fn assert_invoice(statement: &str) {
    let (named, read) =
        (source("svc-billing/src/document/store/mod.rs"), source("svc-billing/src/document/store/read.rs"));
    let (columns, rest) = statement.strip_prefix("select ").unwrap().split_once(", rows.*").unwrap();
    assert_part(&named, columns);
    let (credits, rest) = rest.split_once("from (select ").unwrap();
    assert_part(&read, &format!(", rows.*{credits}from (select "));
    let (row_columns, rest) = rest.split_once(" from billing.document_row").unwrap();
    assert_part(&read, row_columns);
    let (history, condition) = rest.split_once(" d.id = ").unwrap();
    assert_part(&read, &format!(" from billing.document_row{history}"));
    assert_part(&read, &format!("d.id = {condition}"));
}

#[test]
fn an_invoice_is_read_by_the_statement_of_the_service() {
    let get = statements("invoice-get");
    assert_eq!(get.len(), 1);
    assert_invoice(&get[0]);
}

const PAGE: &str = "select page.*, counted.total from ({head}) counted left join lateral (select {columns}, true as found \
                    from {table} where {conditions}{start} order by {column} {direction}, id {direction} limit \
                    {limit}{offset}) page on true";
const START: &str = " and ({column}, id) <= (select {column}, id from {table} where {conditions} order by {column} desc, \
                     id desc limit 1 offset {offset})";
const COUNTED: &str = "select coalesce(sum(entries), 0)::bigint as total from total where account_id = {account} and \
                       list = {list} and bucket = {bucket}";
const MATCHING: &str = "select count(*) as total from {table} where {conditions}";

/// The page of the default order that the list builder makes; `start` is where it begins when that is not the top.
fn page(head: &str, columns: &str, table: &str, conditions: &str, start: &str) -> String {
    let builder = source("chassis/src/list.rs");
    for template in [PAGE, START, COUNTED, MATCHING] {
        assert_part(&builder, template.trim_start());
    }
    let whole = PAGE.replace("{limit}{offset}", "{limit}");
    let mut expected = whole.replace("{start}", start).replace("{head}", head);
    for (name, value) in [
        ("columns", columns),
        ("table", table),
        ("conditions", conditions),
        ("column", "created_at"),
        ("direction", "desc"),
    ] {
        expected = expected.replace(&format!("{{{name}}}"), value);
    }
    for value in ["limit", "offset", "account", "list", "bucket"] {
        expected = expected.replace(&format!("{{{value}}}"), "?");
    }
    expected
}

#[test]
fn lists_of_clients_are_the_statements_of_the_list_builder() {
    let get = statements("get").remove(0);
    let mine = "account_id = ? and role = ?";
    let found = format!("{mine} and search_text like ?");
    for (script, head, conditions) in [("list", COUNTED, mine), ("search", MATCHING, found.as_str())] {
        let expected = page(head, columns(&get), "relations.relation", conditions, "");
        assert_eq!(statements(script), [expected]);
    }
}

/// The columns of a list of invoices.
fn listed() -> String {
    let list = source("svc-billing/src/document/store/list.rs");
    let (_, columns) = list.split_once("const COLUMNS: &str = ").unwrap();
    columns.split_once(" ;").unwrap().0.trim().to_owned()
}

#[test]
fn lists_of_invoices_are_the_statements_of_the_list_builder() {
    let mine = "account_id = ? and kind = ?";
    let open = format!("{mine} and payment_status = ?");
    let found = format!("{mine} and search_text like ?");
    for (script, head, conditions) in [
        ("invoice-list", COUNTED, mine),
        ("invoice-counted", MATCHING, mine),
        ("invoice-open", MATCHING, open.as_str()),
        ("invoice-search", MATCHING, found.as_str()),
    ] {
        assert_eq!(statements(script), [page(head, &listed(), "billing.document", conditions, "")]);
    }
}

#[test]
fn a_deep_page_of_invoices_is_looked_up_and_read_as_the_list_builder_does() {
    let deep = statements("invoice-page");
    assert_eq!(deep.len(), 2, "the day, then the page");
    assert_part(&source("chassis/src/totals.rs"), &deep[0]);
    let conditions = "account_id = ? and kind = ? and created_at < ?";
    assert_eq!(deep[1], page(COUNTED, &listed(), "billing.document", conditions, START));
}

/// The columns of a deal.
fn deal_columns() -> String {
    let locked = &statements("deal-move")[2];
    columns(locked).to_owned()
}

#[test]
fn the_list_of_deals_is_the_statement_of_the_list_builder() {
    let expected = page(COUNTED, &deal_columns(), "crm.deal", "account_id = ?", "");
    assert_eq!(statements("deal-list"), [expected]);
}

#[test]
fn a_move_is_the_write_transaction_of_the_service() {
    let moved = statements("deal-move");
    assert_eq!(moved.len(), 7, "begin, claim, deal, pipelines, update, finish, commit");
    assert_part(&source("chassis/src/idempotency.rs"), &moved[1]);
    let store = source("svc-crm/src/deal/store.rs");
    assert_part(&store, columns(&moved[2]));
    assert_part(&store, moved[2].strip_prefix(&format!("select {} ", columns(&moved[2]))).unwrap());
    assert_part(&source("svc-crm/src/pipeline/store.rs"), &moved[3]);
    assert_part(&store, &moved[4]);
    assert_part(&source("chassis/src/write.rs"), &moved[5]);
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

/// `select …` of the settings that a new document needs, whose columns a macro puts in.
#[track_caller]
fn assert_settings(statement: &str) {
    let store = source("svc-billing/src/settings/store.rs");
    let (before, rest) = statement.split_once(" rates.types, ").unwrap();
    assert_part(&store, before);
    let (columns, after) = rest.split_once(" from (values ").unwrap();
    assert_part(&store, columns);
    assert_part(&store, &format!(" from (values {after}"));
}

/// `select …` of the seller, put together in the same way.
#[track_caller]
fn assert_seller(statement: &str) {
    let store = source("svc-billing/src/identity/store.rs");
    let (columns, rest) = statement.strip_prefix("select ").unwrap().split_once(", logo.format").unwrap();
    assert_part(&store, columns);
    let (logo, tables) = rest.split_once(" from ").unwrap();
    assert_part(&store, &format!("logo.format{logo}"));
    let (tables, condition) = tables.split_once(" and is_default").unwrap();
    assert_part(&store, &format!("from {tables}"));
    assert_part(&store, &format!("and is_default{condition}"));
}

/// The insert of a document; its number is put in by a macro that takes placeholders.
#[track_caller]
fn assert_insert(statement: &str) {
    let store = source("svc-billing/src/document/store/write.rs");
    let number = " || lpad(value::text, greatest(";
    assert_part(&store, number);
    let (taken, rest) = statement.split_once(&format!("?{number}?")).unwrap();
    assert_part(&store, taken);
    let (padding, insert) = rest.split_once(" from taken").unwrap();
    assert_part(&store, padding);
    assert_part(&store, &format!("from taken{insert}"));
}

/// The columns and the condition are put together by macros.
#[track_caller]
fn assert_collections(statement: &str) {
    let store = source("svc-billing/src/online/store.rs");
    let (columns, rest) = statement.strip_prefix("select ").unwrap().split_once(" from ").unwrap();
    assert_part(&store, columns);
    let (table, condition) = rest.split_once(" and ").unwrap();
    assert_part(&store, &format!("from {table} and"));
    assert_part(&store, condition);
}

#[test]
fn a_draft_is_made_by_the_write_transaction_of_the_service() {
    let create = statements("invoice-create");
    assert_eq!(create.len(), 6, "begin, claim, settings, insert, finish, commit");
    assert_part(&source("chassis/src/idempotency.rs"), &create[1]);
    assert_settings(&create[2]);
    assert_insert(&create[3]);
    assert_part(&source("chassis/src/write.rs"), &create[4]);
}

#[test]
fn a_final_invoice_is_made_read_and_noted_as_the_service_does() {
    let create = statements("invoice-final");
    assert_eq!(
        create.len(),
        18,
        "as a draft with its seller, then four reads, then begin, finish, commit, then begin, note, finish, commit"
    );
    assert_part(&source("chassis/src/idempotency.rs"), &create[1]);
    assert_settings(&create[2]);
    assert_seller(&create[3]);
    assert_insert(&create[4]);
    assert_part(&source("chassis/src/write.rs"), &create[5]);
    assert_invoice(&create[7]);
    assert_collections(&create[8]);
    assert_seller(&create[9]);
    assert_part(&source("svc-billing/src/document/store/read.rs"), &create[10]);
    assert_part(&source("chassis/src/write.rs"), &create[12]);
    assert_part(&source("svc-billing/src/document/store/write.rs"), &create[15]);
    assert_part(&source("chassis/src/write.rs"), &create[16]);
}

/// The columns of a task, which a macro puts together around the notes.
#[track_caller]
fn assert_task_columns(columns: &str, notes: &str) {
    let store = source("svc-work/src/task/store.rs");
    let (before, after) = columns.split_once(&format!(" {notes},")).unwrap();
    assert_part(&store, before);
    assert_part(&store, after.trim());
}

#[test]
fn the_list_of_tasks_is_the_statement_of_the_list_builder() {
    let list = statements("task-list").remove(0);
    let (_, columns) = list.split_once("left join lateral (select ").unwrap();
    let (columns, _) = columns.split_once(", true as found").unwrap();
    assert_task_columns(columns, "'' as notes");
    assert_eq!(list, page(COUNTED, columns, "work.task", "account_id = ?", ""));
}

#[test]
fn a_task_is_completed_by_the_write_transaction_of_the_service() {
    let complete = statements("task-complete");
    assert_eq!(complete.len(), 5, "begin, claim, update, finish, commit");
    assert_part(&source("chassis/src/idempotency.rs"), &complete[1]);
    let (update, columns) = complete[2].split_once(" returning ").unwrap();
    assert_part(&source("svc-work/src/task/store.rs"), update);
    assert_task_columns(columns, "notes");
    assert_part(&source("chassis/src/write.rs"), &complete[3]);
}

#[test]
fn the_list_of_tickets_is_the_statement_of_the_list_builder() {
    let locked = &statements("ticket-message")[2];
    let expected = page(COUNTED, columns(locked), "support.ticket", "account_id = ?", "");
    assert_eq!(statements("ticket-list"), [expected]);
}

#[test]
fn a_reply_is_the_write_transaction_of_the_service() {
    let reply = statements("ticket-message");
    assert_eq!(reply.len(), 9, "begin, claim, ticket, channel, message, statuses, update, finish, commit");
    assert_part(&source("chassis/src/idempotency.rs"), &reply[1]);
    let (tickets, channels) =
        (source("svc-support/src/ticket/store.rs"), source("svc-support/src/channel/store.rs"));
    assert_part(&tickets, columns(&reply[2]));
    let (table, condition) = reply[2].split_once(" from ").unwrap().1.split_once(" and ").unwrap();
    assert_part(&tickets, &format!("from {table}"));
    assert_part(&tickets, &format!("and {condition}"));
    assert_part(&channels, columns(&reply[3]));
    assert_part(&channels, &format!("from {}", reply[3].split_once(" from ").unwrap().1));
    assert_part(&source("svc-support/src/message/store.rs"), &reply[4]);
    assert_part(&source("svc-support/src/status/store.rs"), &reply[5]);
    assert_part(&tickets, &reply[6]);
    assert_part(&source("chassis/src/write.rs"), &reply[7]);
}
