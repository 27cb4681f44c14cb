//! Points in the middle of a transaction at which it can be blocked, so that its process can be killed exactly there.

use chassis_base::{Account, AccountId};
use chassis_testing::{TestDatabase, eventually};
use sqlx::PgConnection;

/// Transactions wait for advisory locks of this class, one for each account.
const CLASS: i32 = 4711;

/// The point `STEP OUTCOME` is the write of that outcome of a step, `client WORD` the write of a client whose name begins so.
const SET_UP: &str = "
create table public.trap (point text primary key);
create table public.trap_account (account_id uuid primary key, number integer not null);
create function public.block_at(wanted text, account uuid) returns void language plpgsql as $$
begin
    perform pg_advisory_xact_lock_shared(4711, number) from public.trap_account
    where account_id = account and exists (select from public.trap where point = wanted);
end $$;
create function public.at_step() returns trigger language plpgsql as $$
begin
    perform public.block_at(new.step || ' ' || new.outcome, new.account_id);
    return null;
end $$;
create function public.at_client() returns trigger language plpgsql as $$
begin
    perform public.block_at('client ' || split_part(new.company_name, ' ', 1), new.account_id);
    return null;
end $$;
create trigger block_at after insert or update on automation.run_step
    for each row execute function public.at_step();
create trigger block_at after insert on relations.relation
    for each row execute function public.at_client();
";

pub(crate) struct Trap {
    /// Holds the locks while the trap is set.
    holder: PgConnection,
    viewer: PgConnection,
    accounts: Vec<AccountId>,
}

impl Trap {
    pub(crate) async fn new(database: &TestDatabase, accounts: &[Account]) -> Self {
        let (holder, mut viewer) = (database.connect().await, database.connect().await);
        sqlx::raw_sql(SET_UP).execute(&mut viewer).await.unwrap();
        let accounts: Vec<AccountId> = accounts.iter().map(|account| account.id).collect();
        for (number, account) in (0_i32..).zip(&accounts) {
            let sql = "insert into public.trap_account (account_id, number) values ($1, $2)";
            sqlx::query(sql).bind(account).bind(number).execute(&mut viewer).await.unwrap();
        }
        Self { holder, viewer, accounts }
    }

    /// From now on every transaction that reaches the point is blocked.
    pub(crate) async fn set(&mut self, point: &str) {
        for number in 0..i32::try_from(self.accounts.len()).unwrap() {
            let sql = "select pg_advisory_lock($1, $2)";
            sqlx::query(sql).bind(CLASS).bind(number).execute(&mut self.holder).await.unwrap();
        }
        let sql = "insert into public.trap (point) values ($1)";
        sqlx::query(sql).bind(point).execute(&mut self.viewer).await.unwrap();
    }

    /// Waits until a transaction of the account is blocked.
    pub(crate) async fn until_caught(&mut self, account: usize) {
        let number = i32::try_from(account).unwrap();
        let viewer = &mut self.viewer;
        eventually("a transaction is blocked", async || {
            let sql =
                "select exists (select from pg_locks join pg_database on pg_database.oid = pg_locks.database
                where datname = current_database() and locktype = 'advisory' and not granted
                    and classid = $1::bigint::oid and objid = $2::bigint::oid)";
            sqlx::query_scalar(sql)
                .bind(i64::from(CLASS))
                .bind(i64::from(number))
                .fetch_one(&mut *viewer)
                .await
                .unwrap()
        })
        .await;
    }

    /// Unblocks all transactions whose process is still alive.
    pub(crate) async fn open(&mut self) {
        sqlx::query("delete from public.trap").execute(&mut self.viewer).await.unwrap();
        sqlx::query("select pg_advisory_unlock_all()").execute(&mut self.holder).await.unwrap();
    }
}
