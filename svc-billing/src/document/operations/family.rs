//! An invoice together with its credits. A change of one of them may change the settlement of the others.
//!
//! The family counts the changes: a record gets one new version in a transaction, however many statements change it, and
//! when all of them are done [`Family::log`] writes the records that have changed to the log, and counts them in other lists
//! if their status is another one.

use std::collections::HashMap;

use chassis_base::Timezone;
use chassis_data::{Listing, Tx};
use chrono::{DateTime, Utc};
use proto::billing::Document;
use uuid::Uuid;

use super::at_midnight;
use crate::document::rules::settlement::{self, Claim, FamilySettlement, PaidAmount, Settlement};
use crate::document::{Kind, Links, Record, events, message, store};
use crate::error::Error;
use crate::online_payment::operations::cancel_superseded;

/// Locked until the transaction ends. A quote or workorder is a family of one.
pub(crate) struct Family {
    /// The invoice first, then its credits in the order in which they were made.
    pub records: Vec<Record>,
    /// The index of the document that was asked for.
    pub target: usize,
    /// What was paid on each record.
    paid: Vec<Vec<PaidAmount>>,
    /// Which records have the version that this transaction gives them.
    raised: Vec<bool>,
    /// The lists that each record is counted in.
    listed: Vec<Listing>,
    /// The account's time zone.
    zone: Timezone,
    links: Links,
}

impl Family {
    /// `None` when there is no such document.
    pub(crate) async fn lock(
        tx: &mut Tx<'_>,
        links: &Links,
        kind: Kind,
        id: &str,
    ) -> Result<Option<Self>, Error> {
        let Some(id) = chassis_base::id::parse(id) else { return Ok(None) };
        let (account, zone) = (tx.account(), tx.settings().timezone);
        let records = store::lock_family(tx.db(), account, kind, id).await?;
        let target = records.iter().position(|record| record.id == id);
        let (paid, raised) = (vec![Vec::new(); records.len()], vec![false; records.len()]);
        let (listed, links) = (records.iter().map(Record::listing).collect(), links.clone());
        let mut family = target.map(|target| Self { records, target, paid, raised, listed, zone, links });
        if let Some(family) = family.as_mut().filter(|_| kind == Kind::Invoice) {
            family.load_payments(tx).await?;
        }
        Ok(family)
    }

    /// A document that this transaction has just stored and listed, which has its first version.
    pub(crate) fn of_new(tx: &Tx<'_>, links: &Links, record: Record) -> Self {
        let zone = tx.settings().timezone;
        let (listed, links) = (vec![record.listing()], links.clone());
        let (records, paid, raised) = (vec![record], vec![Vec::new()], vec![true]);
        Self { records, target: 0, paid, raised, listed, zone, links }
    }

    /// Reads what was paid. To be called again after payments changed.
    pub(crate) async fn load_payments(&mut self, tx: &mut Tx<'_>) -> Result<(), Error> {
        let account = tx.account();
        let ids: Vec<_> = self.records.iter().map(|record| record.id).collect();
        let payments = store::list_received_payments(tx.db(), account, &ids).await?;
        for (paid, id) in self.paid.iter_mut().zip(&ids) {
            let own = payments.iter().filter(|payment| payment.document_id == *id);
            *paid = own.map(|payment| PaidAmount { on: payment.date, amount: payment.amount }).collect();
        }
        Ok(())
    }

    pub(crate) fn target(&self) -> &Record {
        &self.records[self.target]
    }

    pub(crate) fn target_mut(&mut self) -> &mut Record {
        &mut self.records[self.target]
    }

    /// A record that is about to be changed, with the version that this transaction gives it.
    pub(crate) fn raise(&mut self, index: usize, now: DateTime<Utc>) -> &mut Record {
        let record = &mut self.records[index];
        if !std::mem::replace(&mut self.raised[index], true) {
            record.version += 1;
            record.updated_at = now;
        }
        record
    }

    /// Stores the new version of a record of which only something changed that is stored elsewhere, such as its history.
    pub(crate) async fn touch(&mut self, tx: &mut Tx<'_>, index: usize) -> Result<(), Error> {
        let (account, now) = (tx.account(), tx.now());
        if !self.raised[index] {
            store::touch(tx.db(), account, self.raise(index, now)).await?;
        }
        Ok(())
    }

    /// Writes the records that have changed to the log, as they are shown now, and returns the message of one record,
    /// changed or not. To be called when all changes are stored.
    pub(crate) async fn log(&mut self, tx: &mut Tx<'_>, index: usize) -> Result<Document, Error> {
        let account = tx.account();
        for (record, listed) in self.records.iter().zip(&mut self.listed) {
            let listing = record.listing();
            tx.relist(listed, &listing);
            *listed = listing;
        }
        let records = || self.records.iter().zip(&self.raised).enumerate();
        let needed = records().filter(|(other, (_, is_raised))| **is_raised || *other == index);
        let ids: Vec<Uuid> = needed.map(|(_, (record, _))| record.id).collect();
        let found = store::list_full(tx.db(), account, &ids).await?;
        let shown = found.iter().map(|full| (full.record.id, message::document(account, &self.links, full)));
        let mut shown: HashMap<Uuid, Document> = shown.collect();
        for (_, (record, _)) in records().filter(|(_, (_, is_raised))| **is_raised) {
            if let Some(document) = shown.get(&record.id) {
                tx.changed(record.kind.name(), record.id, document);
            }
        }
        let record = &self.records[index];
        shown.remove(&record.id).ok_or(Error::NotFound(record.kind.name()))
    }

    /// The same with the message of the target.
    pub(crate) async fn log_target(&mut self, tx: &mut Tx<'_>) -> Result<Document, Error> {
        self.log(tx, self.target).await
    }

    /// The invoice: the target itself, or the one that the target credits.
    pub(crate) fn root(&self) -> &Record {
        &self.records[0]
    }

    /// Lists a credit that was added and is now stored.
    pub(crate) fn insert(&mut self, tx: &mut Tx<'_>, index: usize, credit: Record) {
        self.listed[index] = credit.listing();
        tx.list(&self.listed[index]);
        self.records[index] = credit;
    }

    /// Adds a credit that is about to be stored with its first version, and returns its index. See [`Family::insert`].
    pub(crate) fn add(&mut self, credit: Record) -> usize {
        self.listed.push(credit.listing());
        self.records.push(credit);
        self.paid.push(Vec::new());
        self.raised.push(true);
        self.records.len() - 1
    }

    /// The settlement of each record, in the order of the records.
    pub(crate) fn settlements(&self) -> Vec<Settlement> {
        let members = self.records.iter().zip(&self.paid);
        let claims: Vec<Claim> = members.map(|(record, paid)| claim(record, paid, self.zone)).collect();
        let Some((invoice, credits)) = claims.split_first() else { return Vec::new() };
        let FamilySettlement { invoice, credits } = settlement::of_family(invoice, credits);
        std::iter::once(invoice).chain(credits).collect()
    }

    /// The settlement of the target.
    pub(crate) fn settlement(&self) -> Option<Settlement> {
        self.settlements().into_iter().nth(self.target)
    }
}

fn claim(record: &Record, paid: &[PaidAmount], zone: Timezone) -> Claim {
    Claim {
        is_final: record.is_final,
        total: record.total_incl,
        rows: record.row_count,
        finalized_on: record.finalized_at.map(|at| at.with_timezone(&zone).date_naive()),
        payments: paid.to_vec(),
    }
}

/// Copies a settlement into a record.
pub(crate) fn apply(record: &mut Record, settlement: &Settlement) {
    record.status = settlement.status.clone();
    record.paid_at = settlement.paid_on.map(at_midnight);
    record.paid_amount = settlement.paid;
    record.open_amount = settlement.open;
    record.overpaid_amount = settlement.overpaid;
}

/// Stores the settlements of the family after a change: those of the records in `changed`, and those that differ from
/// `before`. A status that a caller set on another record stays.
pub(crate) async fn settle(
    tx: &mut Tx<'_>,
    family: &mut Family,
    before: &[Settlement],
    changed: &[usize],
) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    for (index, settlement) in family.settlements().iter().enumerate() {
        if !changed.contains(&index) && before.get(index) == Some(settlement) {
            continue;
        }
        let record = family.raise(index, now);
        let from = record.status.clone();
        apply(record, settlement);
        store::update_settlement(tx.db(), account, record, settlement).await?;
        if record.kind == Kind::Invoice {
            cancel_superseded(tx, record.id, record.open_amount).await?;
        }
        events::status_changed(tx, record, &from).await?;
    }
    Ok(())
}
