//! Numbers of documents, taken in a transaction. The counter is locked until the transaction ends.

use chassis_base::AccountId;
use sqlx::PgConnection;

use crate::document::Kind;
use crate::error::Error;

/// How many numbers a statement looks at for one that is free.
const WINDOW: i64 = 10_000;

/// Where the number of a document comes from.
#[derive(Clone, Debug)]
pub(crate) struct Numbering {
    /// The number itself, when the caller chose it; else empty.
    pub given: String,
    pub counter: String,
    pub prefix: String,
    pub padding: i32,
}

impl Numbering {
    /// The number made from a counter's value, padded with zeros. The same as `written!` in SQL.
    pub(crate) fn written(&self, value: i64) -> String {
        let width = usize::try_from(self.padding).unwrap_or_default();
        format!("{}{value:0>width$}", self.prefix)
    }
}

macro_rules! written {
    ($value:literal) => {
        concat!("$4 || lpad(", $value, "::text, greatest($5, length(", $value, "::text)), '0')")
    };
}

/// The next value of a counter.
#[derive(chassis_derive::FromRow)]
pub(crate) struct NextNumber {
    pub value: i64,
    /// Whether a document has the number that is made from it: a caller has chosen it.
    pub is_taken: bool,
}

/// Advances the counter by one.
pub(crate) async fn next_number(
    connection: &mut PgConnection,
    account: AccountId,
    kind: Kind,
    numbering: &Numbering,
) -> Result<NextNumber, Error> {
    let sql = concat!(
        "with taken as (insert into counter (account_id, name, value) values ($1, $2, 1) \
         on conflict (account_id, name) do update set value = counter.value + 1 returning value) \
         select value, exists (select from billing.document d where d.account_id = $1 and d.kind = $3 and d.number = ",
        written!("value"),
        ") as is_taken from taken"
    );
    let query = sqlx::query_as(sql).bind(account).bind(&numbering.counter).bind(kind.name());
    Ok(query.bind(&numbering.prefix).bind(numbering.padding).fetch_one(connection).await?)
}

/// Advances the counter from `last` to the first value whose number no document has, however many have been chosen by
/// callers, and returns it.
pub(crate) async fn skip_taken_numbers(
    connection: &mut PgConnection,
    account: AccountId,
    kind: Kind,
    numbering: &Numbering,
    mut last: i64,
) -> Result<i64, Error> {
    // All candidates at once: one after the other, a plan that reads all documents for each would take minutes. `:` follows
    // the digits.
    let sql = concat!(
        "with free as (select min(value) as value from generate_series($6::bigint + 1, $6::bigint + $7::bigint) as value \
         where not exists (select from billing.document d where d.account_id = $1 and d.kind = $3 \
         and d.number >= $4 and d.number < $4 || ':' and d.number = ",
        written!("value"),
        ")) update counter set value = free.value from free \
         where counter.account_id = $1 and counter.name = $2 and free.value is not null returning counter.value"
    );
    loop {
        let found: Option<i64> = sqlx::query_scalar(sql)
            .bind(account)
            .bind(&numbering.counter)
            .bind(kind.name())
            .bind(&numbering.prefix)
            .bind(numbering.padding)
            .bind(last)
            .bind(WINDOW)
            .fetch_optional(&mut *connection)
            .await?;
        if let Some(value) = found {
            return Ok(value);
        }
        last += WINDOW;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_longer_than_its_padding_is_written_out() {
        let numbering =
            Numbering { given: String::new(), counter: String::new(), prefix: "INV-".to_owned(), padding: 3 };
        assert_eq!([7, 999, 1000].map(|value| numbering.written(value)), ["INV-007", "INV-999", "INV-1000"]);
    }
}
