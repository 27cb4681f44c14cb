//! The contract against the one of the last release: what breaks programs that use it is named in the changelog.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod compare;
mod listing;

use std::path::Path;

/// Set to anything, the listing of the released contract is written anew. Part of making a release.
const UPDATE: &str = "UPDATE_RELEASED";
const LISTING: &str = "released/contract.txt";

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

#[test]
fn what_breaks_since_the_last_release_is_named_in_the_changelog() {
    let now = listing::of(proto::policy::pool());
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(LISTING), &now).unwrap();
    }
    let released = read(LISTING);
    assert!(released.lines().count() > 1000, "the listing was read");
    let left = compare::unnamed(compare::breaking(&released, &now), &read("../CHANGELOG.md"));
    let lines: Vec<String> = left.iter().map(|it| format!("  `{}`: {}", it.symbol, it.what)).collect();
    assert!(
        lines.is_empty(),
        "these break programs that were written for the last release:\n{}\nDo it in a way that only adds. If it has to \
         be, name each, in backticks, in CHANGELOG.md: `## Unreleased`, `### Breaking`.",
        lines.join("\n")
    );
}

#[test]
fn the_changelog_begins_with_what_is_not_released_and_then_has_this_version() {
    let changelog = read("../CHANGELOG.md");
    let headings: Vec<&str> = changelog.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert_eq!(headings[0], "Unreleased");
    let released = concat!(env!("CARGO_PKG_VERSION"), " (");
    assert!(headings[1].starts_with(released), "`{}` is not `{released}date)`", headings[1]);
}
