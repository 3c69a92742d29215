//! The stream that carries a connection. It ends when its owner says so, whatever the other end does. A peer that
//! takes no data for as long as it may leave keepalives unanswered counts as gone, because nothing else notices this
//! while a write waits.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// A stream that ends with its token.
pub(super) struct CancellableStream<S> {
    stream: S,
    token: CancellationToken,
    ended: Pin<Box<WaitForCancellationFutureOwned>>,
    /// The time that a write may wait without progress. None means forever.
    patience: Option<Duration>,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> CancellableStream<S> {
    pub(super) fn new(stream: S, token: CancellationToken, patience: Option<Duration>) -> Self {
        let ended = Box::pin(token.clone().cancelled_owned());
        Self { stream, token, ended, patience, waiting: None }
    }

    /// Says whether the token was cancelled, and wakes the task when it is.
    fn has_ended(&mut self, context: &mut Context<'_>) -> bool {
        self.token.is_cancelled() || self.ended.as_mut().poll(context).is_ready()
    }

    /// Returns the result of a write, or an error where the peer has taken no data for too long.
    fn or_stalled<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let Some(patience) = self.patience else { return Poll::Pending };
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        match waiting.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CancellableStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.has_ended(context) {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut this.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CancellableStream<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.has_ended(context) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.or_stalled(written, context)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.has_ended(context) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let flushed = Pin::new(&mut this.stream).poll_flush(context);
        this.or_stalled(flushed, context)
    }

    /// Doesn't wait, as nothing follows: dropping the stream closes it anyway.
    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let _ = Pin::new(&mut self.get_mut().stream).poll_shutdown(context);
        Poll::Ready(Ok(()))
    }
}
