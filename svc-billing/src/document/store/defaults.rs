//! What a new document takes from the account, in one round trip.

use chassis_base::AccountId;
use chassis_data::row::Columns;
use sqlx::PgConnection;

use crate::error::Error;
use crate::identity::store::identity_values;
use crate::identity::{self, Seller};
use crate::settings::store::{settings_and_rates, settings_columns};
use crate::settings::{self, ForDocuments};

/// The settings of an account, and the seller on final documents.
pub(crate) struct Defaults {
    pub settings: ForDocuments,
    /// Only for a final document.
    pub seller: Option<Seller>,
}

pub(crate) async fn defaults(
    connection: &mut PgConnection,
    account: AccountId,
    is_final: bool,
) -> Result<Defaults, Error> {
    if !is_final {
        let settings = settings::store::for_documents(connection, account).await?;
        return Ok(Defaults { settings, seller: None });
    }
    let sql = concat!(
        "select identity.id is not null, ",
        identity_values!(),
        ", logo.format, logo.bytes, ",
        settings_and_rates!(),
        " left join billing.identity on identity.account_id = $1 and identity.is_default \
         left join billing.identity_logo logo on logo.account_id = $1 and logo.identity_id = identity.id"
    );
    let row = sqlx::query(sql).bind(account).fetch_one(connection).await?;
    let mut columns = Columns::of(&row);
    let seller =
        if columns.take()? { identity::store::take_seller(&mut columns)? } else { Seller::default() };
    Ok(Defaults { settings: settings::store::read_for_documents(&row)?, seller: Some(seller) })
}
