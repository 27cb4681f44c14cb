//! Invoices by the thousand: made by the database itself, since a million of them over REST would take hours. Each has
//! three rows, and the counters of lists and numbers are kept as the service keeps them.

use std::time::{Duration, Instant};

use crate::database::Database;
use crate::operations::SEARCHED;

/// One transaction, so that an interrupted fill leaves nothing half done.
const CHUNK: u64 = 20_000;
/// How many of the invoices carry the word that the search looks for, however many there are.
pub(crate) const MATCHING: u64 = 7;
/// Over how many days they are spread.
const DAYS: u32 = 1_000;
/// Between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(5);

/// Both sides of an invoice, as the service keeps them with a final one.
const SELLER: &str = r#"{"party":{"name":"Bakkerij De Korenbloem B.V.","contact":"","address":"Prinsengracht 12","zipcode":"1015 DV","city":"Amsterdam","country":"NL","email":"info@korenbloem.example","phone":"+31 20 555 0112","website":"https://korenbloem.example","registration_number":"68112340","vat_number":"NL854231675B01","debtor_number":""},"bank":{"iban":"NL91ABNA0417164300","bic":"ABNANL2A","holder":"Bakkerij De Korenbloem B.V."}}"#;
const BUYER: &str = r#"{"name":"Handel 000001 B.V.","contact":"Sanne de Vries","address":"Prinsengracht 1","zipcode":"1015 DV","city":"Utrecht","country":"NL","email":"info1@example.com","phone":"+31 20 123 4567","website":"","registration_number":"","vat_number":"","debtor_number":"D-00001"}"#;

/// What is to be made.
pub(crate) struct NewInvoices<'a> {
    pub account: &'a str,
    /// Ids that the invoices are spread over.
    pub clients: &'a [String],
    pub count: u64,
}

/// Adds invoices to an account, and leaves the tables as after hours of running.
pub(crate) async fn fill(database: &Database, new: &NewInvoices<'_>) -> Result<(), String> {
    let NewInvoices { account, count, .. } = *new;
    eprintln!("Filling an account with {count} invoices of 3 rows");
    let used = format!(
        "select coalesce(max(value), 0) from counter where account_id = '{account}' and name like 'invoice/%'"
    );
    let used: u64 =
        database.value("billing", &used).await?.parse().map_err(|_| "psql gave no number".to_owned())?;
    let begin = Instant::now();
    let mut reported = begin;
    let mut done = 0;
    while done < count {
        let last = (done + CHUNK).min(count);
        database.run("billing", &chunk(new, used, done + 1, last)).await?;
        done = last;
        if reported.elapsed() >= PROGRESS || done == count {
            reported = Instant::now();
            eprintln!("  {done} of {count} invoices after {} s", begin.elapsed().as_secs());
        }
    }
    eprintln!("  vacuum analyze");
    let tables =
        ["document", "document_row", "total"].map(|table| format!("vacuum analyze billing.{table};"));
    database.run("billing", &format!("{SETTINGS}\n{}", tables.join("\n"))).await
}

/// The search index takes what is new in large portions, and a crash of the machine may lose the end.
const SETTINGS: &str = "set statement_timeout = 0; set synchronous_commit = off; set maintenance_work_mem = '512MB'; \
                        set gin_pending_list_limit = '128MB';";

/// Invoices `from` to `to` of the new ones, oldest first. A twentieth is open, a fiftieth a draft, the rest is paid or
/// partly so; days are those of the counters, which are UTC's.
fn chunk(new: &NewInvoices<'_>, used: u64, from: u64, to: u64) -> String {
    let NewInvoices { account, clients, count } = *new;
    let searched = (count / MATCHING).max(1);
    let people = clients.len().max(1);
    let clients = clients.join(",");
    format!(
        "{SETTINGS}
with series as (
    select i, {used} + i as serial, date_trunc('milliseconds', now() - interval '{DAYS} days' * ({count} - i) / {count})
        as created_at, i % {people} as person, i % 9 + 1 as quantity, i % 90 + 10.50 as price,
        case when i % 50 = 1 then 'draft' when i % 20 = 0 then 'open' when i % 50 = 2 then 'partially_paid'
            else 'paid' end as status
    from generate_series({from}, {to}) i
), parts as materialized (
    select *, status <> 'draft' as is_final, (created_at at time zone 'UTC')::date as day,
        encode(int8send((floor(extract(epoch from created_at) * 1000)::bigint << 16) | 28672 | (i % 4096))
            || substring(uuid_send(gen_random_uuid()) from 9), 'hex')::uuid as id,
        case when status = 'draft' then 'DRAFT-' || serial else
            'INV-' || to_char(created_at at time zone 'UTC', 'YYYY') || '-' || lpad(serial::text, greatest(5,
            length(serial::text)), '0') end as number,
        case when i % {searched} = 0 then '{SEARCHED} ' else 'Levering ' end || lpad(i::text, 6, '0') as title,
        'Handel ' || lpad(person::text, 6, '0') || ' B.V.' as company,
        round(quantity * 4.25, 2) as low, price + 127.50 as high
    from series
), amounts as materialized (
    select *, low + high as excl, round(low * 0.09, 2) + round(high * 0.21, 2) as vat from parts
), documents as (
    insert into billing.document (account_id, id, kind, version, content_version, is_final, number, number_given, title,
        invoice_date, due_date, currency, language, total_excl, vat_rate, vat_amount, total_incl, row_count, client_id,
        client_company_name, client_firstname, client_lastname, payment_status, paid_at, paid_amount, open_amount,
        external_id, token, finalized_at, seller, buyer, einvoice_missing, pdf_version, search_text, created_at,
        updated_at)
    select '{account}', id, 'invoice', 1, 1, is_final, number, false, title, day, day + 14, 'EUR', 'nl', excl,
        round(vat * 100 / excl, 2), vat, excl + vat, 3, ('{{{clients}}}'::uuid[])[person + 1], company, 'Sanne',
        'de Vries', status, case status when 'paid' then date_trunc('day', created_at) end,
        case status when 'paid' then excl + vat when 'partially_paid' then 10 else 0 end,
        case status when 'open' then excl + vat when 'partially_paid' then excl + vat - 10 else 0 end,
        'order-' || serial, uuid_send(gen_random_uuid()), case when is_final then created_at end,
        case when is_final then '{SELLER}'::jsonb end, case when is_final then '{BUYER}'::jsonb end, '{{}}',
        case when is_final then 1 end,
        lower(title) || E'\\n' || lower(company) || E'\\nsanne de vries\\norder-' || serial || E'\\n' || lower(number),
        created_at, created_at
    from amounts order by i
), rows as (
    insert into billing.document_row (account_id, document_id, position, name, description, quantity, unit, unit_price,
        vat_rate, vat_code, category)
    select '{account}', id, r.position, r.name, '', r.quantity, r.unit, r.price, r.rate, 'VAT' || r.rate, 'S'
    from parts cross join lateral (values (0, 'Zuurdesembrood', parts.quantity, 'stuk', 4.25, 9),
        (1, 'Bezorging', 1, '', parts.price, 21), (2, 'Advies', 1.5, 'uur', 85, 21))
        as r (position, name, quantity, unit, price, rate)
), totals as (
    insert into total (account_id, list, bucket, slot, entries)
    select '{account}', 'invoice', coalesce(day, '0001-01-01'), 0, count(*) from parts
    group by grouping sets ((day), ())
    on conflict (account_id, list, bucket, slot) do update set entries = total.entries + excluded.entries
)
insert into counter (account_id, name, value)
select '{account}', 'invoice/' || case when is_final then to_char(day, 'YYYY') else 'draft' end, max(serial)
from parts group by 2 on conflict (account_id, name) do update set value = greatest(counter.value, excluded.value);
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_invoice_keeps_of_its_parties_is_json() {
        for party in [SELLER, BUYER] {
            assert!(serde_json::from_str::<serde_json::Value>(party).is_ok(), "{party}");
            assert!(!party.contains('\''), "it stands between quotes of SQL");
        }
    }

    #[test]
    fn chunks_follow_one_another_and_number_on_from_what_is_used() {
        let new = NewInvoices { account: "a", clients: &["c".to_owned()], count: 50_000 };
        let sql = chunk(&new, 700, 20_001, 40_000);
        assert!(sql.contains("generate_series(20001, 40000)") && sql.contains("700 + i as serial"), "{sql}");
    }
}
