use chassis_testing::expected_faults;
use proto::billing::{DeleteIdentityRequest, Identity, IdentityInput, SetIdentityLogoRequest};
use render::printed::{Logo, LogoFormat};
use svc_billing::identity::seller as find_seller;
use tonic::Status;

use crate::support::{Caller, World, faults, is_not_found};

const SVG: &[u8] = b"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 1 1'><path d='M0 0h1v1z'/></svg>";

/// The head of a PNG of 2 by 2 pixels.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x02\x08\x06\0\0\0";

async fn set(caller: &Caller, id: &str, logo: &[u8]) -> Result<Identity, Status> {
    let request = caller.request(SetIdentityLogoRequest { id: id.into(), logo: logo.to_vec().into() });
    Ok(caller.settings().set_identity_logo(request).await?.into_inner().data.unwrap())
}

#[tokio::test]
async fn a_logo_is_known_by_its_content_replaced_and_removed() {
    let world = World::new().await;
    let caller = world.caller().await;
    let account = caller.token.account.id;
    let mut connection = world.database.connect().await;
    let id = caller.identities().await.remove(0).id;
    for (bytes, kind, format) in
        [(SVG, "image/svg+xml", LogoFormat::Svg), (PNG, "image/png", LogoFormat::Png)]
    {
        assert_eq!(set(&caller, &id, bytes).await.unwrap().logo_type, kind);
        assert_eq!(caller.identities().await[0].logo_type, kind);
        let seller = find_seller(&mut connection, account).await.unwrap();
        assert_eq!(seller.look.logo, Some(Logo { format, bytes: bytes.to_vec() }));
    }
    assert_eq!(set(&caller, &id, b"").await.unwrap().logo_type, "");
    assert_eq!(set(&caller, &id, b"").await.unwrap().logo_type, "", "again");
    assert_eq!(find_seller(&mut connection, account).await.unwrap().look.logo, None);
}

#[tokio::test]
async fn what_is_no_picture_too_large_or_not_plain_is_refused_and_the_old_logo_stays() {
    let world = World::new().await;
    let caller = world.caller().await;
    let id = caller.identities().await.remove(0).id;
    set(&caller, &id, SVG).await.unwrap();
    let mut large = PNG.to_vec();
    large.resize(512 * 1024 + 1, 0);
    let script = b"<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>";
    let cases: [(&[u8], &str); 4] = [
        (b"GIF89a", "bad_format"),
        (script, "bad_format"),
        (b"\xff\xfe", "bad_format"),
        (&large, "too_long"),
    ];
    for (bytes, code) in cases {
        let status = set(&caller, &id, bytes).await.unwrap_err();
        assert_eq!(faults(&status), expected_faults(&[("/logo", code)]));
    }
    assert_eq!(caller.identities().await[0].logo_type, "image/svg+xml");
    assert!(is_not_found(&set(&caller, "x", SVG).await.unwrap_err()));
}

#[tokio::test]
async fn the_largest_logo_is_kept_and_goes_with_its_identity() {
    let world = World::new().await;
    let caller = world.caller().await;
    let identity = IdentityInput { name: "Other".into(), ..IdentityInput::default() };
    let request = caller.request(proto::billing::CreateIdentityRequest { identity: Some(identity) });
    let id = caller.settings().create_identity(request).await.unwrap().into_inner().data.unwrap().id;
    let mut large = PNG.to_vec();
    large.resize(512 * 1024, 0);
    set(&caller, &id, &large).await.unwrap();
    let mut connection = world.database.connect().await;
    let count = "select count(*) from billing.identity_logo";
    assert_eq!(sqlx::query_scalar::<_, i64>(count).fetch_one(&mut connection).await.unwrap(), 1);
    let request = caller.request(DeleteIdentityRequest { id });
    caller.settings().delete_identity(request).await.unwrap();
    assert_eq!(sqlx::query_scalar::<_, i64>(count).fetch_one(&mut connection).await.unwrap(), 0);
}
