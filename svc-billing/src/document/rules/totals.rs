//! The totals that a create request may have. With rows they must agree with the rows; without rows they define the
//! document.

use proto::api::Fault;
use proto::billing::DocumentInput;
use proto::{At, Faults};
use render::printed::Category;
use rust_decimal::Decimal;

use super::amounts::{Amounts, Content, LIMIT, Row, number, share, vat_of, without_vat};
use super::vat_rate::VatRate;
use crate::money::two_places;
use crate::settings::SalesRate;

pub(crate) struct Totals {
    subtotal: Option<Decimal>,
    vat_rate: Option<Decimal>,
    vat: Option<Decimal>,
    excl: Option<Decimal>,
    incl: Option<Decimal>,
}

impl Totals {
    pub(crate) fn of(given: &DocumentInput) -> Self {
        Self {
            subtotal: number(&given.subtotal),
            vat_rate: number(&given.vat_rate),
            vat: number(&given.vat_amount),
            excl: number(&given.total_excl_vat),
            incl: number(&given.total_incl_vat),
        }
    }

    /// The one row of a document that was sent as totals alone, with exactly these totals. `None` when too little was sent,
    /// or when the totals contradict each other.
    pub(crate) fn as_content(
        &self,
        title: &str,
        rates: &[SalesRate],
        at: &At<'_>,
        faults: &mut Faults,
    ) -> Option<Content> {
        if let Some(rate) = self.vat_rate.filter(|rate| !is_rate(*rate)) {
            let detail = format!("vat_rate is {rate}, but must be from 0 to 100");
            faults.add(&at.name("vat_rate"), Fault::OutOfRange, detail);
            return None;
        }
        let excl = self.excl.or(self.subtotal).or_else(|| self.incl?.checked_sub(self.vat?));
        let vat = self.vat.or_else(|| self.incl?.checked_sub(excl?));
        let (rate, excl, vat) = match (excl, vat, self.incl) {
            (Some(excl), Some(vat), _) => (self.matching_rate(excl, vat, rates, at, faults)?, excl, vat),
            (Some(excl), None, _) => {
                let rate = self.given_rate(rates);
                let vat = vat_of(excl, rate.percent);
                (rate, excl, vat)
            }
            (None, _, Some(incl)) => {
                let rate = self.given_rate(rates);
                let excl = without_vat(incl, rate.percent);
                (rate, excl, incl.saturating_sub(excl))
            }
            (None, ..) => return None,
        };
        let incl = excl.checked_add(vat)?;
        let (excl, vat, incl) = (two_places(excl), two_places(vat), two_places(incl));
        let amounts = Amounts { excl, vat, incl, rate: rate.percent };
        if !amounts.fit() {
            let (name, _) = self.main_total();
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
            vat_rate: rate.percent,
            vat_code: rate.code,
            category: rate.category,
        };
        Some(Content { rows: vec![row], amounts })
    }

    /// The rate that was sent, else the account's default.
    fn given_rate(&self, rates: &[SalesRate]) -> VatRate {
        self.vat_rate
            .map_or_else(|| VatRate::default_of(rates), |percent| VatRate::of_percent(percent, rates))
    }

    /// The rate that fits known amounts: the one that was sent, if it does; else the one of the account that fits them to
    /// the cent, the default first and then the nearest; else their ratio.
    fn matching_rate(
        &self,
        excl: Decimal,
        vat: Decimal,
        rates: &[SalesRate],
        at: &At<'_>,
        faults: &mut Faults,
    ) -> Option<VatRate> {
        let fits =
            |rate: Decimal| vat == vat_of(excl, rate) || excl == without_vat(excl.saturating_add(vat), rate);
        let blended = share(vat, excl);
        if let Some(sent) = self.vat_rate {
            if fits(sent) || blended == Some(sent.normalize()) {
                return Some(VatRate::of_percent(sent, rates));
            }
            let detail = format!(
                "vat_rate is {sent}, but {vat} is not that much of {excl}; leave it out or correct it"
            );
            faults.add(&at.name("vat_rate"), Fault::Conflicting, detail);
            return None;
        }
        let default = VatRate::default_of(rates);
        if fits(default.percent) {
            return Some(default);
        }
        let off = |rate: &&SalesRate| {
            let exact = excl.saturating_mul(rate.amount) / Decimal::ONE_HUNDRED;
            exact.saturating_sub(vat).abs()
        };
        // Reverse charge, export and the like have legal consequences, so they are never guessed.
        let ordinary = rates.iter().filter(|rate| matches!(rate.category, Category::S | Category::Z));
        if let Some(rate) = ordinary.filter(|rate| fits(rate.amount)).min_by_key(off) {
            return Some(rate.into());
        }
        let possible = blended.filter(|rate| is_rate(*rate));
        if possible.is_none() {
            let (name, sent) = self.main_total();
            let detail = format!("{name} is {sent}, but VAT of {vat} on {excl} is not a rate from 0 to 100");
            faults.add(&at.name(name), Fault::Conflicting, detail);
        }
        possible.map(|rate| VatRate::of_percent(rate, rates))
    }

    /// The total that an error points at: the most comprehensive one that was sent.
    fn main_total(&self) -> (&'static str, Decimal) {
        let names = [
            ("total_incl_vat", self.incl),
            ("vat_amount", self.vat),
            ("total_excl_vat", self.excl),
            ("subtotal", self.subtotal),
        ];
        let sent = names.into_iter().find_map(|(name, sent)| Some((name, sent?)));
        sent.unwrap_or(("total_incl_vat", Decimal::ZERO))
    }

    /// Reports totals that differ from the computed ones.
    pub(crate) fn compare(&self, computed: &Amounts, at: &At<'_>, faults: &mut Faults) {
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
