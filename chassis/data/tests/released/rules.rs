//! What a migration must not do while programs of the previous release use its tables: remove what they use, require
//! values that they do not write, or block their requests.

use std::collections::HashSet;
use std::fmt;

pub(crate) struct Migration {
    pub name: String,
    pub sql: String,
}

#[derive(Debug)]
pub(crate) struct Fault {
    pub statement: String,
    why: &'static str,
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}`: {}", self.statement, self.why)
    }
}

/// The first line of a migration that runs outside a transaction.
const NO_TRANSACTION: &str = "-- no-transaction";

/// Words of statements that remove something, with the reason against each.
const TAKING: &[(&str, &str)] = &[
    ("drop", "the release before still uses it; remove it in the release after the one that stops to"),
    ("rename", "the release before knows the old name; add the new one beside it"),
    ("truncate", "the release before still uses the rows"),
    ("revoke", "the release before still uses the right"),
];

/// The faults of a migration, given the earlier migrations of the same program.
pub(crate) fn faults(migration: &Migration, before: &[Migration]) -> Vec<Fault> {
    let own = statements(&migration.sql);
    let earlier: Vec<String> = before.iter().flat_map(|it| statements(&it.sql)).collect();
    let made: HashSet<&str> = own.iter().filter_map(|it| after(it, "create table")).collect();
    let mut faults: Vec<Fault> = Vec::new();
    if migration.sql.starts_with(NO_TRANSACTION) && (own.len() != 1 || !own[0].contains("index concurrently"))
    {
        let why = "a migration without a transaction is one `create index concurrently` and nothing else: sent \
                   together, statements are a transaction all the same, and apart, half of them may be done";
        faults.push(Fault { statement: own.join("; "), why });
    }
    for (place, statement) in own.iter().enumerate() {
        let alone = migration.sql.starts_with(NO_TRANSACTION);
        let known: Vec<&str> = earlier.iter().chain(&own[..place]).map(String::as_str).collect();
        let because = |why| Fault { statement: statement.clone(), why };
        let taken = TAKING.iter().filter(|(word, _)| words(statement).any(|it| it == *word));
        faults.extend(taken.map(|(_, why)| because(why)));
        faults.extend(index(statement, &made, alone).map(because));
        faults.extend(column(statement, &known).map(because));
        faults.extend(constraint(statement, &made, &own[..place]).map(because));
    }
    faults
}

fn index(statement: &str, made: &HashSet<&str>, alone: bool) -> Option<&'static str> {
    let rest =
        statement.strip_prefix("create unique index").or_else(|| statement.strip_prefix("create index"))?;
    if after(rest, " on").is_some_and(|table| made.contains(table)) {
        return None;
    }
    if !rest.starts_with(" concurrently") {
        return Some(
            "writers wait until it is built; `create index concurrently`, in a migration of its own",
        );
    }
    if !alone {
        return Some("is refused inside a transaction; let the migration begin with `-- no-transaction`");
    }
    let again = rest.starts_with(" concurrently if not exists ");
    (!again).then_some("a build that was interrupted has to be possible again; add `if not exists`")
}

fn column(statement: &str, known: &[&str]) -> Option<&'static str> {
    let table = after(statement, "alter table")?;
    let all: Vec<&str> = words(statement).collect();
    let follows = |sequence: &[&str]| all.windows(sequence.len()).any(|found| found == sequence);
    let typed = |found: &[&str]| found[0] == "alter" && found[1] == "column" && found[3] == "type";
    if all.windows(4).any(typed) || follows(&["set", "data", "type"]) {
        return Some("rewrites the table, and the release before reads the old type; add another column");
    }
    for added in statement.split("add column").skip(1) {
        let of_column: Vec<&str> = words(added).collect();
        if added.contains("not null") && !of_column.contains(&"default") {
            return Some("the release before does not fill it; give it a default, or let it be null");
        }
        if ["check", "references", "unique", "primary"].iter().any(|word| of_column.contains(word)) {
            return Some("the whole table is read for it; add the constraint apart, `not valid`");
        }
    }
    let column = after(statement, "alter column").filter(|_| follows(&["set", "not", "null"]))?;
    let proof = format!("check ({column} is not null) not valid");
    let proven = known.iter().filter(|it| it.ends_with(&proof)).any(|it| {
        let name = after(it, "add constraint").unwrap_or_default();
        known.iter().any(|it| *it == format!("alter table {table} validate constraint {name}"))
    });
    (!proven).then_some(
        "reads the whole table while all wait; first `add constraint … check (… is not null) not valid`, in a later \
         migration `validate constraint`, and then this",
    )
}

fn constraint(statement: &str, made: &HashSet<&str>, own: &[String]) -> Option<&'static str> {
    let table = after(statement, "alter table").filter(|table| !made.contains(table))?;
    let checked = statement.ends_with(" not valid") || statement.contains(" using index ");
    if statement.contains("add constraint") && !checked {
        return Some(
            "reads the whole table while all wait; add it `not valid`, and validate it in a later migration",
        );
    }
    let name = after(statement, "validate constraint")?;
    let added = format!("alter table {table} add constraint {name} ");
    let together = own.iter().any(|it| it.starts_with(&added));
    together.then_some(
        "all wait while it is checked, since it was added in the same migration; do it in a later one",
    )
}

/// The word that follows `before` and an optional `if exists` or `if not exists`.
fn after<'a>(statement: &'a str, before: &str) -> Option<&'a str> {
    let (_, rest) = statement.split_once(&format!("{before} "))?;
    let rest = rest.strip_prefix("if not exists ").unwrap_or(rest);
    let rest = rest.strip_prefix("if exists ").unwrap_or(rest);
    rest.split([' ', '(', ',']).next()
}

fn words(statement: &str) -> impl Iterator<Item = &str> {
    statement.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// The statements in lower case with one space between words, without comments. Text in `$$` belongs to its statement.
fn statements(sql: &str) -> Vec<String> {
    let lines = sql.lines().map(|line| line.split("--").next().unwrap_or_default());
    let plain = lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ").to_lowercase();
    let (mut statements, mut quoted) = (vec![String::new()], false);
    for (place, part) in plain.split("$$").enumerate() {
        quoted = place % 2 == 1;
        let mut pieces = part.split(';');
        if quoted {
            statements.last_mut().unwrap().push_str(part);
        } else {
            statements.last_mut().unwrap().push_str(pieces.next().unwrap_or_default());
            statements.extend(pieces.map(str::to_owned));
        }
    }
    assert!(!quoted, "a text in $$ has no end: {plain}");
    statements.iter().map(|it| it.trim().to_owned()).filter(|it| !it.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sql: &str) -> Migration {
        Migration { name: String::new(), sql: sql.to_owned() }
    }

    /// The reasons against `sql` after the migrations in `before`.
    fn said(before: &[&str], sql: &str) -> Vec<&'static str> {
        let before: Vec<Migration> = before.iter().map(|sql| of(sql)).collect();
        faults(&of(sql), &before).into_iter().map(|fault| fault.why).collect()
    }

    #[test]
    fn what_only_adds_is_fine() {
        for sql in [
            "create table a.b (c uuid not null primary key, d text references e (f), check (d <> '')); \
             create index b_d on a.b (d);",
            "alter table a.b add column c text; alter table a.b add column d text not null default ''",
            "-- no-transaction\ncreate index concurrently if not exists b_c on a.b (c) where c is not null;\n",
            "-- no-transaction\n-- Why.\ncreate unique index concurrently if not exists b_c on a.b (c)",
            "alter table a.b add constraint b_c check (c > 0) not valid -- no drop here",
            "alter table a.b validate constraint b_c",
            "alter table a.b add constraint b_key unique using index b_c",
        ] {
            assert_eq!(said(&[], sql), [""; 0], "{sql}");
        }
    }

    #[test]
    fn what_takes_away_or_holds_up_is_not() {
        for (sql, why) in [
            ("alter table a.b drop column c", "still uses it"),
            ("DROP TABLE a.b", "still uses it"),
            ("alter table a.b\n  rename column c to d", "the old name"),
            ("truncate a.b", "the rows"),
            ("do $$ begin execute 'x'; revoke update on a.b from c; end $$", "the right"),
            ("alter table a.b alter column c type bigint", "the old type"),
            ("alter table a.b alter column c set data type bigint", "the old type"),
            ("alter table a.b alter column c set not null", "reads the whole table"),
            ("alter table a.b add column c text, add column d text not null", "does not fill it"),
            ("alter table a.b add column c uuid references d (e)", "add the constraint apart"),
            ("alter table a.b add constraint b_c check (c > 0)", "add it `not valid`"),
            ("create index b_c on a.b (c)", "writers wait"),
            ("create table a.x (c uuid); create index b_c on a.b (c)", "writers wait"),
            ("create unique index b_c on a.b (c)", "writers wait"),
            ("create index concurrently if not exists b_c on a.b (c)", "begin with"),
            ("-- no-transaction\ncreate index concurrently b_c on a.b (c)", "if not exists"),
            ("-- no-transaction\ncreate table a.b (c uuid)", "nothing else"),
            (
                "-- no-transaction\nset lock_timeout = 0; create index concurrently if not exists b_c on a.b (c)",
                "nothing else",
            ),
        ] {
            let said = said(&[], sql);
            assert!(said.len() == 1 && said[0].contains(why), "{sql}: {said:?}");
        }
    }

    #[test]
    fn a_column_can_be_made_required_when_a_validated_check_proves_it() {
        let add = "alter table a.b add constraint b_c check (c is not null) not valid";
        let validate = "alter table a.b validate constraint b_c";
        let require = "alter table a.b alter column c set not null";
        assert_eq!(said(&[add, validate], require), [""; 0]);
        assert_eq!(said(&[add], &format!("{validate}; {require}")), [""; 0]);
        assert_eq!(said(&[add], require).len(), 1, "not validated");
        assert_eq!(said(&[add, validate], "alter table a.b alter column d set not null").len(), 1, "another");
        assert_eq!(said(&[], &format!("{add}; {validate}")).len(), 1, "together");
    }
}
