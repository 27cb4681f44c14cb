-- no-transaction
-- What is still to be paid, by its due date.
create index concurrently if not exists document_owed_since
    on billing.document (account_id, kind, due_date desc, id desc)
    where kind = 'invoice' and is_final and credits is null and open_amount > 0
        and payment_status in ('open', 'partially_paid', 'partially_credited');
