//! Checked against a model that assigns whole cents, one at a time; and by examples.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::*;

#[path = "settlement_model.rs"]
mod model;
use model::{FINALIZED, InCents, Plot, Step, day, expected, in_cents};

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let on = || prop_oneof![3 => Just(0_usize), 2 => 0..4_usize];
    let cents = || prop_oneof![1..60_i64, Just(50), Just(100)];
    let off = || prop_oneof![4 => Just(0_i64), 1 => -1..=1_i64];
    let step = prop_oneof![
        4 => (on(), 0..30_u64, cents()).prop_map(|(on, day, cents)| Step::Pay { on, day, cents }),
        1 => (on(), 0..4_usize).prop_map(|(on, which)| Step::Unpay { on, which }),
        1 => (on(), 0..4_usize, 0..30_u64, cents())
            .prop_map(|(on, which, day, cents)| Step::Repay { on, which, day, cents }),
        2 => (0..32_u32, off()).prop_map(|(mask, off)| Step::CreditSome { mask, off }),
        1 => off().prop_map(|off| Step::CreditRest { off }),
        2 => (0..4_usize).prop_map(|which| Step::Finalize { which }),
    ];
    prop::collection::vec(step, 0..10)
}

/// Invoices of any sign: most have rows of one sign, some of both, some a total of zero.
fn plots() -> impl Strategy<Value = Plot> {
    let rows = prop_oneof![
        3 => prop::collection::vec(1..80_i64, 1..5),
        1 => prop::collection::vec(-80..0_i64, 1..5),
        2 => prop::collection::vec(-80..80_i64, 1..5),
        1 => (1..80_i64).prop_map(|cents| vec![cents, -cents]),
        1 => Just(vec![0]),
    ];
    (rows, prop::bool::weighted(0.8)).prop_map(|(rows, is_final)| Plot::new(rows, is_final))
}

/// The same cases on every run, so that a failure can be looked into.
fn check<S: Strategy>(strategy: &S, test: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let config = Config { cases: 4_000, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    runner.run(strategy, test).unwrap();
}

#[test]
fn every_sequence_of_operations_gives_the_settlement_of_the_model() {
    check(&(plots(), steps()), |(mut plot, steps)| {
        for step in &steps {
            plot.step(step);
            let settlements: Vec<_> = plot.settlements().iter().map(in_cents).collect();
            prop_assert_eq!(settlements, expected(&plot), "after {:?} of {:?}", step, steps);
        }
        Ok(())
    });
}

#[test]
fn what_was_paid_is_settled_or_overpaid_or_refunded() {
    check(&(plots(), steps()), |(mut plot, steps)| {
        for step in &steps {
            plot.step(step);
        }
        let sign = plot.sign();
        let settlements: Vec<_> = plot.settlements().iter().map(in_cents).collect();
        let InCents { paid, open, overpaid, .. } = settlements[0];
        let finals = || plot.members[1..].iter().filter(|credit| credit.is_final);
        let all = finals().next().is_some()
            && finals().map(|credit| credit.rows).sum::<i32>() == plot.members[0].rows;
        let credited: i64 = finals().map(|credit| credit.total).sum();
        let owed = if all { 0 } else { (plot.members[0].total + credited) * sign };
        let settled = owed - open * sign;
        // What is refunded over the credits. A payment on a credit that raises the debt counts for the invoice.
        let asks = |plain: &model::Plain| plain.is_final && plain.total * sign > 0;
        let others = || plot.members[1..].iter().zip(&settlements[1..]);
        let back: i64 = others()
            .filter(|(credit, _)| !asks(credit))
            .map(|(_, of)| -(of.paid + of.open - of.overpaid) * sign)
            .sum();
        let with: i64 = others().filter(|(credit, _)| asks(credit)).map(|(_, of)| of.paid * sign).sum();
        // With a negative debt `settled` is negative as well, and is refunded too.
        prop_assert_eq!(paid * sign + with, settled + overpaid * sign + back, "{:?}", plot);
        Ok(())
    });
}

#[test]
fn the_order_in_which_payments_were_added_does_not_matter() {
    check(&(plots(), steps(), 0..1000_usize), |(mut plot, steps, turn)| {
        for step in &steps {
            plot.step(step);
        }
        let mut turned = plot.clone();
        for member in &mut turned.members {
            member.payments.reverse();
            if !member.payments.is_empty() {
                let by = turn % member.payments.len();
                member.payments.rotate_left(by);
            }
        }
        prop_assert_eq!(plot.settlements(), turned.settlements());
        Ok(())
    });
}

#[test]
fn a_removed_payment_leaves_the_settlement_as_it_was() {
    check(&(plots(), steps(), 0..4_usize, 1..90_i64), |(mut plot, steps, on, cents)| {
        for step in &steps {
            plot.step(step);
        }
        let before = plot.settlements();
        plot.step(&Step::Pay { on, day: 3, cents });
        let on = on % plot.members.len();
        plot.members[on].payments.pop();
        prop_assert_eq!(before, plot.settlements());
        Ok(())
    });
}

/// A final invoice of these rows, and what was done with it.
fn settled(rows: &[i64], steps: &[Step]) -> Vec<(Status, i64, i64, i64)> {
    let mut plot = Plot::new(rows.to_vec(), true);
    for step in steps {
        plot.step(step);
    }
    let all = plot.settlements();
    all.iter().map(in_cents).map(|of| (of.status, of.paid, of.open, of.overpaid)).collect()
}

fn is(status: Status, paid: i64, open: i64, overpaid: i64) -> (Status, i64, i64, i64) {
    (status, paid, open, overpaid)
}

const fn pay(on: usize, cents: i64) -> Step {
    Step::Pay { on, day: 1, cents }
}

const ROW_0: Step = Step::CreditSome { mask: 1, off: 0 };
const REST: Step = Step::CreditRest { off: 0 };

#[test]
fn an_invoice_is_open_then_partially_paid_then_paid() {
    assert_eq!(settled(&[100], &[]), [is(Status::Open, 0, 100, 0)]);
    assert_eq!(settled(&[100], &[pay(0, 40)]), [is(Status::PartiallyPaid, 40, 60, 0)]);
    assert_eq!(settled(&[100], &[pay(0, 40), pay(0, 60)]), [is(Status::Paid, 100, 0, 0)]);
    assert_eq!(settled(&[100], &[pay(0, 130)]), [is(Status::Paid, 130, 0, 30)]);
    assert_eq!(settled(&[-100], &[pay(0, 40)]), [is(Status::PartiallyPaid, -40, -60, 0)]);
    assert_eq!(settled(&[-100], &[pay(0, 130)]), [is(Status::Paid, -130, 0, -30)]);
}

#[test]
fn it_is_paid_on_the_day_that_reached_the_total() {
    let mut plot = Plot::new(vec![100], true);
    for (on, cents) in [(20, 60), (5, 30), (12, 10)] {
        plot.step(&Step::Pay { on: 0, day: on, cents });
    }
    assert_eq!(plot.settlements()[0].paid_on, Some(day(20)));
    plot.step(&Step::Pay { on: 0, day: 6, cents: 60 });
    assert_eq!(plot.settlements()[0].paid_on, Some(day(12)), "30 + 60 + 10");
}

#[test]
fn a_partial_credit_lowers_what_is_open_and_the_rest_can_be_paid() {
    assert_eq!(
        settled(&[40, 60], &[ROW_0]),
        [is(Status::PartiallyCredited, 0, 60, 0), is(Status::Credited, 0, 0, 0)]
    );
    let partly = settled(&[40, 60], &[ROW_0, pay(0, 20)]);
    assert_eq!(partly, [is(Status::PartiallyPaid, 20, 40, 0), is(Status::Credited, 0, 0, 0)]);
    assert_eq!(
        settled(&[40, 60], &[ROW_0, pay(0, 60)]),
        [is(Status::Paid, 60, 0, 0), is(Status::Credited, 0, 0, 0)]
    );
}

#[test]
fn a_credit_of_a_paid_invoice_is_open_until_it_is_refunded() {
    assert_eq!(
        settled(&[100], &[pay(0, 100), REST]),
        [is(Status::Credited, 100, 0, 0), is(Status::Open, 0, -100, 0)]
    );
    let partly = settled(&[100], &[pay(0, 100), REST, pay(1, 30)]);
    assert_eq!(partly, [is(Status::Credited, 100, 0, 0), is(Status::PartiallyPaid, -30, -70, 0)]);
    let refunded = settled(&[100], &[pay(0, 100), REST, pay(1, 100)]);
    assert_eq!(refunded, [is(Status::Credited, 100, 0, 0), is(Status::Paid, -100, 0, 0)]);
    let half = settled(&[40, 60], &[pay(0, 100), ROW_0]);
    assert_eq!(half, [is(Status::Paid, 100, 0, 0), is(Status::Open, 0, -40, 0)]);
}

#[test]
fn a_credit_before_any_payment_is_credited_and_so_is_the_invoice() {
    assert_eq!(settled(&[100], &[REST]), [is(Status::Credited, 0, 0, 0), is(Status::Credited, 0, 0, 0)]);
    let in_two = settled(&[40, 60], &[ROW_0, REST]);
    assert_eq!(
        in_two,
        [is(Status::Credited, 0, 0, 0), is(Status::Credited, 0, 0, 0), is(Status::Credited, 0, 0, 0)]
    );
}

#[test]
fn a_fully_credited_invoice_stays_credited_and_a_late_payment_is_to_be_refunded() {
    assert_eq!(
        settled(&[100], &[REST, pay(0, 70)]),
        [is(Status::Credited, 70, 0, 0), is(Status::Open, 0, -70, 0)]
    );
    assert_eq!(
        settled(&[100], &[REST, pay(0, 130)]),
        [is(Status::Credited, 130, 0, 30), is(Status::Open, 0, -100, 0)]
    );
}

#[test]
fn an_invoice_of_zero_is_paid_when_it_becomes_final() {
    assert_eq!(settled(&[0], &[]), [is(Status::Paid, 0, 0, 0)]);
    let plot = Plot::new(vec![50, -50], true);
    assert_eq!(plot.settlements()[0].paid_on, Some(day(FINALIZED)));
    assert_eq!(settled(&[0], &[REST]), [is(Status::Credited, 0, 0, 0), is(Status::Credited, 0, 0, 0)]);
}

#[test]
fn drafts_stay_drafts_and_their_credits_do_not_count() {
    let mut plot = Plot::new(vec![100], false);
    plot.step(&pay(0, 100));
    plot.step(&REST);
    let statuses =
        |plot: &Plot| plot.settlements().into_iter().map(|settlement| settlement.status).collect::<Vec<_>>();
    assert_eq!(statuses(&plot), [Status::Draft, Status::Draft]);
    plot.step(&Step::Finalize { which: 0 });
    assert_eq!(statuses(&plot), [Status::Paid, Status::Draft]);
    plot.step(&Step::Finalize { which: 1 });
    assert_eq!(statuses(&plot), [Status::Credited, Status::Open]);
}

#[test]
fn credits_of_some_rows_each_may_differ_from_the_whole_by_cents() {
    let less = [pay(0, 100), Step::CreditSome { mask: 1, off: 1 }, REST];
    let fully = settled(&[40, 60], &less);
    assert_eq!(
        fully,
        [is(Status::Credited, 100, 0, 1), is(Status::Open, 0, -39, 0), is(Status::Open, 0, -60, 0)],
        "a cent is left"
    );
    let more = [pay(0, 100), Step::CreditSome { mask: 1, off: -1 }, REST];
    let fully = settled(&[40, 60], &more);
    assert_eq!(
        fully,
        [is(Status::Credited, 100, 0, 0), is(Status::Open, 0, -40, 0), is(Status::Open, 0, -60, 0)],
        "a cent too many"
    );
    let unpaid = settled(&[40, 60], &[Step::CreditSome { mask: 1, off: 1 }, REST]);
    assert_eq!(
        unpaid,
        [is(Status::Credited, 0, 0, 0), is(Status::Credited, 0, 0, 0), is(Status::Credited, 0, 0, 0)]
    );
}

#[test]
fn crediting_more_than_the_total_leaves_the_rest_to_be_refunded() {
    // 100 for bread, 50 off: taking the bread back leaves 50 that the client gets.
    assert_eq!(settled(&[100, -50], &[ROW_0]), [is(Status::Credited, 0, 0, 0), is(Status::Open, 0, -50, 0)]);
    assert_eq!(
        settled(&[100, -50], &[pay(0, 50), ROW_0]),
        [is(Status::Credited, 50, 0, 0), is(Status::Open, 0, -100, 0)]
    );
    // Taking the discount back makes the invoice dearer.
    let discount = Step::CreditSome { mask: 2, off: 0 };
    let dearer = settled(&[100, -50], &[pay(0, 50), discount.clone()]);
    assert_eq!(dearer, [is(Status::PartiallyPaid, 50, 50, 0), is(Status::Credited, 0, 0, 0)]);
    let settled = settled(&[100, -50], &[pay(0, 100), discount]);
    assert_eq!(settled, [is(Status::Paid, 100, 0, 0), is(Status::Credited, 0, 0, 0)]);
}

#[test]
fn what_is_paid_on_the_credit_of_a_negative_row_is_paid_on_the_invoice() {
    let discount = Step::CreditSome { mask: 2, off: 0 };
    // 121.00 less 60.50; taking the 60.50 off back makes it 121.00 again, wherever that is paid.
    let on_credit = settled(&[12_100, -6_050], &[pay(0, 6_050), discount.clone(), pay(1, 6_050)]);
    assert_eq!(on_credit, [is(Status::Paid, 6_050, 0, 0), is(Status::Credited, 6_050, 0, 0)]);
    let too_much = settled(&[12_100, -6_050], &[pay(0, 12_100), discount.clone(), pay(1, 6_050)]);
    assert_eq!(too_much, [is(Status::Paid, 12_100, 0, 6_050), is(Status::Credited, 6_050, 0, 0)]);
    let all_back = settled(&[12_100, -6_050], &[pay(0, 6_050), discount, pay(1, 6_050), REST]);
    let back = [
        is(Status::Credited, 6_050, 0, 0),
        is(Status::Credited, 6_050, 0, 0),
        is(Status::Open, 0, -12_100, 0),
    ];
    assert_eq!(all_back, back, "all that came in goes back");
}

#[test]
fn money_paid_in_the_wrong_direction_on_a_document_of_zero_is_overpaid_and_never_asked_for() {
    let back = Step::Pay { on: 0, day: 1, cents: 5 };
    assert_eq!(settled(&[0], &[back]), [is(Status::Paid, -5, 0, -5)]);
    let received = Step::Pay { on: 1, day: 2, cents: 5 };
    let mixed = settled(&[50, -50, 30], &[Step::CreditSome { mask: 3, off: 0 }, received]);
    assert_eq!(mixed, [is(Status::PartiallyCredited, 0, 30, 0), is(Status::Credited, 5, 0, 5)]);
}
