-- no-transaction
-- Pages of the invoices that are still to be paid, whose total is counted.
create index concurrently if not exists document_owed
    on billing.document (account_id, kind, created_at desc, id desc)
    where kind = 'invoice' and is_final and credits is null and open_amount > 0
        and payment_status in ('open', 'partially_paid', 'partially_credited');
