//! A document as it is printed: everything that a reader sees, already computed. Neither the PDF nor the UBL computes an
//! amount; they show what is here.

use chrono::NaiveDate;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

/// What kind of document the reader gets. In print, a credit invoice is a kind of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Invoice,
    Credit,
    Quote,
    Workorder,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    #[default]
    Nl,
    En,
}

impl Language {
    /// The ISO 639-1 code, which is also how a language is stored.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Nl => "nl",
            Self::En => "en",
        }
    }

    /// The inverse of [`Language::code`].
    pub fn from_code(code: &str) -> Option<Self> {
        [Self::Nl, Self::En].into_iter().find(|language| language.code() == code)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrintedDocument {
    pub kind: Kind,
    pub language: Language,
    /// Whether the print is marked as a draft.
    pub draft: bool,
    pub number: String,
    pub title: String,
    /// The receiver's own reference; may be empty.
    pub reference: String,
    pub date: NaiveDate,
    /// Invoices: to be paid by. Quotes: valid until.
    pub due_date: NaiveDate,
    /// ISO 4217.
    pub currency: String,
    pub seller: Party,
    pub buyer: Party,
    pub bank: Bank,
    /// In the order of the document.
    pub rows: Vec<Row>,
    /// One for each VAT rate and category.
    pub vat: Vec<Vat>,
    pub total_excl: Decimal,
    pub total_vat: Decimal,
    /// Of a credit these are negative, like its quantities.
    pub total_incl: Decimal,
    /// The invoice that a credit is for.
    pub credits: Option<Original>,
    /// The part of the total that was paid before the document was issued, with the sign of the total.
    #[serde(default)]
    pub prepaid: Decimal,
    /// The state of payment or acceptance that this print shows.
    #[serde(default)]
    pub state: PrintedState,
    /// How the open amount is collected by direct debit; `None` when the reader is to transfer it.
    #[serde(default)]
    pub collection: Option<Collection>,
    pub look: Look,
}

/// The state of payment or acceptance, as the document shows it. Amounts are positive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrintedState {
    /// Nothing has happened yet: an invoice asks for its total, a quote for an answer.
    #[default]
    New,
    /// An invoice asks for `open`; `paid` and `credited` are already subtracted.
    ToPay {
        open: Decimal,
        paid: Decimal,
        credited: Decimal,
    },
    /// Nothing is asked. The day may be absent.
    Paid {
        on: Option<NaiveDate>,
    },
    /// A credited invoice.
    Credited,
    /// The reader receives `open`; `paid` was refunded already.
    ToRefund {
        open: Decimal,
        paid: Decimal,
    },
    Refunded {
        on: Option<NaiveDate>,
    },
    /// A credit that was settled with its invoice.
    Settled,
    /// An accepted quote.
    Accepted {
        on: Option<NaiveDate>,
    },
}

/// A collection by direct debit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collection {
    /// The provider's reference of the mandate that the payer gave.
    pub mandate: String,
    /// The day on which it is ordered. Banks take some days more.
    pub on: NaiveDate,
}

impl PrintedDocument {
    /// The state that is shown. Without an explicit state, it follows from the total.
    pub fn shown_state(&self) -> PrintedState {
        match (&self.state, self.kind) {
            (PrintedState::New, Kind::Invoice) if self.total_incl > Decimal::ZERO => PrintedState::ToPay {
                open: (self.total_incl - self.prepaid).max(Decimal::ZERO),
                paid: self.prepaid,
                credited: Decimal::ZERO,
            },
            (PrintedState::New, Kind::Invoice) if self.total_incl < Decimal::ZERO => {
                PrintedState::ToRefund { open: self.total_incl.abs(), paid: Decimal::ZERO }
            }
            (PrintedState::New, Kind::Invoice) => PrintedState::Paid { on: None },
            (state, _) => state.clone(),
        }
    }

    /// What the reader is asked to transfer, if anything.
    pub fn to_transfer(&self) -> Option<Decimal> {
        match self.shown_state() {
            PrintedState::ToPay { open, .. } if self.kind == Kind::Invoice && self.collection.is_none() => {
                Some(open)
            }
            _ => None,
        }
    }
}

/// A seller or buyer. Absent texts are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Party {
    /// The name of a company, or of a person without a company.
    pub name: String,
    /// The person at a company; may be empty.
    pub contact: String,
    /// Street and house number.
    pub address: String,
    pub zipcode: String,
    pub city: String,
    /// ISO 3166 alpha-2.
    pub country: String,
    pub email: String,
    pub phone: String,
    pub website: String,
    /// Chamber of commerce number or the like.
    pub registration_number: String,
    pub vat_number: String,
    /// The seller's number for the buyer.
    pub debtor_number: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bank {
    pub iban: String,
    pub bic: String,
    /// In whose name the account is; the seller's name when empty.
    pub holder: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    pub name: String,
    /// May be empty.
    pub description: String,
    pub quantity: Decimal,
    /// May be empty.
    pub unit: String,
    pub unit_price: Decimal,
    /// A percentage.
    pub vat_rate: Decimal,
    pub category: Category,
    /// Rounded to cents.
    pub total_excl: Decimal,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vat {
    /// A percentage.
    pub rate: Decimal,
    pub category: Category,
    pub taxable: Decimal,
    pub vat: Decimal,
}

/// The VAT categories of EN 16931.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Category {
    /// Standard and reduced rates.
    S,
    /// Zero rated.
    Z,
    /// Exempt.
    E,
    /// Reverse charge.
    AE,
    /// Intra-community supply.
    K,
    /// Export outside the EU.
    G,
    /// Outside the scope of VAT.
    O,
}

impl Category {
    /// The code of the UNCL 5305 list, which is also how a category is stored.
    pub const fn code(self) -> &'static str {
        match self {
            Self::S => "S",
            Self::Z => "Z",
            Self::E => "E",
            Self::AE => "AE",
            Self::K => "K",
            Self::G => "G",
            Self::O => "O",
        }
    }

    /// The inverse of [`Category::code`].
    pub fn from_code(code: &str) -> Option<Self> {
        let all = [Self::S, Self::Z, Self::E, Self::AE, Self::K, Self::G, Self::O];
        all.into_iter().find(|category| category.code() == code)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Original {
    pub number: String,
    pub date: NaiveDate,
}

/// How the seller's documents look.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Look {
    /// `#rrggbb`; empty for the default.
    pub primary_color: String,
    pub secondary_color: String,
    /// A line at the foot of every page; may be empty.
    pub footer: String,
    pub logo: Option<Logo>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logo {
    pub format: LogoFormat,
    pub bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogoFormat {
    Png,
    Jpeg,
    Svg,
}

impl LogoFormat {
    /// How a format is stored.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpeg",
            Self::Svg => "svg",
        }
    }

    /// The inverse of [`LogoFormat::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Png, Self::Jpeg, Self::Svg].into_iter().find(|format| format.name() == name)
    }

    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Svg => "image/svg+xml",
        }
    }
}
