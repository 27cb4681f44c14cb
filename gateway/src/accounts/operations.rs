//! What creating an account, and a key of one, does.

use chassis_base::error::database::violated_constraint;
use chassis_base::{AccountId, Error};
use chassis_data::Tx;
use proto::accounts::{
    Account, CreateAccountRequest, CreateAccountResponse, CreateKeyRequest, CreateKeyResponse,
};
use proto::api::{Fault, Problem};
use proto::{At, Faults};
use sqlx::PgConnection;

use super::{Record, rules, store};
use crate::keys;

/// The account of this id or name.
pub(crate) async fn get(connection: &mut PgConnection, id_or_name: &str) -> Result<Record, Error> {
    let found = store::find(connection, id_or_name).await?;
    found.ok_or_else(|| {
        Error::problem(Problem::NotFound, format!("There is no account with the id or name `{id_or_name}`."))
    })
}

/// Creates an account in the gateway's own table. The services are provisioned afterwards; see `provision.rs`.
pub(crate) async fn create(
    tx: &mut Tx<'_>,
    input: &CreateAccountRequest,
) -> Result<CreateAccountResponse, Error> {
    let settings = rules::account_settings(input, &mut tx.faults);
    tx.valid()?;
    let record = Record {
        account_id: AccountId::trust(tx.id()),
        name: input.name.clone(),
        country: settings.country,
        timezone: settings.timezone.name().to_owned(),
        currency: settings.currency,
        created_at: tx.now(),
    };
    // Two creates with one name at the same moment both pass every check: only the unique index decides.
    store::insert(tx.db(), &record).await.map_err(|error| match violated_constraint(&error) {
        Some("account_name") => name_taken(&record.name),
        _ => error.into(),
    })?;
    let account_id = record.account_id;
    let account = Account::from(record);
    // The call is on behalf of no account, so that the entry says whose log it belongs to.
    tx.file_under(account_id);
    tx.changed("account", account_id, &account);
    Ok(CreateAccountResponse { account: Some(account) })
}

/// Creates a key of an account that is named by id or name, which is why this is here and not in `keys`.
pub(crate) async fn create_key(
    tx: &mut Tx<'_>,
    input: &CreateKeyRequest,
) -> Result<CreateKeyResponse, Error> {
    let settings = keys::rules::key_settings(input, tx.now(), &mut tx.faults);
    // All faults of the request come before the question whether the account exists.
    tx.valid()?;
    let account = get(tx.db(), &input.account).await?;
    keys::operations::create(tx, account.account_id, settings).await
}

fn name_taken(name: &str) -> Error {
    let mut faults = Faults::default();
    let detail = format!("there is already an account with the name `{name}`");
    faults.add(&At::ROOT.name("name"), Fault::NotAllowed, detail);
    faults.into()
}
