//! The page of a sandbox payment. A file of its own, as in every folder that renders a page.

use chassis_base::AccountId;
use provider::Status;
use render::printed::{Language, Look};
use render::text;
use sqlx::PgConnection;

use super::rules::Act;
use super::{Mandate, Payment, Sequence, external_id, store};
use crate::error::Error;
use crate::page::{Button, Link, Notice, Page, Tone, notice, pick};
use crate::{identity, settings};

/// What a page shows besides its payment.
pub(crate) struct Surroundings {
    pub mandate: Option<Mandate>,
    others: Vec<Payment>,
    customer: String,
    seller: String,
    look: Look,
    language: Language,
}

impl Surroundings {
    pub(crate) async fn load(
        connection: &mut PgConnection,
        account: AccountId,
        payment: &Payment,
    ) -> Result<Self, Error> {
        let seller = identity::seller(connection, account).await?;
        let language = settings::store::for_documents(connection, account).await?.settings.language;
        let mandate = match payment.mandate_id {
            Some(mandate) => store::find_mandate(connection, account, mandate).await?,
            None => None,
        };
        let (mut others, mut customer) = (Vec::new(), String::new());
        if let Some(id) = payment.customer_id {
            others = store::list_of_customer(connection, account, id).await?;
            others.retain(|other| other.id != payment.id);
            customer = store::find_customer(connection, account, id).await?.unwrap_or_default();
        }
        Ok(Self { mandate, others, customer, seller: seller.party.name, look: seller.look, language })
    }
}

pub(crate) fn page(
    account: AccountId,
    payment: &Payment,
    around: &Surroundings,
    acts: &[Act],
) -> Result<Page, Error> {
    let language = around.language;
    let money = |payment: &Payment| text::money(payment.amount, &payment.currency, language);
    let path = |payment: &Payment| format!("/sandbox/checkouts/{}", external_id(account, payment.id));
    let heading = match payment.sequence {
        Sequence::First => pick(language, "Machtigen", "Give a mandate"),
        Sequence::Recurring => pick(language, "Incasso", "Collection"),
        Sequence::OneOff => pick(language, "Betalen", "Pay"),
    };
    let button = |act: &Act| Button {
        act: act.name(),
        label: label(*act, payment.sequence, language),
        quiet: !matches!(act, Act::Authorise | Act::Settle),
    };
    let mut facts = vec![(pick(language, "Omschrijving", "Description"), payment.description.clone())];
    facts.push((pick(language, "Klant", "Client"), around.customer.clone()));
    facts.push((pick(language, "Reden", "Reason"), payment.failure.clone()));
    facts.retain(|(_, value)| !value.is_empty());
    let link = |other: &Payment| Link {
        href: path(other),
        label: format!("{} · {}", other.description, money(other)),
        value: badge(other, language).0.to_owned(),
    };
    notice(&Notice {
        language,
        look: &around.look,
        seller: &around.seller,
        badge: badge(payment, language),
        heading: heading.to_owned(),
        amount: (pick(language, "Bedrag", "Amount"), money(payment)),
        sentence: sentence(payment, around.mandate.as_ref(), language).to_owned(),
        action: path(payment),
        buttons: acts.iter().map(button).collect(),
        hint: pick(
            language,
            "Dit is een oefenomgeving: er gaat geen geld om.",
            "This is a rehearsal: no money moves.",
        ),
        facts,
        links_heading: pick(language, "Andere betalingen van deze klant", "Other payments of this client"),
        links: around.others.iter().map(link).collect(),
    })
}

fn label(act: Act, sequence: Sequence, language: Language) -> &'static str {
    let (nl, en) = match act {
        Act::Authorise if sequence == Sequence::First => ("Betalen en machtigen", "Pay and give the mandate"),
        Act::Authorise => ("Betalen", "Pay"),
        Act::Refuse => ("Weigeren", "Refuse"),
        Act::Expire => ("Laten verlopen", "Let it expire"),
        Act::Settle => ("Laten slagen", "Let it succeed"),
        Act::Fail => ("Laten mislukken", "Let it fail"),
        Act::ChargeBack => ("Storneren", "Charge back"),
        Act::Refund => ("Terugbetalen", "Refund"),
        Act::RefuseNext => ("Volgende incasso weigeren", "Refuse the next collection"),
        Act::AcceptNext => ("Volgende incasso toch toestaan", "Accept the next collection after all"),
        Act::Revoke => ("Machtiging intrekken", "Revoke the mandate"),
    };
    pick(language, nl, en)
}

fn badge(payment: &Payment, language: Language) -> (&'static str, Tone) {
    let (nl, en, tone) = match payment.status {
        Status::Open => ("Openstaand", "Open", Tone::Brand),
        Status::Pending | Status::Authorized => ("In verwerking", "Being processed", Tone::Wait),
        Status::Paid if !payment.charged_back.is_zero() => ("Gestorneerd", "Charged back", Tone::Bad),
        Status::Paid if !payment.refunded.is_zero() => ("Terugbetaald", "Refunded", Tone::Plain),
        Status::Paid => ("Betaald", "Paid", Tone::Good),
        Status::Canceled => ("Geannuleerd", "Canceled", Tone::Plain),
        Status::Expired => ("Verlopen", "Expired", Tone::Bad),
        Status::Failed => ("Mislukt", "Failed", Tone::Bad),
    };
    (pick(language, nl, en), tone)
}

fn sentence(payment: &Payment, mandate: Option<&Mandate>, language: Language) -> &'static str {
    let revoked = mandate.is_some_and(|mandate| mandate.status != provider::MandateStatus::Valid);
    let refuses = mandate.is_some_and(|mandate| mandate.refuses_next);
    let (nl, en) = match payment.status {
        Status::Open => ("Kies wat de betaler doet.", "Choose what the payer does."),
        Status::Pending | Status::Authorized => {
            ("De bank is ermee bezig. Kies hoe het afloopt.", "The bank is at work. Choose how it ends.")
        }
        _ if revoked => ("De machtiging is ingetrokken.", "The mandate was revoked."),
        _ if refuses => ("De volgende incasso wordt geweigerd.", "The next collection will be refused."),
        Status::Paid => ("Deze betaling is gedaan.", "This payment was made."),
        Status::Canceled | Status::Expired | Status::Failed => {
            ("Hier is niets meer te doen.", "There is nothing more to do here.")
        }
    };
    pick(language, nl, en)
}
