-- Tables whose changes alone leave no entry in the audit log.
comment on table event is 'unaudited: what was heard';
comment on table run is 'unaudited: a log itself';
comment on table run_step is 'unaudited: a log itself';
comment on table webhook_delivery is 'unaudited: a log itself';
comment on table signing_secret is 'unaudited: secrets are in no log';
