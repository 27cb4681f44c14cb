//! What a credential must be like, and which scopes its tokens get. Pure.

use chassis_base::Error;
use proto::Faults;
use proto::accounts::IssueCredentialRequest;
use proto::api::Problem;

use crate::keys::rules::select_scopes;
use crate::scopes;

/// The scopes of a new credential, which may also be those of internal teams.
pub(super) fn credential_scopes(input: &IssueCredentialRequest, faults: &mut Faults) -> Vec<String> {
    select_scopes(&input.scopes, input.all_scopes, scopes::of_teams(), faults)
}

/// The scopes of a token: those that were requested, all of which the credential must have, or all that it has.
pub(super) fn token_scopes(available: &[String], requested: Vec<String>) -> Result<Vec<String>, Error> {
    if requested.is_empty() {
        return Ok(available.to_vec());
    }
    match requested.iter().find(|scope| !available.contains(scope)) {
        Some(scope) => Err(Error::problem(
            Problem::InsufficientScope,
            format!("The credential does not have the scope `{scope}`; it has {}.", available.join(", ")),
        )),
        None => Ok(requested),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_can_have_scopes_of_internal_teams() {
        let scopes = vec!["crm.internal".to_owned()];
        let mut faults = Faults::default();
        let input = IssueCredentialRequest { scopes: scopes.clone(), ..IssueCredentialRequest::default() };
        assert_eq!(credential_scopes(&input, &mut faults), scopes);
        assert!(faults.is_empty());
    }
}
