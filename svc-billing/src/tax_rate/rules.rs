//! What makes a tax rate valid, and the order of a list of them. Pure.

use std::cmp::Reverse;

use proto::api::Fault;
use proto::billing::{TaxRateInput, TaxRateType};
use proto::{At, Faults};
use rust_decimal::Decimal;

use super::{Rate, Record};
use crate::settings_base::rules::check_code;

/// The rate that a request describes.
pub(crate) fn rate_of(input: &TaxRateInput, faults: &mut Faults) -> Rate {
    let at = At::ROOT.name("tax_rate");
    check_code(&input.code, &at.name("code"), faults);
    let amount = input.amount.parse().unwrap_or_else(|_| {
        faults.add(&at.name("amount"), Fault::NotANumber, "amount must be a percentage, for example 21");
        Decimal::ZERO
    });
    let has_amount = matches!(input.r#type(), TaxRateType::Standard | TaxRateType::Reduced);
    if !has_amount && !amount.is_zero() {
        let detail = "amount must be 0: only the types standard and reduced have another";
        faults.add(&at.name("amount"), Fault::Conflicting, detail);
    }
    Rate {
        code: input.code.clone(),
        label: input.label.clone(),
        kind: input.r#type(),
        context: input.context(),
        amount,
    }
}

/// Sales first, then by type in the order of the contract, then by falling amount.
pub(crate) fn sort(records: &mut [Record]) {
    records.sort_by(|Record { rate: a, .. }, Record { rate: b, .. }| {
        let key = |rate: &Rate| (rate.context, rate.kind, Reverse(rate.amount));
        key(a).cmp(&key(b)).then_with(|| a.code.cmp(&b.code))
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tax_rate::countries::rates_of;
    use chrono::DateTime;
    use proto::billing::TaxRateContext;

    fn faults_of(code: &str, kind: TaxRateType, amount: &str) -> Vec<(String, Fault)> {
        let input = TaxRateInput {
            code: code.into(),
            label: "x".into(),
            r#type: kind.into(),
            context: TaxRateContext::Sales.into(),
            amount: amount.into(),
        };
        let mut faults = Faults::default();
        rate_of(&input, &mut faults);
        faults.entries().iter().map(|entry| (entry.pointer.clone(), entry.code())).collect()
    }

    #[test]
    fn only_standard_and_reduced_rates_have_an_amount() {
        assert_eq!(faults_of("VAT21", TaxRateType::Standard, "21"), []);
        assert_eq!(faults_of("EXEMPT", TaxRateType::Exempt, "0"), []);
        let conflict = [("/tax_rate/amount".to_owned(), Fault::Conflicting)];
        assert_eq!(faults_of("EXEMPT", TaxRateType::Exempt, "1"), conflict);
        let no_number = [("/tax_rate/amount".to_owned(), Fault::NotANumber)];
        assert_eq!(faults_of("X", TaxRateType::Reduced, "x"), no_number);
        assert_eq!(
            faults_of("a b", TaxRateType::Zero, "0"),
            [("/tax_rate/code".to_owned(), Fault::BadFormat)]
        );
    }

    #[test]
    fn the_built_in_rates_are_in_the_order_of_the_list() {
        let stored = |rate| Record { rate, version: 1, updated_at: DateTime::UNIX_EPOCH };
        let built_in: Vec<Record> = rates_of("FR").into_iter().map(stored).collect();
        let mut mixed = built_in.clone();
        mixed.reverse();
        sort(&mut mixed);
        assert_eq!(mixed, built_in);
    }
}
