-- Whether payments of the account may go to the embedded sandbox, where anyone can say that they paid. Null: as the
-- environment has it.
alter table billing.settings add column sandbox_payments boolean;
