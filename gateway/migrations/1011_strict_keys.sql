-- Whether requests with a name that their operation does not know are refused.
alter table api_key add column strict boolean not null default false;
