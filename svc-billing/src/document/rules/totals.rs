//! The totals that a create request may carry. Beside rows they must agree with them; without rows they are the document.

use proto::api::Fault;
use proto::billing::DocumentInput;
use proto::{At, Faults};
use render::paper::Category;
use rust_decimal::Decimal;

use super::amounts::{Amounts, LIMIT, Row, share, two_places, vat_of, without_vat};
use super::input::{default_rate, number, of_percent, of_rate};
use crate::settings::SalesRate;

pub struct Totals {
    subtotal: Option<Decimal>,
    vat_rate: Option<Decimal>,
    vat: Option<Decimal>,
    excl: Option<Decimal>,
    incl: Option<Decimal>,
}

/// A rate in percent, its code and its category.
type Rate = (Decimal, String, Category);

impl Totals {
    pub fn of(given: &DocumentInput) -> Self {
        Self {
            subtotal: number(&given.subtotal),
            vat_rate: number(&given.vat_rate),
            vat: number(&given.vat_amount),
            excl: number(&given.total_excl_vat),
            incl: number(&given.total_incl_vat),
        }
    }

    /// The one row that totals alone make, and what it comes to: exactly what was sent. `None` when too little was sent
    /// to tell, or when what was sent cannot be.
    pub fn as_row(
        &self,
        title: &str,
        rates: &[SalesRate],
        at: &At<'_>,
        faults: &mut Faults,
    ) -> Option<(Row, Amounts)> {
        if let Some(rate) = self.vat_rate.filter(|rate| !is_rate(*rate)) {
            let detail = format!("vat_rate is {rate}, but must be from 0 to 100");
            faults.add(&at.name("vat_rate"), Fault::OutOfRange, detail);
            return None;
        }
        let excl = self.excl.or(self.subtotal).or_else(|| self.incl?.checked_sub(self.vat?));
        let vat = self.vat.or_else(|| self.incl?.checked_sub(excl?));
        let ((vat_rate, vat_code, category), excl, vat) = match (excl, vat, self.incl) {
            (Some(excl), Some(vat), _) => (self.explained(excl, vat, rates, at, faults)?, excl, vat),
            (Some(excl), None, _) => {
                let rate = self.asked(rates);
                let vat = vat_of(excl, rate.0);
                (rate, excl, vat)
            }
            (None, _, Some(incl)) => {
                let rate = self.asked(rates);
                let excl = without_vat(incl, rate.0);
                (rate, excl, incl.saturating_sub(excl))
            }
            (None, ..) => return None,
        };
        let incl = excl.checked_add(vat)?;
        let (excl, vat, incl) = (two_places(excl), two_places(vat), two_places(incl));
        let amounts = Amounts { excl, vat, incl, rate: vat_rate };
        if !amounts.fit() {
            let (name, _) = self.largest();
            let detail = format!("{name} must leave all totals below {LIMIT}");
            faults.add(&at.name(name), Fault::OutOfRange, detail);
        }
        self.compare(&amounts, at, faults);
        let row = Row {
            name: title.to_owned(),
            description: String::new(),
            quantity: Decimal::ONE,
            unit: String::new(),
            unit_price: excl.normalize(),
            vat_rate,
            vat_code,
            category,
        };
        Some((row, amounts))
    }

    /// The rate that was sent, else the account's default.
    fn asked(&self, rates: &[SalesRate]) -> Rate {
        self.vat_rate.map_or_else(|| default_rate(rates), |percent| of_percent(percent, rates))
    }

    /// The rate of known amounts: the one that was sent, if it is theirs; else the one of the account that explains them
    /// to the cent, the default first and then the nearest; else what they come to.
    fn explained(
        &self,
        excl: Decimal,
        vat: Decimal,
        rates: &[SalesRate],
        at: &At<'_>,
        faults: &mut Faults,
    ) -> Option<Rate> {
        let explains =
            |rate: Decimal| vat == vat_of(excl, rate) || excl == without_vat(excl.saturating_add(vat), rate);
        let blended = share(vat, excl);
        if let Some(sent) = self.vat_rate {
            if explains(sent) || blended == Some(sent.normalize()) {
                return Some(of_percent(sent, rates));
            }
            let detail = format!(
                "vat_rate is {sent}, but {vat} is not that much of {excl}; leave it out or correct it"
            );
            faults.add(&at.name("vat_rate"), Fault::Conflicting, detail);
            return None;
        }
        let default = default_rate(rates);
        if explains(default.0) {
            return Some(default);
        }
        let off = |rate: &&SalesRate| {
            let exact = excl.saturating_mul(rate.amount) / Decimal::ONE_HUNDRED;
            exact.saturating_sub(vat).abs()
        };
        // That VAT is due elsewhere, or not at all, is never guessed.
        let known = rates.iter().filter(|rate| matches!(rate.category, Category::S | Category::Z));
        if let Some(rate) = known.filter(|rate| explains(rate.amount)).min_by_key(off) {
            return Some(of_rate(rate));
        }
        let possible = blended.filter(|rate| is_rate(*rate));
        if possible.is_none() {
            let (name, sent) = self.largest();
            let detail = format!("{name} is {sent}, but VAT of {vat} on {excl} is no rate from 0 to 100");
            faults.add(&at.name(name), Fault::Conflicting, detail);
        }
        possible.map(|rate| of_percent(rate, rates))
    }

    /// The total that says most, to point at.
    fn largest(&self) -> (&'static str, Decimal) {
        let names = [
            ("total_incl_vat", self.incl),
            ("vat_amount", self.vat),
            ("total_excl_vat", self.excl),
            ("subtotal", self.subtotal),
        ];
        let sent = names.into_iter().find_map(|(name, sent)| Some((name, sent?)));
        sent.unwrap_or(("total_incl_vat", Decimal::ZERO))
    }

    /// What was sent must be what the document comes to.
    pub fn compare(&self, computed: &Amounts, at: &At<'_>, faults: &mut Faults) {
        let pairs = [
            ("subtotal", self.subtotal, computed.excl),
            ("vat_rate", self.vat_rate, computed.rate),
            ("vat_amount", self.vat, computed.vat),
            ("total_excl_vat", self.excl, computed.excl),
            ("total_incl_vat", self.incl, computed.incl),
        ];
        for (name, sent, computed) in pairs {
            if let Some(sent) = sent.filter(|sent| *sent != computed) {
                let shown = if name == "vat_rate" { computed } else { two_places(computed) };
                let detail =
                    format!("{name} is {sent}, but the rows come to {shown}; leave it out or correct it");
                faults.add(&at.name(name), Fault::Conflicting, detail);
            }
        }
    }
}

fn is_rate(percent: Decimal) -> bool {
    (Decimal::ZERO..=Decimal::ONE_HUNDRED).contains(&percent)
}

#[cfg(test)]
#[path = "totals_tests.rs"]
mod tests;
