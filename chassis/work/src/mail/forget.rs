//! Forgets mails: what was sent, and what waits.

use chassis_base::Error;
use chassis_data::Tx;

/// Removes all mails with these references, whatever became of them. One that waits is not delivered, unless that has begun.
pub async fn forget(tx: &mut Tx<'_>, references: &[String]) -> Result<(), Error> {
    let account = tx.account();
    let sql = "delete from mail where account_id = $1 and reference = any($2)";
    sqlx::query(sql).bind(account).bind(references).execute(tx.db()).await?;
    Ok(())
}
