//! The texts of a page that are not printed on the document: its state, and what its reader can do.

use chrono::NaiveDate;
use render::PrintedDocument;
use render::printed::{Kind, Language};
use render::text::{self, Words};
use rust_decimal::Decimal;

use super::{Last, State};

/// The colour of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Draft,
    Plain,
    Brand,
    Good,
    Wait,
    Bad,
}

impl Tone {
    /// Its class in the style sheet.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Plain => "plain",
            Self::Brand => "brand",
            Self::Good => "good",
            Self::Wait => "wait",
            Self::Bad => "bad",
        }
    }
}

/// The state in a word or two.
pub(super) fn badge(state: &State, kind: Kind, language: Language) -> (&'static str, Tone) {
    let (nl, en, tone) = match state {
        State::Draft => ("Concept", "Draft", Tone::Draft),
        State::ToPay { pay, .. } if pay.last == Last::Processing => {
            ("In verwerking", "Being processed", Tone::Wait)
        }
        State::ToPay { late: true, .. } => ("Vervallen", "Overdue", Tone::Bad),
        State::ToPay { paid, .. } if !paid.is_zero() => ("Deels betaald", "Partially paid", Tone::Wait),
        State::ToPay { credited, .. } if !credited.is_zero() => {
            ("Deels gecrediteerd", "Partially credited", Tone::Wait)
        }
        State::ToPay { .. } => ("Openstaand", "Open", Tone::Wait),
        State::Paid { .. } => ("Betaald", "Paid", Tone::Good),
        State::Credited => ("Gecrediteerd", "Credited", Tone::Plain),
        State::ToRefund { paid, .. } if !paid.is_zero() => {
            ("Deels terugbetaald", "Partially refunded", Tone::Wait)
        }
        State::ToRefund { .. } => ("Terug te ontvangen", "To be refunded", Tone::Wait),
        State::Refunded { .. } => ("Terugbetaald", "Refunded", Tone::Good),
        State::Settled => ("Verrekend", "Settled", Tone::Good),
        State::Offered => ("Wacht op uw akkoord", "Awaiting your reply", Tone::Brand),
        State::Accepted { .. } => ("Geaccepteerd", "Accepted", Tone::Good),
        State::Expired => ("Verlopen", "Expired", Tone::Bad),
        State::Closed => ("Gesloten", "Closed", Tone::Plain),
        State::Informative if kind == Kind::Workorder => ("Werkbon", "Work order", Tone::Brand),
        State::Informative => ("Definitief", "Final", Tone::Plain),
    };
    (pick(language, nl, en), tone)
}

/// The state in a sentence.
pub(super) fn sentence(state: &State, printed: &PrintedDocument) -> String {
    let language = printed.language;
    let due = text::date(printed.due_date, language);
    match language {
        Language::Nl => in_dutch(state, printed, &due),
        Language::En => in_english(state, printed, &due),
    }
}

fn in_dutch(state: &State, printed: &PrintedDocument, due: &str) -> String {
    let money = |amount: Decimal| text::money(amount, &printed.currency, printed.language);
    let on = |day: Option<NaiveDate>| {
        day.map(|day| format!(" op {}", text::date(day, printed.language))).unwrap_or_default()
    };
    match state {
        State::Draft => "Dit is een concept. Er kan nog iets veranderen.".to_owned(),
        State::ToPay { open, pay, .. } if pay.last == Last::Processing => match &printed.collection {
            Some(collection) => Words::for_document(printed).collect(&money(*open), collection),
            None => "Uw betaling wordt verwerkt. U hoeft niets meer te doen.".to_owned(),
        },
        State::ToPay { pay, .. } if pay.last == Last::Stuck => {
            "Een eerdere betaling van een ander bedrag is nog niet afgesloten. Probeer het over een kwartier opnieuw."
                .to_owned()
        }
        State::ToPay { pay, .. } if pay.last == Last::Failed => {
            "Uw betaling is niet gelukt. Probeer het opnieuw.".to_owned()
        }
        State::ToPay { paid, credited, late, .. } => {
            let paid = unless_zero(*paid, |paid| format!("Wij ontvingen al {}. ", money(paid)));
            let credited = unless_zero(*credited, |credited| format!("Er is {} gecrediteerd. ", money(credited)));
            if *late {
                format!("{paid}{credited}Wij hadden uw betaling graag uiterlijk {due} ontvangen.")
            } else {
                format!("{paid}{credited}Wij ontvangen uw betaling graag uiterlijk {due}.")
            }
        }
        State::Paid { .. } if printed.total_incl.is_zero() => "U hoeft niets te betalen.".to_owned(),
        State::Paid { on: day } => format!("Betaald{}. Hartelijk dank!", on(*day)),
        State::Credited => "Deze factuur is gecrediteerd. U hoeft niets te betalen.".to_owned(),
        State::ToRefund { open, paid } if !paid.is_zero() => {
            format!("U ontving al {}. U krijgt nog {} van ons.", money(*paid), money(*open))
        }
        State::ToRefund { open, .. } => format!("U krijgt {} van ons terug.", money(*open)),
        State::Refunded { on: day } => format!("Aan u terugbetaald{}.", on(*day)),
        State::Settled => match &printed.credits {
            Some(original) => format!("Verrekend met factuur {}.", original.number),
            None => "Dit bedrag is verrekend.".to_owned(),
        },
        State::Offered => format!("Geldig tot en met {due}."),
        State::Accepted { on: day } => {
            format!("U hebt deze offerte geaccepteerd{}. Hartelijk dank!", on(*day))
        }
        State::Expired => {
            format!(
                "Deze offerte was geldig tot en met {due}. Vraag ons om een nieuwe als u nog belangstelling hebt."
            )
        }
        State::Closed => "Deze offerte kan hier niet meer worden geaccepteerd.".to_owned(),
        State::Informative => format!("Van {}.", text::date(printed.date, printed.language)),
    }
}

fn in_english(state: &State, printed: &PrintedDocument, due: &str) -> String {
    let money = |amount: Decimal| text::money(amount, &printed.currency, printed.language);
    let on = |day: Option<NaiveDate>| {
        day.map(|day| format!(" on {}", text::date(day, printed.language))).unwrap_or_default()
    };
    match state {
        State::Draft => "This is a draft. It may still change.".to_owned(),
        State::ToPay { open, pay, .. } if pay.last == Last::Processing => match &printed.collection {
            Some(collection) => Words::for_document(printed).collect(&money(*open), collection),
            None => "Your payment is being processed. There is nothing more to do.".to_owned(),
        },
        State::ToPay { pay, .. } if pay.last == Last::Stuck => {
            "An earlier payment of another amount has not ended yet. Please try again in a quarter of an hour."
                .to_owned()
        }
        State::ToPay { pay, .. } if pay.last == Last::Failed => {
            "Your payment did not succeed. Please try again.".to_owned()
        }
        State::ToPay { paid, credited, late, .. } => {
            let paid = unless_zero(*paid, |paid| format!("We have received {}. ", money(paid)));
            let credited = unless_zero(*credited, |credited| format!("{} was credited. ", money(credited)));
            if *late {
                format!("{paid}{credited}Payment was due by {due}.")
            } else {
                format!("{paid}{credited}Please pay by {due}.")
            }
        }
        State::Paid { .. } if printed.total_incl.is_zero() => "There is nothing to pay.".to_owned(),
        State::Paid { on: day } => format!("Paid{}. Thank you!", on(*day)),
        State::Credited => "This invoice was credited. There is nothing to pay.".to_owned(),
        State::ToRefund { open, paid } if !paid.is_zero() => {
            format!("You have received {}. We still owe you {}.", money(*paid), money(*open))
        }
        State::ToRefund { open, .. } => format!("You will receive {} back from us.", money(*open)),
        State::Refunded { on: day } => format!("Refunded to you{}.", on(*day)),
        State::Settled => match &printed.credits {
            Some(original) => format!("Settled with invoice {}.", original.number),
            None => "This amount was settled.".to_owned(),
        },
        State::Offered => format!("Valid until {due}."),
        State::Accepted { on: day } => format!("You accepted this quote{}. Thank you!", on(*day)),
        State::Expired => {
            format!("This quote was valid until {due}. Ask us for a new one if you are still interested.")
        }
        State::Closed => "This quote can no longer be accepted here.".to_owned(),
        State::Informative => format!("Of {}.", text::date(printed.date, printed.language)),
    }
}

/// The text about an amount; empty for an amount of zero.
fn unless_zero(amount: Decimal, say: impl FnOnce(Decimal) -> String) -> String {
    if amount.is_zero() { String::new() } else { say(amount) }
}

/// The button that accepts a quote, and what pressing it means.
pub(super) fn accept(printed: &PrintedDocument) -> (&'static str, String) {
    let total = text::money(printed.total_incl, &printed.currency, printed.language);
    let label = pick(printed.language, "Offerte accepteren", "Accept this quote");
    let meaning = match (printed.language, printed.seller.name.trim()) {
        (Language::Nl, "") => {
            format!(
                "Hiermee gaat u akkoord met deze offerte van {total} inclusief btw. De afzender krijgt daar direct bericht van."
            )
        }
        (Language::Nl, seller) => {
            format!(
                "Hiermee gaat u akkoord met deze offerte van {total} inclusief btw. {seller} krijgt daar direct bericht van."
            )
        }
        (Language::En, "") => {
            format!("You agree to this quote of {total} including VAT. The sender is told at once.")
        }
        (Language::En, seller) => {
            format!("You agree to this quote of {total} including VAT. {seller} is told at once.")
        }
    };
    (label, meaning)
}

/// The button that pays an invoice, and what pressing it means.
pub(super) fn pay(printed: &PrintedDocument, open: Decimal) -> (String, String) {
    let amount = text::money(open, &printed.currency, printed.language);
    let label = match printed.language {
        Language::Nl => format!("Nu {amount} betalen"),
        Language::En => format!("Pay {amount} now"),
    };
    let meaning = pick(
        printed.language,
        "U gaat naar een beveiligde betaalpagina en komt daarna hier terug.",
        "You go to a secure payment page and come back here afterwards.",
    );
    (label, meaning.to_owned())
}

pub(crate) fn pick(language: Language, nl: &'static str, en: &'static str) -> &'static str {
    match language {
        Language::Nl => nl,
        Language::En => en,
    }
}
