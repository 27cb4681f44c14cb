//! Each static statement is prepared by Postgres, which knows the tables, columns and types that it names.

use chassis_testing::TestDatabase;
use sqlx::migrate::Migrator;
use sqlx::postgres::PgTypeInfo;
use sqlx::{AssertSqlSafe, Executor as _, PgConnection, SqlSafeStr as _};

use crate::calls::calls;
use crate::definitions::Definitions;
use crate::sources::{PROGRAMS, Source, root, sources};
use crate::texts::NotStatic;

/// Where a call may run what cannot be followed to a text, and why: one entry for each call.
const PASSED_ON: &[(&str, &str)] =
    &[("chassis/work/src/scan/store.rs", "the lock of a scan, read where the scan is declared")];
/// A list has its conditions and its order from the request, and its cursor is read when it is there. More than those few are better static, and checked here.
const MAX_DYNAMIC: usize = 23;

/// A text of SQL and where it is.
struct Statement {
    path: String,
    line: usize,
    sql: String,
    parameters: &'static [&'static str],
}

impl Statement {
    /// A statement of a program runs in the schema of that program, one that they share in each of them.
    fn runs_in(&self, schema: &str) -> bool {
        let folder = self.path.split('/').next();
        let own = PROGRAMS.iter().find(|(program, _)| Some(*program) == folder);
        own.is_none_or(|(_, own)| *own == schema)
    }
}

/// What the sources run.
#[derive(Default)]
struct Found {
    statements: Vec<Statement>,
    /// How many calls run what is made while the program runs.
    dynamic: usize,
    /// The paths and lines of calls that run what cannot be followed to a text.
    unresolved: Vec<(String, usize)>,
}

impl Found {
    fn among(sources: &[Source]) -> Self {
        let definitions = Definitions::of(sources);
        let mut found = Self::default();
        for source in sources {
            for call in calls(source, &definitions) {
                let (path, line, parameters) = (source.path.clone(), call.line, call.parameters);
                match call.statements {
                    Ok(texts) => {
                        let statement = |sql| Statement { path: path.clone(), line, sql, parameters };
                        found.statements.extend(texts.into_iter().map(statement));
                    }
                    Err(NotStatic::Dynamic) => found.dynamic += 1,
                    Err(NotStatic::Unresolved) => found.unresolved.push((path, line)),
                }
            }
        }
        found
    }
}

/// A database with the schemas of all programs. Their migrations are read from their folders, so that nothing here
/// depends on the programs themselves.
async fn database() -> TestDatabase {
    let mut schemas: Vec<(&'static str, &'static Migrator)> = Vec::new();
    for (folder, schema) in PROGRAMS {
        let migrator = Migrator::new(root().join(folder).join("migrations")).await.unwrap();
        schemas.push((schema, Box::leak(Box::new(migrator))));
    }
    TestDatabase::new(&schemas).await
}

/// Postgres' objection to a statement.
async fn objection(connection: &mut PgConnection, statement: &Statement) -> Option<sqlx::Error> {
    let sql = AssertSqlSafe(statement.sql.as_str()).into_sql_str();
    let parameters: Vec<_> = statement.parameters.iter().map(|name| PgTypeInfo::with_name(name)).collect();
    connection.prepare_with(sql, &parameters).await.err()
}

#[test]
fn every_statement_is_static_or_marked_as_dynamic() {
    let found = Found::among(&sources());
    let mut exceptions = PASSED_ON.to_vec();
    let mut wrong = Vec::new();
    for (path, line) in found.unresolved {
        match exceptions.iter().position(|(exception, _)| *exception == path) {
            Some(index) => drop(exceptions.remove(index)),
            None => wrong.push(format!("{path}:{line}")),
        }
    }
    assert!(wrong.is_empty(), "cannot be followed to a text: {wrong:#?}");
    assert!(exceptions.is_empty(), "exceptions that nothing needs any more: {exceptions:#?}");
    assert!(found.dynamic <= MAX_DYNAMIC, "{} statements are dynamic", found.dynamic);
}

#[tokio::test]
async fn every_static_statement_is_valid_in_the_migrated_schemas() {
    let statements = Found::among(&sources()).statements;
    assert!(statements.len() > 350, "the sources were read: {} statements", statements.len());
    let database = database().await;
    let mut connection = database.connect().await;
    let mut wrong = Vec::new();
    for (_, schema) in PROGRAMS {
        let path = format!("set search_path = {schema}, public");
        sqlx::raw_sql(AssertSqlSafe(path)).execute(&mut connection).await.unwrap();
        for statement in statements.iter().filter(|statement| statement.runs_in(schema)) {
            if let Some(error) = objection(&mut connection, statement).await {
                let Statement { path, line, sql, .. } = statement;
                wrong.push(format!("{path}:{line}, in {schema}: {error}\n    {sql}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} statements are not valid:\n{}", wrong.len(), wrong.join("\n"));
}
