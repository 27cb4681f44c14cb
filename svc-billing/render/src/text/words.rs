//! The words of a document: each label and sentence per language and kind.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::{date, iban, money, percent};
use crate::paper::{Category, Kind, Language, Paper};

/// The labels of one kind of document in one language. Sentences with values in them are methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    pub kind: Kind,
    pub language: Language,
    /// What it is: `Factuur`.
    pub document: &'static str,
    pub draft: &'static str,
    pub number: &'static str,
    pub date: &'static str,
    /// Due or valid until.
    pub due: &'static str,
    pub reference: &'static str,
    pub debtor: &'static str,
    /// The invoice that a credit takes back.
    pub credits: &'static str,
    pub description: &'static str,
    pub quantity: &'static str,
    pub unit_price: &'static str,
    pub vat: &'static str,
    pub amount: &'static str,
    pub subtotal: &'static str,
    pub total: &'static str,
    /// Above the payment part, or above the part to sign.
    pub closing: &'static str,
    pub account: &'static str,
    pub bic: &'static str,
    pub holder: &'static str,
    pub payment_reference: &'static str,
    /// Beside the QR code.
    pub scan: &'static str,
    pub name: &'static str,
    pub place_and_date: &'static str,
    pub signature: &'static str,
    pub registration_number: &'static str,
    pub vat_number: &'static str,
    /// Before the VAT number of the buyer.
    pub buyer_vat_number: &'static str,
    pub phone: &'static str,
    pub attention: &'static str,
    /// `Pagina` and `van`, as in `Pagina 1 van 3`.
    pub page: &'static str,
    pub of: &'static str,
}

const NL: Words = Words {
    kind: Kind::Invoice,
    language: Language::Nl,
    document: "Factuur",
    draft: "Concept",
    number: "Factuurnummer",
    date: "Factuurdatum",
    due: "Vervaldatum",
    reference: "Uw referentie",
    debtor: "Debiteurnummer",
    credits: "Credit op factuur",
    description: "Omschrijving",
    quantity: "Aantal",
    unit_price: "Prijs",
    vat: "Btw",
    amount: "Bedrag",
    subtotal: "Subtotaal exclusief btw",
    total: "Te betalen",
    closing: "Betaling",
    account: "IBAN",
    bic: "BIC",
    holder: "Ten name van",
    payment_reference: "Kenmerk",
    scan: "Scan met uw bank-app",
    name: "Naam",
    place_and_date: "Plaats en datum",
    signature: "Handtekening",
    registration_number: "KvK",
    vat_number: "Btw",
    buyer_vat_number: "Btw-nummer",
    phone: "Tel.",
    attention: "T.a.v.",
    page: "Pagina",
    of: "van",
};

const EN: Words = Words {
    kind: Kind::Invoice,
    language: Language::En,
    document: "Invoice",
    draft: "Draft",
    number: "Invoice number",
    date: "Invoice date",
    due: "Due date",
    reference: "Your reference",
    debtor: "Customer number",
    credits: "Credit of invoice",
    description: "Description",
    quantity: "Quantity",
    unit_price: "Unit price",
    vat: "VAT",
    amount: "Amount",
    subtotal: "Subtotal excluding VAT",
    total: "Amount due",
    closing: "Payment",
    account: "IBAN",
    bic: "BIC",
    holder: "Account holder",
    payment_reference: "Reference",
    scan: "Scan with your banking app",
    name: "Name",
    place_and_date: "Place and date",
    signature: "Signature",
    registration_number: "Reg. no.",
    vat_number: "VAT",
    buyer_vat_number: "VAT number",
    phone: "Tel.",
    attention: "Attn.",
    page: "Page",
    of: "of",
};

impl Words {
    pub const fn of(kind: Kind, language: Language) -> Self {
        match (language, kind) {
            (Language::Nl, Kind::Invoice) => NL,
            (Language::Nl, Kind::Credit) => Self {
                kind,
                document: "Creditfactuur",
                number: "Creditfactuurnummer",
                total: "Totaal credit",
                closing: "Verrekening",
                ..NL
            },
            (Language::Nl, Kind::Quote) => Self {
                kind,
                document: "Offerte",
                number: "Offertenummer",
                date: "Offertedatum",
                due: "Geldig tot en met",
                total: "Totaal inclusief btw",
                closing: "Akkoord",
                ..NL
            },
            (Language::Nl, Kind::Workorder) => Self {
                kind,
                document: "Werkbon",
                number: "Werkbonnummer",
                date: "Datum",
                total: "Totaal inclusief btw",
                closing: "Voor akkoord",
                ..NL
            },
            (Language::En, Kind::Invoice) => EN,
            (Language::En, Kind::Credit) => Self {
                kind,
                document: "Credit note",
                number: "Credit note number",
                date: "Date",
                total: "Total credit",
                closing: "Settlement",
                ..EN
            },
            (Language::En, Kind::Quote) => Self {
                kind,
                document: "Quote",
                number: "Quote number",
                date: "Quote date",
                due: "Valid until",
                total: "Total including VAT",
                closing: "Acceptance",
                ..EN
            },
            (Language::En, Kind::Workorder) => Self {
                kind,
                document: "Work order",
                number: "Work order number",
                date: "Date",
                total: "Total including VAT",
                closing: "Sign-off",
                ..EN
            },
        }
    }

    pub fn for_paper(paper: &Paper) -> Self {
        Self::of(paper.kind, paper.language)
    }

    /// The label of one VAT line among the totals, with the amount that it is taken of.
    pub fn vat_over(&self, rate: Decimal, category: Category, taxable: Decimal, currency: &str) -> String {
        let taxable = money(taxable, currency, self.language);
        let rate = percent(rate, self.language);
        match (self.language, category) {
            (Language::Nl, Category::S | Category::Z) => format!("Btw {rate} over {taxable}"),
            (Language::Nl, Category::E) => format!("Vrijgesteld van btw: {taxable}"),
            (Language::Nl, Category::AE) => format!("Btw verlegd: {taxable}"),
            (Language::Nl, Category::K) => format!("Btw 0% intracommunautair: {taxable}"),
            (Language::Nl, Category::G) => format!("Btw 0% export: {taxable}"),
            (Language::Nl, Category::O) => format!("Buiten de btw: {taxable}"),
            (Language::En, Category::S | Category::Z) => format!("VAT {rate} on {taxable}"),
            (Language::En, Category::E) => format!("Exempt from VAT: {taxable}"),
            (Language::En, Category::AE) => format!("VAT reverse charged: {taxable}"),
            (Language::En, Category::K) => format!("VAT 0% intra-Community: {taxable}"),
            (Language::En, Category::G) => format!("VAT 0% export: {taxable}"),
            (Language::En, Category::O) => format!("Outside the scope of VAT: {taxable}"),
        }
    }

    /// What stands in the VAT column of a row.
    pub fn row_vat(&self, rate: Decimal, category: Category) -> String {
        match (self.language, category) {
            (Language::Nl, Category::AE) => "verlegd".to_owned(),
            (Language::En, Category::AE) => "reverse".to_owned(),
            (Language::Nl, Category::E) => "vrij".to_owned(),
            (Language::En, Category::E) => "exempt".to_owned(),
            (_, Category::O) => "–".to_owned(),
            (_, Category::S | Category::Z | Category::K | Category::G) => percent(rate, self.language),
        }
    }

    /// What the law wants a document to say about a category; nothing for the ordinary rates.
    pub const fn legal(&self, category: Category) -> Option<&'static str> {
        match (self.language, category) {
            (_, Category::S | Category::Z) => None,
            (Language::Nl, Category::AE) => Some("Btw verlegd: de btw is verschuldigd door de afnemer."),
            (Language::Nl, Category::K) => {
                Some("Intracommunautaire levering: vrij van btw (artikel 138 van Richtlijn 2006/112/EG).")
            }
            (Language::Nl, Category::G) => {
                Some("Uitvoer buiten de Europese Unie: vrij van btw (artikel 146 van Richtlijn 2006/112/EG).")
            }
            (Language::Nl, Category::E) => Some("Deze levering is vrijgesteld van btw."),
            (Language::Nl, Category::O) => Some("Deze levering valt buiten de heffing van btw."),
            (Language::En, Category::AE) => {
                Some("Reverse charge: VAT is to be accounted for by the customer.")
            }
            (Language::En, Category::K) => {
                Some("Intra-Community supply: exempt from VAT (Article 138 of Directive 2006/112/EC).")
            }
            (Language::En, Category::G) => Some(
                "Export outside the European Union: exempt from VAT (Article 146 of Directive 2006/112/EC).",
            ),
            (Language::En, Category::E) => Some("This supply is exempt from VAT."),
            (Language::En, Category::O) => Some("This supply is outside the scope of VAT."),
        }
    }

    /// The sentence that closes the document: how to pay, what happens with a credit, what a signature means.
    pub fn closing_sentence(&self, paper: &Paper) -> String {
        let total = money(paper.total_incl, &paper.currency, self.language);
        let due = date(paper.due_date, self.language);
        match self.kind {
            Kind::Invoice => self.pay(paper, &total, &due),
            Kind::Credit => {
                let total = money(paper.total_incl.abs(), &paper.currency, self.language);
                self.credit(&total, paper.credits.as_ref().map(|original| original.number.as_str()))
            }
            Kind::Quote => match self.language {
                Language::Nl => format!(
                    "Deze offerte is geldig tot en met {due}. Gaat u akkoord? Onderteken haar dan hieronder en stuur haar aan ons terug."
                ),
                Language::En => format!(
                    "This quote is valid until {due}. To accept it, please sign below and return it to us."
                ),
            },
            Kind::Workorder => match self.language {
                Language::Nl => {
                    "Met uw handtekening bevestigt u dat het werk naar tevredenheid is uitgevoerd.".to_owned()
                }
                Language::En => {
                    "By signing you confirm that the work has been carried out to your satisfaction."
                        .to_owned()
                }
            },
        }
    }

    fn pay(&self, paper: &Paper, total: &str, due: &str) -> String {
        if paper.total_incl <= Decimal::ZERO {
            return match self.language {
                Language::Nl => "U hoeft voor deze factuur niets te betalen.".to_owned(),
                Language::En => "There is nothing to pay for this invoice.".to_owned(),
            };
        }
        let by_transfer = !paper.bank.iban.trim().is_empty();
        let numbered = !paper.number.trim().is_empty();
        match (self.language, by_transfer) {
            (Language::Nl, true) if numbered => format!(
                "Wij verzoeken u {total} uiterlijk {due} over te maken, onder vermelding van het kenmerk."
            ),
            (Language::Nl, true) => format!("Wij verzoeken u {total} uiterlijk {due} over te maken."),
            (Language::Nl, false) => format!("Wij verzoeken u {total} uiterlijk {due} te voldoen."),
            (Language::En, true) if numbered => {
                format!("Please transfer {total} by {due} at the latest, quoting the reference.")
            }
            (Language::En, true) => format!("Please transfer {total} by {due} at the latest."),
            (Language::En, false) => format!("Please pay {total} by {due} at the latest."),
        }
    }

    fn credit(&self, total: &str, original: Option<&str>) -> String {
        match (self.language, original) {
            (Language::Nl, Some(number)) => format!(
                "Wij verrekenen {total} met factuur {number}. Hebt u die al betaald, dan ontvangt u het bedrag van ons terug."
            ),
            (Language::Nl, None) => {
                format!("Wij verrekenen {total} met u of betalen dit bedrag aan u terug.")
            }
            (Language::En, Some(number)) => format!(
                "We settle {total} with invoice {number}. If you have already paid it, you will receive the amount back."
            ),
            (Language::En, None) => format!("We settle {total} with you or pay this amount back to you."),
        }
    }

    /// The seller's registration, tax and bank details, in the order in which they stand at the foot of a page.
    pub fn company_details(&self, paper: &Paper) -> Vec<String> {
        let seller = &paper.seller;
        let labelled = |label: &str, value: &str| {
            let value = value.trim();
            (!value.is_empty()).then(|| format!("{label}\u{a0}{}", value.replace(' ', "\u{a0}")))
        };
        [
            labelled(self.registration_number, &seller.registration_number),
            labelled(self.vat_number, &seller.vat_number),
            labelled(self.account, &iban(&paper.bank.iban)),
            labelled(self.bic, &paper.bank.bic),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// The label and value of each fact at the head of the document; facts that are not known are left out.
    pub fn facts(&self, paper: &Paper) -> Vec<(&'static str, String)> {
        let day = |day: NaiveDate| date(day, self.language);
        let mut facts = vec![(self.number, paper.number.clone()), (self.date, day(paper.date))];
        // The term of a credit or of a work order means nothing to its reader.
        if matches!(self.kind, Kind::Invoice | Kind::Quote) {
            facts.push((self.due, day(paper.due_date)));
        }
        if let Some(original) = &paper.credits {
            facts.push((self.credits, format!("{} ({})", original.number, day(original.date))));
        }
        facts.push((self.reference, paper.reference.clone()));
        facts.push((self.debtor, paper.buyer.debtor_number.clone()));
        facts.push((self.buyer_vat_number, paper.buyer.vat_number.clone()));
        facts.retain(|(_, value)| !value.trim().is_empty());
        facts
    }
}
