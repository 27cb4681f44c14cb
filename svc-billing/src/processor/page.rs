//! The page that shows the status of a payment. A file of its own, as in every folder that renders a page.

use chassis_base::AccountId;
use render::printed::Language;
use render::text;
use sqlx::PgConnection;

use crate::error::Error;
use crate::online_payment::{OnlinePayment, Purpose, Status};
use crate::page::{Notice, Page, Tone, notice, pick};
use crate::{identity, settings};

pub(crate) async fn page(
    connection: &mut PgConnection,
    account: AccountId,
    payment: &OnlinePayment,
) -> Result<Page, Error> {
    let seller = identity::seller(connection, account).await?;
    let language = settings::store::for_documents(connection, account).await?.settings.language;
    let heading = match payment.purpose {
        Purpose::Verification => pick(language, "Machtiging voor incasso", "Direct debit mandate"),
        Purpose::Checkout | Purpose::Collection => pick(language, "Betaling", "Payment"),
    };
    let (badge, sentence) = texts(payment, language);
    notice(&Notice {
        language,
        look: &seller.look,
        seller: &seller.party.name,
        badge,
        heading: heading.to_owned(),
        amount: (
            pick(language, "Bedrag", "Amount"),
            text::money(payment.amount, &payment.currency, language),
        ),
        sentence: sentence.to_owned(),
        action: String::new(),
        buttons: Vec::new(),
        hint: "",
        facts: Vec::new(),
        links_heading: "",
        links: Vec::new(),
    })
}

fn texts(payment: &OnlinePayment, language: Language) -> ((&'static str, Tone), &'static str) {
    let verification = payment.purpose == Purpose::Verification;
    match payment.status {
        Status::Paid if verification => (
            (pick(language, "Gelukt", "Done"), Tone::Good),
            pick(
                language,
                "Hartelijk dank! Uw machtiging is geregeld. U kunt deze pagina sluiten.",
                "Thank you! Your mandate is in place. You can close this page.",
            ),
        ),
        Status::Paid => (
            (pick(language, "Betaald", "Paid"), Tone::Good),
            pick(
                language,
                "Hartelijk dank! U kunt deze pagina sluiten.",
                "Thank you! You can close this page.",
            ),
        ),
        Status::Requested | Status::Open => (
            (pick(language, "Niet afgerond", "Not finished"), Tone::Wait),
            pick(
                language,
                "De betaling is nog niet afgerond. Gebruik de link die u kreeg om verder te gaan.",
                "The payment is not finished yet. Use the link that you were sent to go on.",
            ),
        ),
        Status::Pending | Status::Authorized => (
            (pick(language, "In verwerking", "Being processed"), Tone::Wait),
            pick(
                language,
                "Uw betaling wordt verwerkt. U hoeft niets meer te doen.",
                "Your payment is being processed. There is nothing more to do.",
            ),
        ),
        Status::Canceled | Status::Expired | Status::Failed => (
            (pick(language, "Niet gelukt", "Not successful"), Tone::Bad),
            pick(
                language,
                "De betaling is niet gelukt. Vraag de afzender om een nieuwe link.",
                "The payment did not succeed. Ask the sender for a new link.",
            ),
        ),
    }
}
