-- Renderings of a run that were begun and have not ended: a run that ends its process twice is not tried again.
alter table run add column renders integer not null default 0;
-- What a version may do: the scopes of whoever applied it. Those of before were applied by operators.
alter table flow_version add column scopes text[] not null default '{mesh}';
