//! The stand-in's webhooks arrive as Mollie's do, and the adapter verifies them.

use http::StatusCode;
use http_body_util::BodyExt;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use provider::mollie::{Mollie, Settings};
use provider::testing::StandIn;
use provider::{Fault, Provider, Sequence, Status, Webhook};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::{cents, key, pair, payment};

/// A webhook as it arrived: signature and body.
type Arrived = (Option<String>, Vec<u8>);

/// Accepts webhooks with status 200, and sends them through the channel.
async fn receiver() -> (String, mpsc::UnboundedReceiver<Arrived>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/webhook", listener.local_addr().unwrap());
    let (arrived, arrivals) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let arrived = arrived.clone();
            tokio::spawn(http1::Builder::new().serve_connection(
                TokioIo::new(stream),
                service_fn(move |request: http::Request<hyper::body::Incoming>| {
                    let arrived = arrived.clone();
                    async move {
                        let signature = request.headers().get("x-mollie-signature");
                        let signature = signature.map(|value| value.to_str().unwrap().to_owned());
                        let body = request.into_body().collect().await?.to_bytes().to_vec();
                        arrived.send((signature, body)).unwrap();
                        let mut answer = http::Response::new(String::new());
                        *answer.status_mut() = StatusCode::OK;
                        Ok::<_, hyper::Error>(answer)
                    }
                }),
            ));
        }
    });
    (url, arrivals)
}

fn verify(mollie: &Mollie, (signature, body): &Arrived) -> Result<Option<String>, Fault> {
    mollie.verify_webhook(&Webhook { signature: signature.as_deref(), body })
}

fn with_secrets(stand_in: &StandIn, secrets: &str) -> Mollie {
    let settings = Settings { mollie_webhook_secrets: secrets.to_owned(), ..stand_in.settings() };
    Mollie::new(&settings).unwrap()
}

#[tokio::test]
async fn every_change_of_a_payment_sends_a_webhook() {
    let (stand_in, mollie) = pair().await;
    let (url, mut arrivals) = receiver().await;
    let mut new = payment("r", Sequence::OneOff, cents(100));
    new.webhook_url = url;
    let made = mollie.create_payment(&key("1"), &new).await.unwrap();

    assert_eq!(stand_in.pay(&made.id).await, Some(200));
    let expected = (None, format!("id={}", made.id).into_bytes());
    let arrived = arrivals.recv().await.unwrap();
    assert_eq!(arrived, expected);
    assert_eq!(mollie.find_payment(&made.id).await.unwrap().unwrap().status, Status::Paid);
    let secret = with_secrets(&stand_in, "a secret of the dashboard");
    assert_eq!(
        verify(&secret, &arrived),
        Err(Fault::Forged),
        "classic messages have an address of their own"
    );

    assert_eq!(stand_in.charge_back(&made.id, cents(100), "Refused").await, Some(200));
    assert_eq!(stand_in.refund(&made.id, cents(0)).await, Some(200));
    assert_eq!(stand_in.send_webhook(&made.id).await, Some(200));
    for _ in 0..3 {
        assert_eq!(arrivals.recv().await.unwrap(), expected);
    }

    stand_in.mute(true);
    assert_eq!(stand_in.expire(&made.id).await, None);
    assert!(arrivals.try_recv().is_err());
}

#[tokio::test]
async fn a_signed_webhook_is_accepted_with_the_new_and_the_old_secret_and_no_other() {
    let (stand_in, mollie) = pair().await;
    let (url, mut arrivals) = receiver().await;
    let mut new = payment("r", Sequence::OneOff, cents(100));
    new.webhook_url = url;
    let made = mollie.create_payment(&key("1"), &new).await.unwrap();
    stand_in.sign_with("a secret of the dashboard");
    stand_in.pay(&made.id).await;
    let arrived = arrivals.recv().await.unwrap();
    assert!(arrived.0.as_ref().is_some_and(|signature| signature.starts_with("sha256=")));

    for secrets in ["a secret of the dashboard", "newer, a secret of the dashboard"] {
        assert_eq!(verify(&with_secrets(&stand_in, secrets), &arrived), Ok(Some(made.id.clone())));
    }
    assert_eq!(verify(&with_secrets(&stand_in, "another"), &arrived), Err(Fault::Forged));
    let tampered = (arrived.0.clone(), b"id=tr_0".to_vec());
    assert_eq!(verify(&with_secrets(&stand_in, "a secret of the dashboard"), &tampered), Err(Fault::Forged));
}
