-- Tables whose changes alone leave no entry in the audit log.
comment on table event is 'unaudited: what was heard';
comment on table flow_version is 'unaudited: each version stays as it was; the flow names the one that counts';
comment on table run is 'unaudited: what a flow has done, which it shows itself; what people do with it is audited';
comment on table run_step is 'unaudited: what a flow has done, which it shows itself';
comment on table webhook_delivery is 'unaudited: what an endpoint was told, which it shows itself';
