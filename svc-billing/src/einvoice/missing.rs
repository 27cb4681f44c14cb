//! What a document lacks for the official rules. The names are part of the public contract: names are added, never
//! removed.

use chrono::{Datelike, NaiveDate};
use render::PrintedDocument;
use render::printed::{Category, Kind, Party, Row, Vat};
use rust_decimal::Decimal;

use super::codes::{is_country, is_currency};
use super::identity::{Identity, compact};
use super::xml::clean;
use super::{is_credit, is_outside_scope};

/// Sellers there need more than a printed document holds, such as a number from the tax office on each invoice.
const OWN_RULES: [&str; 5] = ["DK", "GR", "IS", "NO", "SE"];

/// The names of what is missing or not usable as it is (such as a chamber of commerce number of seven digits). Empty
/// when the official validator accepts what [`super::ubl::write`] writes.
///
/// The names, in this order: `kind`, `number`, `date`, `due_date`, `currency`, `credits`; of the seller `name`, `address`,
/// `zipcode`, `city`, `country`, `registration_number`, `vat_number`, `contact`, `phone`, `email`, `endpoint`,
/// `creditor_identifier`, `iban`; of the buyer `name`, `address`, `zipcode`, `city`, `country`, `vat_number`, `endpoint`;
/// `rows`, `rows.name`, `rows.vat_category`, `rows.vat_rate`, `totals`. An `endpoint` is an address on the Peppol network,
/// which follows from a registration or VAT number.
pub fn missing(printed: &PrintedDocument) -> Vec<&'static str> {
    let check = Check {
        printed,
        seller: Identity::of(&printed.seller),
        buyer: Identity::of(&printed.buyer),
        names: Vec::new(),
    };
    check.all()
}

struct Check<'a> {
    printed: &'a PrintedDocument,
    seller: Identity,
    buyer: Identity,
    names: Vec<&'static str>,
}

impl Check<'_> {
    fn all(mut self) -> Vec<&'static str> {
        self.document();
        self.seller();
        self.buyer();
        self.rows();
        self.names
    }

    fn need(&mut self, is_there: bool, name: &'static str) {
        if !is_there {
            self.names.push(name);
        }
    }

    fn need_text(&mut self, text: &str, name: &'static str) {
        self.need(!clean(text).is_empty(), name);
    }

    fn document(&mut self) {
        let printed = self.printed;
        self.need(matches!(printed.kind, Kind::Invoice | Kind::Credit), "kind");
        self.need_text(&printed.number, "number");
        self.need(is_writable(printed.date), "date");
        self.need(is_writable(printed.due_date), "due_date");
        self.need(is_currency(&printed.currency), "currency");
        let original = printed.credits.as_ref();
        let is_named = original.is_some_and(|of| !clean(&of.number).is_empty());
        let is_dated = original.is_none_or(|of| is_writable(of.date));
        self.need((is_named || !is_credit(printed)) && is_dated, "credits");
    }

    fn seller(&mut self) {
        let (printed, seller) = (self.printed, &self.printed.seller);
        let countries = [self.seller.country.as_str(), self.seller.tax_country()];
        let is_known = is_country(countries[0]) && !countries.iter().any(|of| OWN_RULES.contains(of));
        let (is_dutch, is_italian) = (countries[0] == "NL", countries[1] == "IT");
        let has_vat = self.seller.vat.is_some() || is_outside_scope(printed);
        let needs_legal = is_dutch || is_outside_scope(printed);
        let has_legal = self.seller.legal.is_some();
        let is_reachable = self.seller.is_reachable();

        self.need_text(&seller.name, "seller.name");
        if is_dutch || is_italian || self.is_german() {
            self.address(seller, ["seller.address", "seller.zipcode", "seller.city"]);
        }
        self.need(is_known, "seller.country");
        self.need(has_legal || !needs_legal, "seller.registration_number");
        self.need(has_vat, "seller.vat_number");
        if self.is_german() {
            self.need_text(&seller.contact, "seller.contact");
            self.need_text(&seller.phone, "seller.phone");
            self.need_text(&seller.email, "seller.email");
        }
        self.need(is_reachable, "seller.endpoint");
        // A positive total is paid by the buyer. That holds for a credit too, whose total is normally negative.
        let is_paid_by_buyer = printed.total_incl > Decimal::ZERO;
        let is_collected = printed.collection.is_some() && !is_credit(printed);
        // The German rules ask for a creditor identifier and the debtor's account, which a printed document does not hold.
        self.need(!is_collected || !self.is_german(), "seller.creditor_identifier");
        let needs_iban = !is_collected && (self.is_german() || (is_dutch && is_paid_by_buyer));
        self.need(!needs_iban || !compact(&printed.bank.iban).is_empty(), "seller.iban");
    }

    fn buyer(&mut self) {
        let buyer = &self.printed.buyer;
        let has = |category| self.printed.rows.iter().any(|row| row.category == category);
        let needs_vat = has(Category::AE) || has(Category::K);
        let (has_country, has_vat) = (is_country(&self.buyer.country), self.buyer.vat.is_some());
        let is_dutch = self.seller.country == "NL" && self.buyer.country == "NL";
        let is_reachable = self.buyer.is_reachable();

        self.need_text(&buyer.name, "buyer.name");
        if is_dutch || self.is_german() {
            self.address(buyer, ["buyer.address", "buyer.zipcode", "buyer.city"]);
        }
        self.need(has_country, "buyer.country");
        self.need(has_vat || !needs_vat, "buyer.vat_number");
        self.need(is_reachable, "buyer.endpoint");
    }

    fn address(&mut self, party: &Party, [address, zipcode, city]: [&'static str; 3]) {
        self.need_text(&party.address, address);
        self.need_text(&party.zipcode, zipcode);
        self.need_text(&party.city, city);
    }

    fn rows(&mut self) {
        let printed = self.printed;
        let is_mixed =
            !is_outside_scope(printed) && printed.rows.iter().any(|row| row.category == Category::O);
        self.need(!printed.rows.is_empty(), "rows");
        self.need(printed.rows.iter().all(|row| !clean(&row.name).is_empty()), "rows.name");
        self.need(!is_mixed, "rows.vat_category");
        self.need(printed.rows.iter().all(|row| is_rate_of(row.category, row.vat_rate)), "rows.vat_rate");
        self.need(adds_up(printed).unwrap_or(false), "totals");
    }

    /// Between two German parties the rules of Germany apply.
    fn is_german(&self) -> bool {
        self.seller.country == "DE" && self.buyer.country == "DE"
    }
}

/// The rules allow only years of four digits.
fn is_writable(date: NaiveDate) -> bool {
    (1000..=9999).contains(&date.year())
}

fn is_rate_of(category: Category, rate: Decimal) -> bool {
    if category == Category::S { rate > Decimal::ZERO } else { rate.is_zero() }
}

fn is_cents(amount: Decimal) -> bool {
    amount == amount.round_dp(2)
}

fn sum(amounts: impl Iterator<Item = Decimal>) -> Option<Decimal> {
    amounts.into_iter().try_fold(Decimal::ZERO, Decimal::checked_add)
}

/// Whether the totals are the sums of their parts. `None` when a number is too large to compute with.
fn adds_up(printed: &PrintedDocument) -> Option<bool> {
    for row in &printed.rows {
        let exact = row.quantity.checked_mul(row.unit_price)?;
        let difference = exact.checked_sub(row.total_excl)?.abs();
        if !is_cents(row.total_excl) || difference > Decimal::new(2, 2) {
            return Some(false);
        }
    }
    for (at, vat) in printed.vat.iter().enumerate() {
        let is_double = printed.vat[..at].iter().any(|other| is_same(other, vat.category, vat.rate));
        let mut own = printed.rows.iter().filter(|row| is_same(vat, row.category, row.vat_rate)).peekable();
        let has_rows = own.peek().is_some();
        if is_double || !has_rows || sum(own.map(|row| row.total_excl))? != vat.taxable || !is_vat_right(vat)?
        {
            return Some(false);
        }
    }
    let is_covered = |row: &Row| printed.vat.iter().any(|vat| is_same(vat, row.category, row.vat_rate));
    Some(
        printed.rows.iter().all(is_covered)
            && sum(printed.rows.iter().map(|row| row.total_excl))? == printed.total_excl
            && sum(printed.vat.iter().map(|vat| vat.vat))? == printed.total_vat
            && printed.total_excl.checked_add(printed.total_vat)? == printed.total_incl,
    )
}

fn is_same(vat: &Vat, category: Category, rate: Decimal) -> bool {
    vat.category == category && vat.rate == rate
}

/// As near as the official rules want it, which is less than 1.00; a rate that rounds to 0 % counts as none there.
fn is_vat_right(vat: &Vat) -> Option<bool> {
    let half = Decimal::new(5, 1);
    let exact = vat.taxable.checked_mul(vat.rate)?.checked_div(Decimal::ONE_HUNDRED)?;
    let difference = vat.vat.checked_sub(exact)?.abs();
    let is_near = if vat.rate < half { vat.vat.abs() < half } else { difference < Decimal::new(99, 2) };
    let is_none = vat.category == Category::S || vat.vat.is_zero();
    Some(is_cents(vat.vat) && is_near && is_none)
}
