//! What every account starts with: the statuses that tickets get by themselves, and a channel.

use chassis::Tx;
use proto::support::TicketStatus;

use crate::address::OwnDomain;
use crate::{Error, channel, status};

/// Creates the defaults of an account that has none. They are made once: what was changed or removed since stays so.
pub async fn defaults(tx: &mut Tx<'_>) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    // Statuses are never all removed: the first five cannot be.
    if status::store::count(tx.db(), account).await? > 0 {
        return Ok(());
    }
    for (position, name) in (1..).zip(status::BUILT_IN) {
        let record = status::Record { id: tx.id(), name: name.to_owned(), active: true, position };
        status::store::insert(tx.db(), account, &record, now).await?;
        tx.changed(status::rpc::AUDITED, record.id, &TicketStatus::from(record));
    }
    let values = channel::Values {
        name: "Support".to_owned(),
        active: true,
        position: 1,
        ..channel::Values::default()
    };
    let record = channel::Record {
        id: tx.id(),
        values,
        inbound_key: rand::random(),
        created_at: now,
        updated_at: now,
    };
    channel::store::insert(tx.db(), account, &record).await?;
    tx.changed(channel::rpc::AUDITED, record.id, &record.message(account, &OwnDomain::new("")));
    Ok(())
}
