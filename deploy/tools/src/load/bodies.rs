//! The bodies of requests, as JSON.

use std::fmt::{self, Write};

use crate::operations::{Resource, SEARCHED};

/// Every so many-th client that is filled in carries the word that the search looks for.
const SEARCHED_EVERY: u64 = 1_500;
const CITIES: [&str; 8] =
    ["Amsterdam", "Utrecht", "Rotterdam", "Den Haag", "Eindhoven", "Groningen", "Zwolle", "Maastricht"];
/// What tickets are answered.
const REPLY: &str = "Dank voor uw bericht. De levering is vanmorgen vertrokken en komt morgen tussen negen en twaalf \
                     aan. Laat het gerust weten als dat niet uitkomt.";

/// An entry that reads find. Some clients are found by the searched word; those made while measuring never are.
pub(crate) fn filled_in(body: &mut String, resource: Resource, number: u64, client_id: &str) -> fmt::Result {
    match resource {
        Resource::Client if number.is_multiple_of(SEARCHED_EVERY) => client(body, number, SEARCHED),
        Resource::Client => client(body, number, "Handel"),
        Resource::Invoice => invoice(body, number, client_id, "draft"),
        Resource::Deal => write!(
            body,
            "{{\"title\":\"Levering {number:06}\",\"client_id\":\"{client_id}\",\"amount\":\"{}.00\",\
             \"source\":\"Website\"}}",
            1000 + number % 9000
        ),
        Resource::Task => write!(
            body,
            "{{\"title\":\"Bellen over levering {number:06}\",\"category\":\"call\",\"duration_minutes\":15}}"
        ),
        // Without an address, so that answering it sends no mail: that is not what is measured.
        Resource::Ticket => write!(
            body,
            "{{\"subject\":\"Vraag over levering {number}\",\"client_name\":\"Handel {number} B.V.\"}}"
        ),
    }
}

pub(crate) fn reply(body: &mut String) -> fmt::Result {
    write!(body, "{{\"body\":\"{REPLY}\"}}")
}

pub(crate) fn invoice(body: &mut String, number: u64, client_id: &str, mode: &str) -> fmt::Result {
    write!(
        body,
        "{{\"title\":\"Levering {number:06}\",\"client_id\":\"{client_id}\",\"generation_mode\":\"{mode}\",\
         \"rows\":[\
         {{\"name\":\"Zuurdesembrood\",\"quantity\":{},\"unit\":\"stuk\",\"unit_price\":\"4.25\",\"vat_rate\":\"9\"}},\
         {{\"name\":\"Bezorging\",\"quantity\":1,\"unit_price\":\"{}.50\",\"vat_rate\":\"21\"}},\
         {{\"name\":\"Advies\",\"quantity\":\"1.5\",\"unit\":\"uur\",\"unit_price\":\"85.00\",\"vat_rate\":\"21\"}}\
         ]}}",
        number % 9 + 1,
        number % 90 + 10
    )
}

pub(crate) fn client(body: &mut String, number: u64, word: &str) -> fmt::Result {
    let city = CITIES[usize::try_from(number % 8).unwrap_or(0)];
    write!(
        body,
        "{{\"type\":\"company\",\"company_name\":\"{word} {number:06} B.V.\",\"firstname\":\"Sanne\",\
         \"lastname\":\"de Vries\",\"email\":\"info{number}@example.com\",\"phone\":\"+31 20 123 4567\",\
         \"address\":\"Prinsengracht {number}\",\"zipcode\":\"1015 DV\",\"city\":\"{city}\",\"country\":\"NL\",\
         \"payment_term\":14}}"
    )
}
