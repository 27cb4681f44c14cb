-- When who a client is was forgotten.
alter table relations.relation add column anonymized_at timestamptz;
