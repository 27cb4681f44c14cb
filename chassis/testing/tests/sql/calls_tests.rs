//! What is a call that runs SQL, and what its text is.

use crate::calls::{Call, calls};
use crate::definitions::Definitions;
use crate::sources::Source;
use crate::texts::{NotStatic, Texts};

/// The calls in a file, beside another one that has a macro and a constant, and under a module that has a macro.
fn read(text: &str) -> Vec<Call> {
    let module = r#"macro_rules! columns { () => { "id, name" }; }"#;
    let other = r#"
        macro_rules! owed {
            () => { "open > 0" };
            (total) => { concat!("sum(open) filter (where ", owed!(), ")") };
        }
        pub(crate) const COUNT: &str = "select count(*) from t";
    "#;
    let sources = [
        Source::parse("svc-a/src/t/store/read.rs", text),
        Source::parse("svc-a/src/t/mod.rs", module),
        Source::parse("svc-a/src/other.rs", other),
        Source::parse("svc-a/src/u/mod.rs", &module.replace("name", "number")),
        Source::parse("svc-b/src/other.rs", &other.replace("open", "of_another_package")),
    ];
    calls(&sources[0], &Definitions::of(&sources))
}

fn statements(text: &str) -> Vec<Texts> {
    read(text).into_iter().map(|call| call.statements).collect()
}

/// What the only call in the body of a function runs.
fn run_by(body: &str) -> Texts {
    let mut all = statements(&format!("async fn f() {{ {body} }}"));
    assert_eq!(all.len(), 1, "{body}: {all:?}");
    all.remove(0)
}

fn texts(all: &[&str]) -> Texts {
    all.iter().map(|&text| Ok(text.to_owned())).collect()
}

#[test]
fn a_call_is_found_with_its_line_wherever_it_is() {
    let found = read(
        "use sqlx::{PgConnection, query_scalar, query_as as rows_of, query::Query};
         async fn f() {
             bind(sqlx::query(\"a\"), 1).execute(c).await?;
             let rows = async { rows_of::<_, Row>(\"b\").bind(1).fetch_all(c).await };
             tokio::try_join!(query_scalar(\"c\").fetch_one(c), rows)?;
             query(\"of nobody\");
             self.query(\"of nobody\");
         }
         #[cfg(test)]
         mod tests { fn g() { sqlx::raw_sql(\"of a test\"); } }",
    );
    let found: Vec<_> = found.into_iter().map(|call| (call.line, call.statements)).collect();
    assert_eq!(found, [(3, texts(&["a"])), (4, texts(&["b"])), (5, texts(&["c"]))]);
}

#[test]
fn a_literal_and_what_is_concatenated_are_texts() {
    assert_eq!(run_by(r#"sqlx::query("select \"a\" \n where b")"#), texts(&["select \"a\" \n where b"]));
    assert_eq!(run_by("sqlx::query(r#\"select \"a\"\"#)"), texts(&["select \"a\""]));
    assert_eq!(run_by(r#"sqlx::query(concat!("select ", 1, columns!(),))"#), texts(&["select 1id, name"]));
}

#[test]
fn a_macro_is_expanded_by_the_rule_that_fits_its_arguments() {
    let select = r#"macro_rules! select {
        ($columns:literal, $rest:expr) => { concat!("select ", $columns, " from t where ", $rest) };
        ($rest:literal) => { select!("id", $rest) };
    }"#;
    let run_by = |body: &str| statements(&format!("{select} fn f() {{ {body} }}"));
    assert_eq!(run_by(r#"sqlx::query(select!("id = $2"))"#), [texts(&["select id from t where id = $2"])]);
    let nested = r#"sqlx::query(select!("name", concat!(owed!(), " limit ", "1")))"#;
    assert_eq!(run_by(nested), [texts(&["select name from t where open > 0 limit 1"])]);
    let by_word = "sqlx::query(owed!(total))";
    assert_eq!(run_by(by_word), [texts(&["sum(open) filter (where open > 0)"])]);
    assert_eq!(run_by("sqlx::query(select!())"), [Err(NotStatic::Unresolved)]);
}

#[test]
fn a_variable_is_what_it_was_last_given() {
    assert_eq!(run_by(r#"let sql = "a"; let sql: &str = concat!("b"); sqlx::query(sql)"#), texts(&["b"]));
    assert_eq!(run_by(r#"let sql = "a"; { let sql = "b"; } sqlx::query(sql)"#), texts(&["a"]));
    let choice = r#"let sql = "a"; let sql = if x { sql } else { match y { 1 => "b", _ => { "c" } } };"#;
    assert_eq!(run_by(&format!("{choice} sqlx::query(sql)")), texts(&["a", "b", "c"]));
}

#[test]
fn a_loop_runs_each_of_its_statements() {
    assert_eq!(run_by(r#"for sql in ["a", concat!("b")] { sqlx::query(sql); }"#), texts(&["a", "b"]));
    let outside = r#"let sql = "a"; for sql in all { } sqlx::query(sql)"#;
    assert_eq!(run_by(outside), texts(&["a"]));
}

#[test]
fn a_scan_declares_its_statements() {
    let scan = r#"Scan { event: "not this", causes: concat!("a ", columns!()), lock: "" }"#;
    assert_eq!(run_by(scan), texts(&["a id, name"]));
    assert_eq!(run_by("Scan { causes: text(), ..other }"), Err(NotStatic::Unresolved));
}

#[test]
fn a_constant_is_that_of_the_file_or_else_the_only_one_of_the_package() {
    let own = r#"const SQL: &str = concat!("select ", columns!()); fn f() { sqlx::query(SQL); }"#;
    assert_eq!(statements(own), [texts(&["select id, name"])]);
    assert_eq!(run_by("sqlx::query(crate::other::COUNT)"), texts(&["select count(*) from t"]));
    assert_eq!(run_by("sqlx::query(ELSEWHERE)"), Err(NotStatic::Unresolved));
}

#[test]
fn dynamic_statements_are_marked() {
    for dynamic in [
        "sqlx::query(AssertSqlSafe(sql))",
        r#"let sql = sqlx::AssertSqlSafe(format!("select {x}")); sqlx::query_with(sql, values)"#,
    ] {
        assert_eq!(run_by(dynamic), Err(NotStatic::Dynamic), "{dynamic}");
    }
}

#[test]
fn what_cannot_be_followed_is_not_passed_over() {
    for unresolved in [
        "sqlx::query(sql)",
        "sqlx::query(text())",
        r#"let mut sql = "a"; sql = text(); sqlx::query(sql)"#,
        r#"let sql = "a"; let (sql, x) = y; sqlx::query(sql)"#,
        r#"let sql = "a"; if let Some(sql) = x { sqlx::query(sql); }"#,
        r#"let sql = "a"; for sql in all { sqlx::query(sql); }"#,
        r#"let sql = "a"; let run = |sql| sqlx::query(sql);"#,
        r#"let sql = if x { "a" } else { text() }; sqlx::query(sql)"#,
        "all.map(sqlx::query)",
        r#"tokio::select! { x = sqlx::query("a").execute(c) => {} }"#,
        r#"macro_rules! run { () => { sqlx::query("a") }; }"#,
    ] {
        assert_eq!(run_by(unresolved), Err(NotStatic::Unresolved), "{unresolved}");
    }
}
