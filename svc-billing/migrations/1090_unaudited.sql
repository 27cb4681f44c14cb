-- Tables whose changes alone leave no entry in the audit log.
comment on table billing.document_history is 'unaudited: a log itself';
comment on table billing.paying_client is 'unaudited: reckoned from payments';
comment on table billing.online_payment is 'unaudited: how it stands with a provider; payment and mandate are audited';
comment on table billing.wish is 'unaudited: what is to be asked of a provider';
comment on table billing.sandbox_customer is 'unaudited: the provider for trying out';
comment on table billing.sandbox_mandate is 'unaudited: the provider for trying out';
comment on table billing.sandbox_payment is 'unaudited: the provider for trying out';
