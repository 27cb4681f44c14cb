//! The document as UBL 2.1: an `Invoice` (380), or a `CreditNote` (381) with the signs turned around. The order of the
//! elements is that of the schema.

use render::PrintedDocument;
use render::printed::{Category, Language, Party, Row, Vat};
use rust_decimal::{Decimal, RoundingStrategy};

use super::codes::{self, exemption};
use super::identity::{Identity, compact};
use super::xml::{Attribute, Element, clean, coded, document, group, text};
use super::{is_credit, is_outside_scope};

const COMMON: &str = "urn:oasis:names:specification:ubl:schema:xsd:";
const SPECIFICATION: &str = "urn:cen.eu:en16931:2017#compliant#urn:fdc:peppol.eu:2017:poacc:billing:3.0";
const PROCESS: &str = "urn:fdc:peppol.eu:2017:poacc:billing:01:1.0";

/// Writes XML from what is known. [`super::missing`] tells whether the official rules accept it.
pub fn write(printed: &PrintedDocument) -> Vec<u8> {
    let is_credit = is_credit(printed);
    let root = if is_credit { "CreditNote" } else { "Invoice" };
    let namespaces = vec![
        ("xmlns", format!("{COMMON}{root}-2")),
        ("xmlns:cac", format!("{COMMON}CommonAggregateComponents-2")),
        ("xmlns:cbc", format!("{COMMON}CommonBasicComponents-2")),
    ];
    let writer = Ubl {
        printed,
        is_credit,
        seller: Identity::of(&printed.seller),
        buyer: Identity::of(&printed.buyer),
    };
    document(root, namespaces, writer.children())
}

struct Ubl<'a> {
    printed: &'a PrintedDocument,
    is_credit: bool,
    seller: Identity,
    buyer: Identity,
}

impl Ubl<'_> {
    fn children(&self) -> Vec<Option<Element>> {
        let printed = self.printed;
        let mut children = self.header();
        children.extend([
            self.original(),
            group("cac:AccountingSupplierParty", [self.party(&printed.seller, &self.seller)]),
            group("cac:AccountingCustomerParty", [self.party(&printed.buyer, &self.buyer)]),
            self.delivery(),
            self.payment_means(),
            self.payment_terms(),
            self.tax_total(),
            self.monetary_total(),
        ]);
        children.extend(printed.rows.iter().enumerate().map(|(at, row)| self.line(at + 1, row)));
        children
    }

    fn header(&self) -> Vec<Option<Element>> {
        let printed = self.printed;
        let reference =
            if clean(&printed.reference).is_empty() { &printed.number } else { &printed.reference };
        let (due_date, type_code) = if self.is_credit {
            (None, text("cbc:CreditNoteTypeCode", "381"))
        } else {
            (text("cbc:DueDate", printed.due_date.to_string()), text("cbc:InvoiceTypeCode", "380"))
        };
        vec![
            text("cbc:CustomizationID", SPECIFICATION),
            text("cbc:ProfileID", PROCESS),
            text("cbc:ID", &printed.number),
            text("cbc:IssueDate", printed.date.to_string()),
            due_date,
            type_code,
            text("cbc:Note", &printed.title),
            text("cbc:DocumentCurrencyCode", &printed.currency),
            text("cbc:BuyerReference", reference),
        ]
    }

    fn original(&self) -> Option<Element> {
        let original = self.printed.credits.as_ref()?;
        let number = text("cbc:ID", &original.number)?;
        let reference = [Some(number), text("cbc:IssueDate", original.date.to_string())];
        group("cac:BillingReference", [group("cac:InvoiceDocumentReference", reference)])
    }

    fn party(&self, party: &Party, identity: &Identity) -> Option<Element> {
        let endpoint = identity.endpoint.as_ref();
        let vat = identity.vat.as_ref().filter(|_| !is_outside_scope(self.printed));
        let legal = identity.legal.as_ref().and_then(|id| match id.scheme {
            "" => text("cbc:CompanyID", &id.value),
            scheme => coded("cbc:CompanyID", &scheme_id(scheme), &id.value),
        });
        group(
            "cac:Party",
            [
                endpoint.and_then(|id| coded("cbc:EndpointID", &scheme_id(id.scheme), &id.value)),
                group("cac:PartyIdentification", [text("cbc:ID", &party.debtor_number)]),
                group("cac:PartyName", [text("cbc:Name", &party.name)]),
                address("cac:PostalAddress", party, identity),
                vat.and_then(|vat| group("cac:PartyTaxScheme", [text("cbc:CompanyID", vat), tax_scheme()])),
                group("cac:PartyLegalEntity", [text("cbc:RegistrationName", &party.name), legal]),
                group(
                    "cac:Contact",
                    [
                        text("cbc:Name", &party.contact),
                        text("cbc:Telephone", &party.phone),
                        text("cbc:ElectronicMail", &party.email),
                    ],
                ),
            ],
        )
    }

    /// Goods that go to another member state need a date and an address of delivery. The printed document has no others
    /// than its own date and the buyer's address.
    fn delivery(&self) -> Option<Element> {
        self.printed.rows.iter().find(|row| row.category == Category::K)?;
        group(
            "cac:Delivery",
            [
                text("cbc:ActualDeliveryDate", self.printed.date.to_string()),
                group("cac:DeliveryLocation", [address("cac:Address", &self.printed.buyer, &self.buyer)]),
            ],
        )
    }

    fn payment_means(&self) -> Option<Element> {
        let (printed, bank) = (self.printed, &self.printed.bank);
        if let Some(mandate) = self.mandate() {
            return group(
                "cac:PaymentMeans",
                [
                    // A SEPA direct debit.
                    text("cbc:PaymentMeansCode", "59"),
                    text("cbc:PaymentID", &printed.number),
                    group("cac:PaymentMandate", [Some(mandate)]),
                ],
            );
        }
        let account = text("cbc:ID", compact(&bank.iban))?;
        // A SEPA transfer is in euros.
        let code = if printed.currency == "EUR" { "58" } else { "30" };
        let holder = if clean(&bank.holder).is_empty() { &printed.seller.name } else { &bank.holder };
        let branch = group("cac:FinancialInstitutionBranch", [text("cbc:ID", compact(&bank.bic))]);
        group(
            "cac:PaymentMeans",
            [
                text("cbc:PaymentMeansCode", code),
                text("cbc:PaymentID", &printed.number),
                group("cac:PayeeFinancialAccount", [Some(account), text("cbc:Name", holder), branch]),
            ],
        )
    }

    /// The mandate by which an invoice is collected.
    fn mandate(&self) -> Option<Element> {
        let collection = self.printed.collection.as_ref().filter(|_| !self.is_credit)?;
        text("cbc:ID", &collection.mandate)
    }

    fn payment_terms(&self) -> Option<Element> {
        if self.is_credit {
            return None;
        }
        let day = self.printed.due_date;
        let note = match (self.printed.language, self.mandate().is_some()) {
            (Language::Nl, true) => "Wordt automatisch geïncasseerd".to_owned(),
            (Language::En, true) => "Collected by direct debit".to_owned(),
            (Language::Nl, false) => format!("Te betalen uiterlijk {}", day.format("%d-%m-%Y")),
            (Language::En, false) => format!("To be paid by {day}"),
        };
        group("cac:PaymentTerms", [text("cbc:Note", note)])
    }

    fn tax_total(&self) -> Option<Element> {
        let total = [self.amount("cbc:TaxAmount", self.printed.total_vat)];
        let parts = self.printed.vat.iter().map(|vat| self.tax_subtotal(vat));
        group("cac:TaxTotal", total.into_iter().chain(parts))
    }

    fn tax_subtotal(&self, vat: &Vat) -> Option<Element> {
        let reason = exemption(vat.category, self.printed.language);
        // Outside the scope of VAT there is no rate, but the German rules require one between German parties.
        let is_german = self.seller.country == "DE" && self.buyer.country == "DE";
        let percent = percent(vat.category, vat.rate)
            .or_else(|| if is_german { text("cbc:Percent", "0") } else { None });
        let category = group(
            "cac:TaxCategory",
            [
                text("cbc:ID", vat.category.code()),
                percent,
                reason.as_ref().and_then(|reason| text("cbc:TaxExemptionReasonCode", reason.code)),
                reason.as_ref().and_then(|reason| text("cbc:TaxExemptionReason", reason.text)),
                tax_scheme(),
            ],
        );
        let taxable = self.amount("cbc:TaxableAmount", vat.taxable);
        group("cac:TaxSubtotal", [taxable, self.amount("cbc:TaxAmount", vat.vat), category])
    }

    fn monetary_total(&self) -> Option<Element> {
        let printed = self.printed;
        group(
            "cac:LegalMonetaryTotal",
            [
                self.amount("cbc:LineExtensionAmount", printed.total_excl),
                self.amount("cbc:TaxExclusiveAmount", printed.total_excl),
                self.amount("cbc:TaxInclusiveAmount", printed.total_incl),
                self.prepaid(),
                self.amount("cbc:PayableAmount", printed.total_incl - printed.prepaid),
            ],
        )
    }

    fn prepaid(&self) -> Option<Element> {
        let prepaid = self.printed.prepaid;
        if prepaid.is_zero() { None } else { self.amount("cbc:PrepaidAmount", prepaid) }
    }

    fn line(&self, number: usize, row: &Row) -> Option<Element> {
        let (name, quantity_name) = if self.is_credit {
            ("cac:CreditNoteLine", "cbc:CreditedQuantity")
        } else {
            ("cac:InvoiceLine", "cbc:InvoicedQuantity")
        };
        // Peppol allows no negative price, so the quantity takes its sign.
        let is_turned = self.is_credit != row.unit_price.is_sign_negative();
        let quantity = if is_turned { -row.quantity } else { row.quantity };
        let tax = [text("cbc:ID", row.category.code()), percent(row.category, row.vat_rate), tax_scheme()];
        let item = [
            text("cbc:Description", &row.description),
            text("cbc:Name", &row.name),
            group("cac:ClassifiedTaxCategory", tax),
        ];
        let unit_code = Attribute { name: "unitCode", value: codes::unit(&row.unit) };
        let price = [self.money("cbc:PriceAmount", price(row.unit_price.abs()))];
        group(
            name,
            [
                text("cbc:ID", number.to_string()),
                coded(quantity_name, &unit_code, plain(quantity).to_string()),
                self.amount("cbc:LineExtensionAmount", row.total_excl),
                group("cac:Item", item),
                group("cac:Price", price),
            ],
        )
    }

    /// An amount of the printed document, in cents. A credit note turns the sign around.
    fn amount(&self, name: &'static str, amount: Decimal) -> Option<Element> {
        self.money(name, cents(if self.is_credit { -amount } else { amount }))
    }

    fn money(&self, name: &'static str, amount: String) -> Option<Element> {
        coded(name, &Attribute { name: "currencyID", value: &self.printed.currency }, amount)
    }
}

fn address(name: &'static str, party: &Party, identity: &Identity) -> Option<Element> {
    group(
        name,
        [
            text("cbc:StreetName", &party.address),
            text("cbc:CityName", &party.city),
            text("cbc:PostalZone", &party.zipcode),
            group("cac:Country", [text("cbc:IdentificationCode", &identity.country)]),
        ],
    )
}

fn scheme_id(scheme: &'static str) -> Attribute<'static> {
    Attribute { name: "schemeID", value: scheme }
}

fn tax_scheme() -> Option<Element> {
    group("cac:TaxScheme", [text("cbc:ID", "VAT")])
}

fn percent(category: Category, rate: Decimal) -> Option<Element> {
    if category == Category::O { None } else { text("cbc:Percent", plain(rate).to_string()) }
}

/// Without padding, and without a sign on zero.
fn plain(number: Decimal) -> Decimal {
    if number.is_zero() { Decimal::ZERO } else { number.normalize() }
}

fn cents(amount: Decimal) -> String {
    let rounded = amount.round_dp_with_strategy(2, RoundingStrategy::MidpointAwayFromZero);
    format!("{:.2}", plain(rounded))
}

/// With at least two decimals, and all that it has.
fn price(amount: Decimal) -> String {
    let amount = plain(amount);
    if amount.scale() < 2 { format!("{amount:.2}") } else { amount.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_two_decimals_and_zero_has_no_sign() {
        for (amount, written) in
            [("-0.00", "0.00"), ("1", "1.00"), ("-12.5", "-12.50"), ("0.005", "0.01"), ("-0.004", "0.00")]
        {
            assert_eq!(cents(amount.parse().unwrap()), written);
        }
        assert_eq!(cents(Decimal::MAX), "79228162514264337593543950335.00");
    }

    #[test]
    fn a_price_keeps_its_digits() {
        for (amount, written) in [("0", "0.00"), ("1.5", "1.50"), ("0.12345", "0.12345"), ("3.1000", "3.10")]
        {
            assert_eq!(price(amount.parse().unwrap()), written);
        }
    }
}
