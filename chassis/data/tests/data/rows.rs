//! A struct is read from a row as its derive says.

use std::collections::BTreeMap;

use chassis_testing::TestDatabase;
use chassis_testing::bare::database;
use sqlx::{AssertSqlSafe, FromRow};

#[derive(Debug, PartialEq, chassis_derive::FromRow)]
struct Part {
    note: Option<String>,
    r#final: bool,
}

#[derive(Debug, PartialEq, chassis_derive::FromRow)]
struct Whole {
    id: i64,
    #[sqlx(rename = "type")]
    kind: String,
    #[sqlx(default)]
    attempts: i32,
    #[sqlx(json)]
    refused: BTreeMap<String, i32>,
    #[sqlx(flatten)]
    part: Part,
    #[sqlx(skip)]
    seen: u8,
}

async fn read(database: &TestDatabase, columns: &str) -> Result<Whole, sqlx::Error> {
    let row = sqlx::query(AssertSqlSafe(format!("select {columns}")));
    Whole::from_row(&row.fetch_one(&mut database.connect().await).await?)
}

#[tokio::test]
async fn each_field_is_read_as_its_attribute_says() {
    let database = database().await;
    let columns =
        r#"true as final, null::text as note, '{"a": 1}'::jsonb as refused, 'b' as type, 2::bigint as id"#;
    let part = Part { note: None, r#final: true };
    let refused = BTreeMap::from([("a".to_owned(), 1)]);
    let mut whole = Whole { id: 2, kind: "b".to_owned(), attempts: 0, refused, part, seen: 0 };
    assert_eq!(read(&database, columns).await.unwrap(), whole, "there is no column attempts");
    whole.attempts = 3;
    assert_eq!(read(&database, &format!("{columns}, 3 as attempts, 4 as seen")).await.unwrap(), whole);
}

#[tokio::test]
async fn a_column_that_is_missing_or_of_another_type_is_an_error() {
    let database = database().await;
    let columns = "true as final, 'a' as note, '{}'::jsonb as refused, 'b' as type";
    let missing = read(&database, columns).await.unwrap_err();
    assert!(matches!(&missing, sqlx::Error::ColumnNotFound(column) if column == "id"), "{missing}");
    for other in ["2::int as id", "null::bigint as id", "2::bigint as id, 3::bigint as attempts"] {
        let other = read(&database, &format!("{columns}, {other}")).await.unwrap_err();
        assert!(matches!(other, sqlx::Error::ColumnDecode { .. }), "{other}");
    }
}
