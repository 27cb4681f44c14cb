//! The migrations of all programs: those of the last release are unchanged, and later ones only add, so that programs
//! of both releases can use the schema at the same time.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod compiled;
mod rules;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use rules::Migration;
use sha2::{Digest, Sha256};

/// If this variable is set, the list of released migrations is rewritten. This is a step of making a release.
const UPDATE: &str = "UPDATE_RELEASED";
const LIST: &str = "chassis/data/tests/released/migrations.txt";

const PROGRAMS: [&str; 8] = [
    "chassis/data",
    "gateway",
    "svc-automation",
    "svc-billing",
    "svc-crm",
    "svc-relations",
    "svc-support",
    "svc-work",
];

/// Exceptions: the file, a word of the statement, and why no program of the previous release needs what it takes away.
/// A statement that breaks two rules needs two.
const ALLOWED: &[(&str, &str, &str)] = &[
    (LOG, "revoke", "the rights on tables that this migration makes"),
    (LOG, "delete", "it names a privilege and deletes nothing"),
];
const LOG: &str = "chassis/data/migrations/0050_log.sql";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// The migrations of a program, oldest first, with the names of their files.
fn migrations(program: &str) -> Vec<Migration> {
    let folder = root().join(program).join("migrations");
    let names = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    let read = |name: String| {
        let sql = std::fs::read_to_string(folder.join(&name)).unwrap();
        Migration { name: format!("{program}/migrations/{name}"), sql }
    };
    names.into_iter().map(read).collect()
}

fn digest(sql: &str) -> String {
    Sha256::digest(sql.as_bytes()).iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// The released migrations and their digests.
fn released() -> BTreeMap<String, String> {
    let path = root().join(LIST);
    if std::env::var_os(UPDATE).is_some() {
        let all = PROGRAMS.into_iter().flat_map(migrations);
        let lines: Vec<String> = all.map(|it| format!("{}  {}", digest(&it.sql), it.name)).collect();
        // Renamed into place, because another test may be reading the list.
        let new = path.with_extension(std::process::id().to_string());
        std::fs::write(&new, lines.join("\n") + "\n").unwrap();
        std::fs::rename(new, &path).unwrap();
    }
    let list = std::fs::read_to_string(&path).unwrap();
    let lines = list.lines().map(|line| line.split_once("  ").unwrap());
    lines.map(|(digest, name)| (name.to_owned(), digest.to_owned())).collect()
}

#[test]
fn the_migrations_of_the_last_release_are_as_they_were() {
    let released = released();
    assert!(released.len() >= 39, "the list was read: {released:?}");
    let all = PROGRAMS.into_iter().flat_map(migrations);
    let now: BTreeMap<String, String> = all.map(|it| (it.name.clone(), digest(&it.sql))).collect();
    for (name, digest) in &released {
        assert!(
            now.get(name) == Some(digest),
            "{name} is released and has been changed or removed: databases have it as it was, and `migrate` refuses \
             another. Put it back, and write a new migration."
        );
    }
}

#[test]
fn migrations_since_the_last_release_only_add_and_hold_nobody_up() {
    let (released, mut used) = (released(), 0);
    let mut wrong = Vec::new();
    for program in PROGRAMS {
        let all = migrations(program);
        for (place, migration) in all.iter().enumerate() {
            if released.contains_key(&migration.name) {
                continue;
            }
            for fault in rules::faults(migration, &all[..place]) {
                let known = |(file, word, _): &&(&str, &str, &str)| {
                    migration.name == *file && fault.statement.contains(word)
                };
                match ALLOWED.iter().find(known) {
                    Some(_) => used += 1,
                    None => wrong.push(format!("{}: {fault}", migration.name)),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(used, ALLOWED.len(), "an exception that nothing needs any more");
}
