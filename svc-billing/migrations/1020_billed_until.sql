-- The last day that an invoice of the subscription covers, so that no change of its schedule bills a day twice.
alter table billing.subscription add column billed_until date;

update billing.subscription s set billed_until = d.period_to
from (select account_id, subscription_id, max(period_to) as period_to from billing.document
      where subscription_id is not null group by account_id, subscription_id) d
where s.account_id = d.account_id and s.id = d.subscription_id;
