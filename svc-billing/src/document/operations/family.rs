//! An invoice together with its credits: what changes one of them may change where the others stand.

use chassis_data::Tx;
use chrono::NaiveDate;
use chrono_tz::Tz;
use rust_decimal::Decimal;

use super::{at_midnight, audit};
use crate::document::rules::standing::{self, Claim, Standing};
use crate::document::{Kind, Record, events, store};
use crate::{Error, online, payment};

/// Locked until the transaction ends. Quotes and workorders are families of one.
pub struct Family {
    /// The invoice first, then its credits in the order in which they were made.
    pub records: Vec<Record>,
    /// The one that was asked for.
    pub target: usize,
    /// What was paid on each.
    paid: Vec<Vec<(NaiveDate, Decimal)>>,
    /// The account's, which tells days apart.
    zone: Tz,
}

impl Family {
    /// `None` when there is no such document.
    pub async fn lock(tx: &mut Tx<'_>, kind: Kind, id: &str) -> Result<Option<Self>, Error> {
        let Some(id) = chassis_base::id::parse(id) else { return Ok(None) };
        let (account, zone) = (tx.account(), tx.settings().timezone);
        let records = store::lock_family(tx.db(), account, kind, id).await?;
        let target = records.iter().position(|record| record.id == id);
        let paid = vec![Vec::new(); records.len()];
        let mut family = target.map(|target| Self { records, target, paid, zone });
        if let Some(family) = family.as_mut().filter(|_| kind == Kind::Invoice) {
            family.load_payments(tx).await?;
        }
        Ok(family)
    }

    /// Reads what was paid, again after it changed.
    pub async fn load_payments(&mut self, tx: &mut Tx<'_>) -> Result<(), Error> {
        let account = tx.account();
        let ids: Vec<_> = self.records.iter().map(|record| record.id).collect();
        let payments = payment::store::list_paid(tx.db(), account, &ids).await?;
        for (paid, id) in self.paid.iter_mut().zip(&ids) {
            let own = payments.iter().filter(|payment| payment.0 == *id);
            *paid = own.map(|(_, day, amount)| (*day, *amount)).collect();
        }
        Ok(())
    }

    pub fn target(&self) -> &Record {
        &self.records[self.target]
    }

    pub fn target_mut(&mut self) -> &mut Record {
        &mut self.records[self.target]
    }

    /// The invoice that the target credits.
    pub fn root(&self) -> &Record {
        &self.records[0]
    }

    /// Adds a credit that is about to be stored.
    pub fn add(&mut self, credit: Record) {
        self.records.push(credit);
        self.paid.push(Vec::new());
    }

    /// Where each stands, in the order of the records.
    pub fn standings(&self) -> Vec<Standing> {
        let members = self.records.iter().zip(&self.paid);
        let claims: Vec<Claim> = members.map(|(record, paid)| claim(record, paid, self.zone)).collect();
        let Some((invoice, credits)) = claims.split_first() else { return Vec::new() };
        let (standing, credits) = standing::of_family(invoice, credits);
        std::iter::once(standing).chain(credits).collect()
    }

    pub fn standing(&self) -> Option<Standing> {
        self.standings().into_iter().nth(self.target)
    }
}

fn claim(record: &Record, paid: &[(NaiveDate, Decimal)], zone: Tz) -> Claim {
    Claim {
        is_final: record.is_final,
        total: record.total_incl,
        rows: record.row_count,
        finalized_on: record.finalized_at.map(|at| at.with_timezone(&zone).date_naive()),
        payments: paid.to_vec(),
    }
}

/// Gives a record the status of its standing.
pub fn apply(record: &mut Record, standing: &Standing) {
    standing.status.clone_into(&mut record.payment_status);
    record.paid_at = standing.paid_on.map(at_midnight);
    record.paid_amount = standing.paid;
    record.open_amount = standing.open;
    record.overpaid_amount = standing.overpaid;
}

/// Stores where the family stands after a change: the members that were changed themselves, and those whose standing is
/// no longer what it was `before`. A status that was set by hand on another member stays.
pub async fn settle(
    tx: &mut Tx<'_>,
    family: &mut Family,
    before: &[Standing],
    changed: &[usize],
) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    for (index, standing) in family.standings().iter().enumerate() {
        if !changed.contains(&index) && before.get(index) == Some(standing) {
            continue;
        }
        let record = &mut family.records[index];
        let from = record.payment_status.clone();
        apply(record, standing);
        record.version += 1;
        record.updated_at = now;
        store::update_standing(tx.db(), account, record, standing).await?;
        audit(tx, record);
        if record.kind == Kind::Invoice {
            online::follow_invoice(tx, record.id, record.open_amount).await?;
        }
        events::status_changed(tx, record, &from).await?;
    }
    Ok(())
}
