//! What of a contract breaks programs that were written for the one before.

use std::collections::BTreeMap;

/// Something that those who use the contract have to know.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Breaking {
    /// For example `admin.billing.v1.Invoice.number` or `GET /v1/invoices`.
    pub symbol: String,
    pub what: String,
}

/// From one listing to the next. What is gone or different breaks; what is added does not, except for what is asked of
/// those who know nothing of it.
pub(crate) fn breaking(released: &str, now: &str) -> Vec<Breaking> {
    let (before, after) = (facts(released), facts(now));
    let gone = |key: &(&str, &str)| before.contains_key(key) && !after.contains_key(key);
    let mut breaking = Vec::new();
    for ((kind, symbol), was) in &before {
        // With a message go its fields: it is enough to name the message.
        let parent = symbol.rsplit_once('.').map_or("", |(parent, _)| parent);
        if gone(&("message", parent)) || (*kind != "message" && gone(&("message", symbol))) {
            continue;
        }
        let what = match after.get(&(*kind, *symbol)) {
            Some(is) if is == was => continue,
            Some(is) => format!("{kind} was `{was}` and is `{is}`"),
            None => format!("{kind} `{was}` is gone"),
        };
        breaking.push(Breaking { symbol: (*symbol).to_owned(), what });
    }
    for ((_, symbol), is) in after.iter().filter(|(key, _)| key.0 == "input" && !before.contains_key(key)) {
        let message = symbol.rsplit_once('.').map_or("", |(message, _)| message);
        if !before.contains_key(&("request", message)) {
            continue;
        }
        let old = before.contains_key(&("field", *symbol));
        if old || is.split(", ").any(|it| it == "required") {
            let what = if old { "is a known field that has to be" } else { "is a new field that has to be" };
            breaking.push(Breaking { symbol: (*symbol).to_owned(), what: format!("{what} `{is}`") });
        }
    }
    breaking
}

/// The facts by what they are about.
fn facts(listing: &str) -> BTreeMap<(&str, &str), &str> {
    listing
        .lines()
        .filter_map(|line| {
            let (about, is) = line.split_once(": ")?;
            Some((about.split_once(' ')?, is))
        })
        .collect()
}

/// Those that are not named, in backticks, in the section `### Breaking` of what is not released yet.
pub(crate) fn unnamed(breaking: Vec<Breaking>, changelog: &str) -> Vec<Breaking> {
    let section = section(changelog).unwrap_or_default();
    breaking.into_iter().filter(|it| !section.contains(&format!("`{}`", it.symbol))).collect()
}

fn section(changelog: &str) -> Option<&str> {
    let unreleased = changelog.split("\n## ").nth(1)?.strip_prefix("Unreleased\n")?;
    unreleased.split("\n### ").find_map(|part| part.strip_prefix("Breaking\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listing;
    use prost_reflect::DescriptorPool;
    use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver, IncludeFileResolver};

    const SAMPLE: &str = r#"
        syntax = "proto3";
        package admin.sample.v1;
        import "admin/api/v1/policy.proto";
        import "google/api/annotations.proto";
        enum Colour { COLOUR_UNSPECIFIED = 0; COLOUR_RED = 1; }
        message Thing { string id = 1; repeated string names = 2; Colour colour = 3; Part part = 4; }
        message Part { int32 size = 1; }
        message GetThingRequest { string id = 1; }
        message CreateThingRequest {
          string name = 1 [(admin.api.v1.field) = {required: true, max_length: 100}];
          string note = 2;
        }
        service ThingService {
          rpc GetThing(GetThingRequest) returns (Thing) {
            option (google.api.http) = {get: "/v1/things/{id}"};
            option (admin.api.v1.method) = {access: ACCESS_KEY, scope: "things.read", success: 200};
          }
          rpc CreateThing(CreateThingRequest) returns (Thing) {
            option (google.api.http) = {post: "/v1/things", body: "*"};
            option (admin.api.v1.method) = {access: ACCESS_KEY, scope: "things.write", success: 201};
          }
        }"#;

    struct Source(String);

    impl FileResolver for Source {
        fn open_file(&self, name: &str) -> Result<File, protox::Error> {
            match name {
                "sample.proto" => File::from_source(name, &self.0),
                _ => Err(protox::Error::file_not_found(name)),
            }
        }
    }

    fn listing_of(source: String) -> String {
        let mut files = ChainFileResolver::new();
        files.add(Source(source));
        files.add(GoogleFileResolver::new());
        files.add(IncludeFileResolver::new(env!("CARGO_MANIFEST_DIR").into()));
        let mut compiler = protox::Compiler::with_file_resolver(files);
        compiler.include_imports(true).open_file("sample.proto").unwrap();
        listing::of(&DescriptorPool::decode(compiler.encode_file_descriptor_set().as_slice()).unwrap())
    }

    /// What breaks when this becomes that.
    fn broken(this: &str, that: &str) -> Vec<String> {
        assert!(SAMPLE.contains(this), "{this}");
        let (before, after) = (listing_of(SAMPLE.to_owned()), listing_of(SAMPLE.replace(this, that)));
        assert_ne!(before, after, "{this} to {that}");
        breaking(&before, &after).into_iter().map(|it| it.symbol).collect()
    }

    #[test]
    fn what_is_added_breaks_nobody() {
        for (this, that) in [
            ("string note = 2;", "string note = 2; string more = 3;"),
            (
                "string note = 2;",
                "string note = 2; string more = 3 [(admin.api.v1.field) = {max_length: 9}];",
            ),
            ("COLOUR_RED = 1;", "COLOUR_RED = 1; COLOUR_BLUE = 2;"),
            (
                "message Part {",
                "message New { string id = 1 [(admin.api.v1.field) = {required: true}]; } message Part {",
            ),
            (
                "int32 size = 1;",
                "int32 size = 1; int32 weight = 2 [(admin.api.v1.field) = {required: true}];",
            ),
            (
                "rpc GetThing",
                "rpc ListThings(GetThingRequest) returns (Thing) {
                   option (google.api.http) = {get: \"/v1/things\"};
                   option (admin.api.v1.method) = {access: ACCESS_KEY, scope: \"things.read\", success: 200};
                 }
                 rpc GetThing",
            ),
        ] {
            assert_eq!(broken(this, that), [""; 0], "{this} to {that}");
        }
    }

    #[test]
    fn what_is_gone_or_different_or_asked_of_those_who_do_not_know_breaks() {
        for (this, that, symbols) in [
            ("string note = 2;", "", &["admin.sample.v1.CreateThingRequest.note"][..]),
            ("string note = 2;", "string remark = 2;", &["admin.sample.v1.CreateThingRequest.note"]),
            ("string note = 2;", "string note = 3;", &["admin.sample.v1.CreateThingRequest.note"]),
            ("string note = 2;", "bytes note = 2;", &["admin.sample.v1.CreateThingRequest.note"]),
            ("string note = 2;", "optional string note = 2;", &["admin.sample.v1.CreateThingRequest.note"]),
            ("repeated string names", "string names", &["admin.sample.v1.Thing.names"]),
            (
                "string note = 2;",
                "string note = 2; string more = 3 [(admin.api.v1.field) = {required: true}];",
                &["admin.sample.v1.CreateThingRequest.more"],
            ),
            (
                "string note = 2;",
                "string note = 2 [(admin.api.v1.field) = {max_length: 9}];",
                &["admin.sample.v1.CreateThingRequest.note"],
            ),
            ("max_length: 100", "max_length: 99", &["admin.sample.v1.CreateThingRequest.name"]),
            ("COLOUR_RED = 1;", "COLOUR_GREEN = 1;", &["admin.sample.v1.Colour.COLOUR_RED"]),
            ("COLOUR_RED = 1;", "COLOUR_RED = 2;", &["admin.sample.v1.Colour.COLOUR_RED"]),
            ("things.read", "things.all", &["admin.sample.v1.ThingService/GetThing"]),
            (
                "access: ACCESS_KEY, scope: \"things.read\"",
                "access: ACCESS_PUBLIC",
                &["admin.sample.v1.ThingService/GetThing"],
            ),
            ("get: \"/v1/things/{id}\"", "get: \"/v1/thing/{id}\"", &["GET /v1/things/{id}"]),
            ("get: \"/v1/things/{id}\"", "post: \"/v1/things/{id}\"", &["GET /v1/things/{id}"]),
            ("success: 201", "success: 200", &["POST /v1/things"]),
            (
                "returns (Thing) {\n            option (google.api.http) = {get",
                "returns (stream Thing) {\n            option (google.api.http) = {get",
                &["admin.sample.v1.ThingService/GetThing"],
            ),
            (
                "Part part = 4; }\n        message Part { int32 size = 1; }",
                "}",
                &["admin.sample.v1.Part", "admin.sample.v1.Thing.part"],
            ),
        ] {
            let mut found = broken(this, that);
            found.sort();
            assert_eq!(found, symbols, "{this} to {that}");
        }
    }

    #[test]
    fn a_break_has_to_be_named_where_it_is_not_released_yet() {
        let fault = |symbol: &str| Breaking { symbol: symbol.to_owned(), what: String::new() };
        let left = |changelog: &str| unnamed(vec![fault("a.B.c"), fault("GET /v1/b")], changelog).len();
        let named = "### Breaking\n\n- `a.B.c` is gone; `GET /v1/b` too.\n";
        assert_eq!(left(&format!("# Changelog\n\n## Unreleased\n\n{named}\n## 0.1.0\n")), 0);
        assert_eq!(left(&format!("# Changelog\n\n## Unreleased\n\n### Added\n\n- x\n\n{named}")), 0);
        assert_eq!(left("# Changelog\n\n## Unreleased\n\n### Breaking\n\n- `a.B.cd`, GET /v1/b\n"), 2);
        assert_eq!(left("# Changelog\n\n## Unreleased\n\n### Added\n\n- `a.B.c`\n"), 2);
        assert_eq!(left(&format!("# Changelog\n\n## Unreleased\n\n## 0.1.0\n\n{named}")), 2);
        assert_eq!(left(&format!("# Changelog\n\n## 0.1.0\n\n{named}")), 2);
    }
}
