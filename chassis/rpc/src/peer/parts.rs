//! The messages of an upload after its first. They come through a channel that can close for two reasons, which the service
//! must be able to tell apart: the end, and a caller that is gone in the middle (a deadline, a client that disconnected).

use bytes::Bytes;
use futures::{Stream, stream};
use tokio::sync::mpsc;

/// A message, or `None` after the last one. A channel that closes without it carried a part of the upload only.
pub type Part = Option<Bytes>;

/// No message: a service that reads it refuses the whole upload. The end of the stream would look like the end of the content.
const ABORT: Bytes = Bytes::from_static(&[0x07]);

pub(super) fn messages(parts: mpsc::Receiver<Part>) -> impl Stream<Item = Bytes> + Send {
    stream::unfold(Some(parts), async |parts| {
        let mut parts = parts?;
        match parts.recv().await {
            Some(Some(message)) => Some((message, Some(parts))),
            Some(None) => None,
            None => Some((ABORT, None)),
        }
    })
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;
    use prost::Message;

    use super::*;

    async fn received(sent: Vec<Part>) -> Vec<Bytes> {
        let (sender, parts) = mpsc::channel(sent.len().max(1));
        for part in sent {
            sender.send(part).await.unwrap();
        }
        drop(sender);
        messages(parts).collect().await
    }

    #[tokio::test]
    async fn an_upload_ends_where_its_sender_says_so() {
        let message = Bytes::from_static(b"\x0a\x01a");
        assert_eq!(received(vec![Some(message.clone()), None]).await, [message]);
        assert!(received(vec![None]).await.is_empty());
    }

    #[tokio::test]
    async fn an_upload_whose_sender_is_dropped_ends_with_what_no_service_can_read() {
        let message = Bytes::from_static(b"\x0a\x01a");
        for sent in [vec![], vec![Some(message)]] {
            let complete = sent.len();
            let received = received(sent).await;
            assert_eq!(received.len(), complete + 1);
            assert!(<()>::decode(received[complete].clone()).is_err());
        }
    }
}
